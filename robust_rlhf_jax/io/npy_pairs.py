"""Embeddings in two `.npy` files, one for each side, memory-mapped."""

import os
from pathlib import Path

import numpy as np

from .numeric import npy_matrix


def npy_pair(
    chosen: Path, rejected: str | os.PathLike | None = None, n_rows: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The arrays [N, p] of the two sides; the partner of "…chosen….npy" is "…rejected….npy" if not given.

    **Raises:** FileNotFoundError; ValueError for a name that tells no partner, or arrays that do not match.
    """
    if rejected is None:
        if "chosen" not in chosen.name:
            raise ValueError(
                f"{chosen}: name the file of the other side too, or call them chosen.npy and rejected.npy."
            )
        rejected = chosen.with_name(chosen.name.replace("chosen", "rejected"))
    first = npy_matrix(chosen, n_rows)
    second = npy_matrix(Path(rejected), len(first))
    if first.shape != second.shape:
        raise ValueError(
            f"{rejected} has rows of {second.shape[1]} numbers, {chosen} of {first.shape[1]}: give both alike."
        )
    return first, second
