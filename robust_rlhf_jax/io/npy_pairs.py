"""Embeddings in two `.npy` files, one for each side, memory-mapped."""

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from .bad_cells import BadCell
from .numeric import npy_matrix

# Rows that are read at once.
BLOCK = 4096


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


def nonfinite_cells(sides: Iterable[np.ndarray], names: Iterable[str]) -> list[BadCell]:
    """In each row of each side the first entry that is not finite; `names`: what to call the sides."""
    found = []
    for side, name in zip(sides, names, strict=True):
        for start in range(0, len(side), BLOCK):
            bad = ~np.isfinite(side[start : start + BLOCK])
            for row in np.flatnonzero(bad.any(axis=1)):
                column = int(np.argmax(bad[row])) + 1
                found.append(BadCell(start + int(row), f"{column} of {name}", "is not a finite number"))
    return found
