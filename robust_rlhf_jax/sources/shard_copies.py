"""Copies of `.npy` shards, some thousand rows at a time."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Int, Shaped

from robust_rlhf_jax.io.npy_arrays import BLOCK, mapped

from .npy_shard import NpyShard
from .shards import ShardSource
from .writing import beside_of


def copy_shards(
    source: ShardSource,
    place: Path,
    columns: dict[str, Shaped[np.ndarray, " N"]],
    keep: Bool[np.ndarray, " N"],
    told: Callable[[int, int], None],
) -> None:
    """The rows to `keep` in files of the same names in the folder `place`, as they are stored, and what stands beside
    them.

    **Raises:** ValueError for files of one name, and for files that have changed.
    """
    rows, names = np.flatnonzero(keep), [shard.path.name for side in source.sides for shard in side]
    if len(set(names)) < len(names):
        raise ValueError("Several files have the same name, and a copy has them in one folder: rename one.")
    for number, side in enumerate(source.sides):
        begin = 0
        for shard in side:
            end = begin + shard.shape[0]
            _copy_rows(shard, place / shard.path.name, rows[(rows >= begin) & (rows < end)] - begin)
            begin = end
            told((number * len(keep) + begin) // len(source.sides), len(keep))
    beside = {"rows": np.arange(len(keep))} | beside_of(source) | columns
    if source.second_won is not None:
        beside["labels"] = np.where(source.second_won, -1, 1).astype(np.int8)
    for name, values in beside.items():
        np.save(place / f"{name}.npy", np.asarray(values)[rows], allow_pickle=False)


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
