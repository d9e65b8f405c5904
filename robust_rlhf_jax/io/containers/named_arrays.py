"""What archives of named arrays share: one matrix for each side, and vectors beside them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..table import Source, Table

Arrays = dict[str, np.ndarray]


def table_of(source: Source, arrays: Arrays) -> Table:
    """**Raises:** ValueError for names that do not tell the sides."""
    arrays, names = dict(arrays), _sides(source.path, arrays)
    n_rows = len(arrays[names[0]])
    columns = {name: _plain(arrays.pop(name)) for name in names}
    columns |= {name: a.tolist() for name, a in arrays.items() if a.ndim == 1 and len(a) == n_rows}
    notes = tuple(f"The array {name} has no row for each pair." for name in arrays if name not in columns)
    renamed = dict(zip(("chosen", "rejected"), names, strict=True))
    columns = {side: columns.pop(name) for side, name in renamed.items()} | columns
    return Table(source, columns, n_rows, notes=notes)


def with_vectors(source: Source, arrays: Arrays, rows: Sequence[int], extra: dict[str, list]) -> Arrays:
    """The same arrays with `rows` of each that has a row for each pair, and a vector for each further column."""
    n_rows = len(arrays[_sides(source.file, arrays)[0]])
    chosen = np.asarray(rows, np.int64)
    made = {n: a[chosen] if a.ndim and len(a) == n_rows else a for n, a in arrays.items() if n not in extra}
    return made | {name: np.asarray(cells) for name, cells in extra.items()}


def _sides(path: Path, arrays: Arrays) -> tuple[str, str]:
    matrices = [n for n, a in arrays.items() if a.ndim == 2 and _numeric(a)]
    for first in matrices:
        second = first.replace("chosen", "rejected")
        if "chosen" in first and second in arrays:
            if arrays[first].shape != arrays[second].shape or 0 in arrays[first].shape:
                shapes = f"{arrays[first].shape} and {arrays[second].shape}"
                raise ValueError(
                    f"{path}: {first} and {second} have the shapes {shapes}: give both alike, [pairs, features]."
                )
            return first, second
    listed = ", ".join(f"{n} {a.shape}" for n, a in list(arrays.items())[:8]) or "nothing"
    raise ValueError(
        f"{path} holds {listed}: call the arrays of the sides chosen and rejected, [pairs, features] each."
    )


def _numeric(array: np.ndarray) -> bool:
    return array.dtype.kind in "iuf" or array.dtype.name == "bfloat16"


def _plain(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array
