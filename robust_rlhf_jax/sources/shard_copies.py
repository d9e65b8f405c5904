"""Copies of `.npy` shards, some thousand rows at a time."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Int, Shaped

from robust_rlhf_jax.io.npy_arrays import BLOCK, by_number, mapped, npy_vector

from .npy_shard import NpyShard
from .shards import BESIDE, FEATURES, SUFFIXES, ShardSource
from .side_names import both_sides, one_side
from .writing import beside_of, plain


def copy_shards(
    source: ShardSource,
    place: Path,
    columns: dict[str, Shaped[np.ndarray, " N"]],
    keep: Bool[np.ndarray, " N"],
    told: Callable[[int, int], None],
) -> None:
    """The rows to `keep` in files of the folder `place`, as they are stored, and what stands beside them.

    **Raises:** ValueError for files that have changed.
    """
    rows = np.flatnonzero(keep)
    for number, (side, names) in enumerate(zip(source.sides, _names(source), strict=True)):
        begin = 0
        for shard, name in zip(side, names, strict=True):
            end = begin + shard.shape[0]
            _copy_rows(shard, place / name, rows[(rows >= begin) & (rows < end)] - begin)
            begin = end
            told((number * len(keep) + begin) // len(source.sides), len(keep))
    beside = provenance(source) | beside_of(source) | columns
    if source.second_won is not None:
        beside["labels"] = np.where(source.second_won, -1, 1).astype(np.int8)
    for name, values in beside.items():
        np.save(place / f"{name}.npy", plain(values, name)[rows], allow_pickle=False)
    if source.folder is not None and (source.folder / FEATURES).is_file():
        shutil.copyfile(source.folder / FEATURES, place / FEATURES)


def provenance(source: ShardSource) -> dict[str, Shaped[np.ndarray, " N"]]:
    """`rows`, those of the file of which the shards were made where their folder says so, else their own; `ids` if the
    folder has some.

    **Raises:** ValueError where the folder has not one for each pair.
    """
    files = {name: source.folder / f"{name}.npy" for name in ("rows", "ids")} if source.folder else {}
    found = {name: npy_vector(file, source.n_pairs) for name, file in files.items() if file.exists()}
    return {"rows": np.arange(source.n_pairs)} | found


def _names(source: ShardSource) -> list[list[str]]:
    """For each side the names of its files: theirs if a folder of those opens as the same pairs, else numbered ones."""
    theirs = [[shard.path.name for shard in side] for side in source.sides]
    if all(map(_in_order, theirs)) and _say_their_side(theirs):
        return theirs
    sides = ("chosen", "rejected") if len(theirs) == 2 else ("shard",)
    digits = max(5, len(str(len(theirs[0]))))
    return [[f"{side}-{i:0{digits}}.npy" for i in range(len(theirs[0]))] for side in sides]


def _in_order(names: list[str]) -> bool:
    """Whether a folder of files with these names has them in this order."""
    found = [name for name in names if not name.startswith(".") and Path(name).suffix.lower() in SUFFIXES]
    return found == names == sorted(set(names), key=by_number) and not any(
        Path(name).stem in BESIDE for name in names
    )


def _say_their_side(names: list[list[str]]) -> bool:
    """Whether the names of two sides begin with chosen and rejected, else alike, of differences none is a side's."""
    if len(names) == 1:
        sided = any(name.startswith(("chosen", "rejected")) or one_side(name) for name in names[0])
        return not sided and both_sides(names[0]) is None
    ends = [
        [name.removeprefix(side) for name in of if name.startswith(side)]
        for of, side in zip(names, ("chosen", "rejected"), strict=True)
    ]
    return ends[0] == ends[1] and len(ends[0]) == len(names[0])


def _copy_rows(shard: NpyShard, place: Path, rows: Int[np.ndarray, " m"]) -> None:
    """`rows` of a shard as a file; none without rows, which a source would refuse.

    Through a file, not a map: a full disk is then an error and not a signal.
    """
    if not len(rows):
        return
    stored = mapped(shard.path).dtype
    header = {
        "descr": np.lib.format.dtype_to_descr(stored),
        "fortran_order": False,
        "shape": (len(rows), shard.shape[1]),
    }
    with open(place, "wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, len(rows), BLOCK):
            some = rows[start : start + BLOCK]
            block = shard.rows(slice(int(some[0]), int(some[-1]) + 1))
            file.write(np.ascontiguousarray(block[some - some[0]]).tobytes())
