"""A file's rows before anyone knows what its columns mean."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from .bad_cells import BadCell


@dataclasses.dataclass(frozen=True)
class Table:
    """Columns of a file by name, each with `n_rows` cells: a list of Python values, or a pyarrow column.

    `format`: a name in `READERS`; `bad`: rows that could not be read, whose cells are None.
    """

    path: Path
    format: str
    columns: dict[str, Any]
    n_rows: int
    bad: tuple[BadCell, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.columns)

    def cells(self, name: str) -> list:
        """The column as Python values; None where a cell is missing."""
        column = self.columns[name]
        return column if isinstance(column, list) else column.to_pylist()

    def first(self, name: str) -> object:
        """The first cell that is not missing, or None."""
        column = self.columns[name]
        if not isinstance(column, list):
            column = column.drop_null().slice(0, 1).to_pylist()
        return next((cell for cell in column if cell is not None and cell != ""), None)


class Reader(Protocol):
    """One file format: `read` gives its rows, `write` the file at `path` with some rows and further columns."""

    def read(self, path: Path) -> Table: ...

    def write(self, source: Path, path: Path, rows: Sequence[int], extra: dict[str, list]) -> None: ...
