"""Archives of NumPy's arrays (.npz)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..npz_archives import read_arrays
from ..table import Source, Table
from .named_arrays import table_of, with_vectors

ORDER, NAME, SUFFIXES, PACKED = 60, "npz", (".npz",), True
BEGINS = (b"PK\x03\x04",)


def read(path: Path, how: dict[str, Any]) -> Table:
    """**Raises:** ValueError for an archive that is damaged, or whose names do not tell the sides."""
    return table_of(Source(path, (path,), NAME, shown=".npz arrays"), read_arrays(path, ())[0])


def write(source: Source, path: Path, rows: Sequence[int], extra: dict[str, list]) -> None:
    """The same arrays with their `rows`, and a vector for each further column."""
    made = with_vectors(source, read_arrays(source.file, ())[0], rows, extra)
    with open(path, "wb") as file:
        np.savez(file, **made)  # pyright: ignore[reportArgumentType]
