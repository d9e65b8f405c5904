"""Pairs in memory-mapped `.npy` files, one or many."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from ._recut import cuts_from, recut
from ._shown import Shown
from .beside import groups_and_raters, second_won
from .differences import part, preferred
from .fingerprints import fingerprint_of
from .npy_shard import NpyShard, npy_shards
from .paths import Paths, files_of, row_of, within
from .side_names import both_sides, one_side

SUFFIXES = (".npy",)
# Groups, labels and raters among these are read.
BESIDE = ("groups", "labels", "raters", "ids", "rows", "weights", "suspicion")
# What made the features of texts, as a reward head of θ = 0, so that a head fitted to the shards scores texts.
FEATURES = "featuriser.safetensors"


class ShardSource(Shown):
    """Pairs in `.npy` files of float16, bfloat16 (as NumPy writes it), float32 or float64, which stay on the disk.

    **Arguments:** `chosen`: files [N, k] of the first options, or, where `rejected` is None, of differences, first less
    second: a path, a list in the order to be read, or a folder, whose files are read in the order of their names.
    `rejected`: as many files of as many rows. `labels`, `groups`, `raters`: [N], arrays or the path of one, as of
    `ArraySource`. A folder that has files named `chosen…` and `rejected…` is read as those; its `labels.npy`,
    `groups.npy` and `raters.npy` count where none are given. `folder` is that folder, None of files.

    **Raises:** FileNotFoundError; ValueError for files that are damaged, do not match, or hold no numbers or no pair.

    **Example:**

    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from robust_rlhf_jax.sources import ShardSource
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> np.save(folder / "shard-0.npy", np.array([[1.0], [2.0]], np.float16))
    >>> np.save(folder / "shard-1.npy", np.array([[3.0]], np.float16))
    >>> [(block.ravel().tolist(), str(block.dtype)) for block in ShardSource(folder).blocks(2)]
    [([1.0, 2.0], 'float16'), ([3.0], 'float16')]
    """

    def __init__(
        self,
        chosen: Paths,
        rejected: Paths | None = None,
        labels: Any = None,
        groups: Any = None,
        raters: Any = None,
    ):
        folder = Path(chosen) if isinstance(chosen, str | Path) and Path(chosen).is_dir() else None
        self.folder = None if folder is None else folder.absolute()
        if folder is not None:
            given = {"labels": labels, "groups": groups, "raters": raters}
            labels, groups, raters = (_beside(folder, name, value) for name, value in given.items())
            if rejected is None:
                chosen, rejected = _sides(folder)
        self._first = npy_shards(files_of(chosen, SUFFIXES, BESIDE))
        self._second = None if rejected is None else npy_shards(files_of(rejected, SUFFIXES, BESIDE))
        if self._second is not None:
            _check_partners(
                [s.shape for s in self._first], [s.shape for s in self._second], self._first[0].path
            )
        self.n_pairs = sum(shard.shape[0] for shard in self._first)
        self.n_features = self._first[0].shape[1]
        self._second_won = second_won(labels, self.n_pairs)
        self.groups, self.raters = groups_and_raters(groups, raters, self.n_pairs)

    @property
    def sides(self) -> tuple[tuple[NpyShard, ...], ...]:
        """The files of the first options, or of differences, and those of the second options if there are any."""
        return tuple(tuple(side) for side in (self._first, self._second) if side is not None)

    @property
    def second_won(self) -> Bool[np.ndarray, " N"] | None:
        """Where the second option is preferred; None if nowhere."""
        return self._second_won

    def blocks(self, rows: int) -> Iterator[Float[np.ndarray, "m k"]]:
        """Differences in blocks of `rows`, of which one is in memory at a time.

        **Raises:** ValueError for `rows` below 1; while reading, for a file that has changed.
        """
        return self.blocks_from(0, rows)

    def blocks_from(self, begin: int, rows: int) -> Iterator[Float[np.ndarray, "m k"]]:
        """The same of pair `begin` and all that follow it; nothing before it is read."""
        return recut(self._pieces(begin, rows), rows)

    def place_of(self, pair: int) -> str:
        """The row and the file of a pair's first option, for a message."""
        return row_of(pair, [shard.path for shard in self._first], [shard.shape[0] for shard in self._first])

    def fingerprint(self) -> str:
        """A short hash of names, sizes, labels, and samples of the files."""
        won = None if self._second_won is None else np.packbits(self._second_won).tobytes()
        first, second = ([shard.path for shard in side or []] for side in (self._first, self._second))
        return fingerprint_of("shards", len(first), *first, *second, won, self.groups)

    def __getstate__(self) -> dict[str, Any]:
        # Another process may work in another folder.
        second = None if self._second is None else [shard.anywhere() for shard in self._second]
        return vars(self) | {"_first": [shard.anywhere() for shard in self._first], "_second": second}

    def _pieces(self, begin: int, rows: int) -> Iterator[np.ndarray]:
        at = 0
        seconds = self._second or [None] * len(self._first)
        for first, second in zip(self._first, seconds, strict=True):
            for cut in cuts_from(begin, at, first.shape[0], rows):
                won = part(self._second_won, slice(at + cut.start, at + cut.stop))
                yield preferred(first.rows(cut), None if second is None else second.rows(cut), won)
            at += first.shape[0]


def _beside(folder: Path, name: str, given: Any) -> Any:
    file = folder / f"{name}.npy"
    return file if given is None and file.exists() else given


def _sides(folder: Path) -> tuple[Paths, Paths | None]:
    """Files of chosen and of rejected options, or the folder, of differences, and None."""
    files = within(folder, SUFFIXES, BESIDE)
    chosen, rejected = ([f for f in files if f.name.startswith(side)] for side in ("chosen", "rejected"))
    if not chosen and not rejected:
        _check_differences(folder, [file.name for file in files])
        return folder, None
    if [f.name.removeprefix("chosen") for f in chosen] != [f.name.removeprefix("rejected") for f in rejected]:
        raise ValueError(
            f"{folder} has {len(chosen)} files named chosen… and {len(rejected)} named rejected… that do not match: "
            "give every file a partner of the same name."
        )
    if len(chosen) + len(rejected) < len(files):
        raise ValueError(f"{folder} has more than files named chosen… and rejected…: move the others away.")
    return chosen, rejected


def _check_differences(folder: Path, names: list[str]) -> None:
    """**Raises:** ValueError for files that are called after the sides of pairs otherwise than `_sides` reads them."""
    sides = both_sides(names)
    if sides is not None:
        raise ValueError(
            f"{folder} has {sides[0]} and {sides[1]}, which look like the two sides of pairs: call such files "
            "chosen….npy and rejected….npy, and files of differences otherwise."
        )
    one = next(filter(one_side, names), None)
    if one is not None:
        raise ValueError(
            f"{folder} has {one} and no partner of it: call the files of the two sides chosen….npy and rejected….npy, "
            "and files of differences otherwise."
        )


def _check_partners(first: list, second: list, path: Path) -> None:
    """**Raises:** ValueError where the files of both sides are not cut alike."""
    if first != second:
        raise ValueError(
            f"{path}: the files of chosen options have the shapes {_shown(first)}, those of rejected ones "
            f"{_shown(second)}: give the same of both."
        )


def _shown(shapes: list) -> str:
    return ", ".join(map(str, shapes[:3])) + (", …" if len(shapes) > 3 else "")
