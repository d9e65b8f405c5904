"""Pairs in Parquet files: a row for each, and lists of numbers as features."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from robust_rlhf_jax.io.containers.parquet_files import SUFFIXES

from ._recut import cuts_from, recut
from ._shown import Shown
from .beside import groups_and_raters, second_won
from .differences import part, preferred
from .fingerprints import fingerprint_of
from .parquet_columns import Form, form_of, matrix, opened, vector
from .paths import Paths, files_of, row_of


class ParquetSource(Shown):
    """Pairs in Parquet files, of which one row group is in memory at a time.

    **Arguments:** `path`: a file, a list of files in the order to be read, or a folder, whose files are read in the
    order of their names. `chosen`, `rejected`: columns of lists of numbers, all of one length, the features of the
    first and of the second options; `rejected=None` where `chosen` holds differences, first less second. `label`,
    `group`, `rater`: columns of labels, groups and raters as of `ArraySource`, which are read at once. Write files in
    row groups of some thousand rows (`row_group_size`): pyarrow's own are of a million.

    **Raises:** FileNotFoundError; ValueError for files that are damaged, lack a column, or hold no numbers or no pair;
    ImportError without pyarrow.

    **Example:**

    >>> import tempfile, pathlib
    >>> import pyarrow as pa, pyarrow.parquet
    >>> from robust_rlhf_jax.sources import ParquetSource
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "pairs.parquet"
    >>> pa.parquet.write_table(pa.table({"chosen": [[3.0, 1.0]], "rejected": [[1.0, 1.0]]}), path)
    >>> [block.tolist() for block in ParquetSource(path).blocks(2)]
    [[[2.0, 0.0]]]
    """

    def __init__(
        self,
        path: Paths,
        chosen: str = "chosen",
        rejected: str | None = "rejected",
        label: str | None = None,
        group: str | None = None,
        rater: str | None = None,
    ):
        self._columns = [chosen] if rejected is None else [chosen, rejected]
        self._files = files_of(path, SUFFIXES)
        forms = [form_of(file, self._columns) for file in self._files]
        self._lengths = [form.n_pairs for form in forms]
        self.n_pairs, self.n_features = sum(self._lengths), forms[0].n_features
        _check_alike(self._files, forms)
        self._second_won = second_won(self._vector(label), self.n_pairs)
        given = self._vector(group), self._vector(rater)
        self.groups, self.raters = groups_and_raters(*given, self.n_pairs)

    @property
    def files(self) -> tuple[Path, ...]:
        """The files in the order in which they are read."""
        return tuple(self._files)

    def blocks(self, rows: int) -> Iterator[Float[np.ndarray, "m k"]]:
        """Differences in blocks of `rows`.

        **Raises:** ValueError for `rows` below 1; while reading, for damage, empty cells, lists of another length, and
        a file that has changed.
        """
        return self.blocks_from(0, rows)

    def blocks_from(self, begin: int, rows: int) -> Iterator[Float[np.ndarray, "m k"]]:
        """The same of pair `begin` and all that follow it; row groups before it are not read."""
        return recut(self._pieces(begin, rows), rows)

    def place_of(self, pair: int) -> str:
        """The row and the file of a pair, for a message."""
        return row_of(pair, self._files, self._lengths)

    def fingerprint(self) -> str:
        """A short hash of names, sizes, columns, labels, and samples of the files."""
        won = None if self._second_won is None else np.packbits(self._second_won).tobytes()
        return fingerprint_of("parquet", self._columns, *self._files, won, self.groups)

    def _vector(self, name: str | None) -> Any:
        return None if name is None else np.concatenate([vector(file, name) for file in self._files])

    def __getstate__(self) -> dict[str, Any]:
        # Another process may work in another folder.
        return vars(self) | {"_files": [file.absolute() for file in self._files]}

    def _pieces(self, begin: int, rows: int) -> Iterator[np.ndarray]:
        for at, sides in self._row_groups(begin):
            for cut in cuts_from(begin, at, len(sides[0]), rows):
                won = part(self._second_won, slice(at + cut.start, at + cut.stop))
                yield preferred(*(side[cut] for side in sides), second_won=won)
            del sides

    def _row_groups(self, begin: int) -> Iterator[tuple[int, list[np.ndarray]]]:
        """(the first row among all, the sides [m, k]) of one row group after the other, from that of row `begin` on."""
        at = 0
        for path, length in zip(self._files, self._lengths, strict=True):
            if at + length > begin:
                for first, sides in self._of_file(path, length, begin - at):
                    yield at + first, sides
                    del sides
            at += length

    def _of_file(self, path: Path, length: int, begin: int) -> Iterator[tuple[int, list[np.ndarray]]]:
        with opened(path) as file:
            if file.metadata.num_rows != length:
                raise ValueError(f"{path} has changed since it was opened: open it again.")
            at = 0
            for i in range(file.num_row_groups):
                n = file.metadata.row_group(i).num_rows
                if at + n > begin:
                    yield at, self._sides(file, i, path, at)
                at += n

    def _sides(self, file: Any, i: int, path: Path, begin: int) -> list[np.ndarray]:
        # pyarrow's own threads let go of a row group late, when several others have been read.
        table = file.read_row_group(i, columns=self._columns, use_threads=False)
        return [matrix(table.column(name), self.n_features, path, name, begin) for name in self._columns]


def _check_alike(files: list[Path], forms: list[Form]) -> None:
    """**Raises:** ValueError where files differ in the number or the types of their features."""
    for file, form in zip(files, forms, strict=True):
        if form[1:] != forms[0][1:]:
            raise ValueError(
                f"{file} has {form.n_features} features in {form.types}, {files[0].name} {forms[0].n_features} in "
                f"{forms[0].types}: give files of one kind."
            )
