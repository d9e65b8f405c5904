"""Embeddings in arrays: two `.npy` files or a folder of them, memory-mapped; `.npz` and `.safetensors`."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..bad_cells import BadCell
from ..npy_arrays import BLOCK, npy_matrix, npy_vector
from ..table import Source, Table

ORDER, NAME, SUFFIXES, PACKED = 50, "npy", (".npy",), True
BEGINS = (b"\x93NUMPY",)
# Two files come back as a folder.
AS_FOLDER = True
SHOWN = ".npy arrays"
# What the two files of an exported folder are called: the names that are found without being told.
SIDES = ("chosen", "rejected")


def read(path: Path, how: dict[str, Any]) -> Table:
    """Two files "…chosen….npy" and "…rejected….npy", by the name of the first."""
    other = Path(how["partner"]) if how.get("partner") else partner(path)
    first, second = npy_pair(path, other)
    source = Source(path, (path, other), NAME, shown=SHOWN)
    return Table(source, dict(zip(SIDES, (first, second), strict=True)), len(first))


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


def write(source: Source, path: Path, rows: Sequence[int], extra: dict[str, list]) -> None:
    """A folder with `rows` of the two sides as chosen.npy and rejected.npy, one file [rows] for each further column,
    and, of a folder, its other files.
    """
    path.mkdir(exist_ok=True)
    chosen = np.asarray(rows, np.int64)
    half = len(source.files) // 2
    for name, files in zip(SIDES, (source.files[:half], source.files[half:]), strict=True):
        _write_rows(path / f"{name}.npy", [npy_matrix(file, None) for file in files], chosen)
    for name, file in source.how.get("beside", {}).items():
        if name not in extra:
            np.save(path / f"{name}.npy", npy_vector(file, None)[chosen])
    for name, cells in extra.items():
        np.save(path / f"{name}.npy", np.asarray(cells))


def _write_rows(path: Path, parts: list[np.ndarray], rows: np.ndarray) -> None:
    """Write by blocks through a file, not a map, so that a full disk is an error and not a signal."""
    header = {
        "descr": np.lib.format.dtype_to_descr(parts[0].dtype),
        "fortran_order": False,
        "shape": (len(rows), parts[0].shape[1]),
    }
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        begin = 0
        for part in parts:
            mine = rows[(rows >= begin) & (rows < begin + len(part))] - begin
            for start in range(0, len(mine), BLOCK):
                block = part[mine[start : start + BLOCK]].astype(parts[0].dtype, copy=False)
                file.write(np.ascontiguousarray(block).tobytes())
            begin += len(part)


def nonfinite_cells(sides: Iterable[np.ndarray], names: Iterable[str]) -> list[BadCell]:
    """The first entry that is not finite, in each row of each side; `names`: what to call the sides."""
    found = []
    for side, name in zip(sides, names, strict=True):
        for start in range(0, len(side), BLOCK):
            bad = ~np.isfinite(side[start : start + BLOCK])
            for row in np.flatnonzero(bad.any(axis=1)):
                column = int(np.argmax(bad[row])) + 1
                found.append(BadCell(start + int(row), f"{column} of {name}", "is not a finite number"))
    return found
