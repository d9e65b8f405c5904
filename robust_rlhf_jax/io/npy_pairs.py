"""Embeddings in two `.npy` files, one for each side, memory-mapped, and the folder that they are written back as."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from .bad_cells import BadCell
from .numeric import npy_matrix

# Rows that are read at once.
BLOCK = 4096
# What the two files of an exported folder are called: the names that are found without being told.
SIDES = ("chosen", "rejected")


def npy_pair(chosen: Path, rejected: Path, n_rows: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The arrays [N, p] of the two sides.

    **Raises:** FileNotFoundError; ValueError for arrays that do not match, or not `n_rows`.
    """
    first = npy_matrix(chosen, n_rows)
    second = npy_matrix(rejected, len(first))
    if first.shape != second.shape:
        raise ValueError(
            f"{rejected} has rows of {second.shape[1]} numbers, {chosen} of {first.shape[1]}: give both alike."
        )
    return first, second


def partner(chosen: Path) -> Path:
    """The file of the other side: of "…chosen….npy" it is "…rejected….npy".

    **Raises:** ValueError for a name that tells none.
    """
    if "chosen" not in chosen.name:
        raise ValueError(
            f"{chosen}: name the file of the other side too, or call them chosen.npy and rejected.npy."
        )
    return chosen.with_name(chosen.name.replace("chosen", "rejected"))


def write(
    source: tuple[Path, Path], path: Path, rows: Sequence[int], extra: dict[str, list[float] | list[str]]
) -> None:
    """A folder with `rows` of the two files of `source` as chosen.npy and rejected.npy, and one file [rows] for each
    further column: margin.npy and so on.
    """
    path.mkdir()
    chosen = np.asarray(rows, np.int64)
    for name, side in zip(SIDES, source, strict=True):
        _write_rows(path / f"{name}.npy", npy_matrix(side, None), chosen)
    for name, cells in extra.items():
        np.save(path / f"{name}.npy", np.asarray(cells))


def _write_rows(path: Path, matrix: np.ndarray, rows: np.ndarray) -> None:
    """By blocks through a file, not a map: a full disk is then an error and not a signal."""
    header = {
        "descr": np.lib.format.dtype_to_descr(matrix.dtype),
        "fortran_order": False,
        "shape": (len(rows), matrix.shape[1]),
    }
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, len(rows), BLOCK):
            file.write(np.ascontiguousarray(matrix[rows[start : start + BLOCK]]).tobytes())


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
