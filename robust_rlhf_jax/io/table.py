"""A file's rows before anyone knows what its columns mean."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from .bad_cells import BadCell


@dataclasses.dataclass(frozen=True)
class Source:
    """Where a table was read, with what its container needs to write it again.

    `path`: as given, maybe a pattern; `files`: the files read, in order; `container`: a name in `CONTAINERS`;
    `suffix`: what an export must end in, empty for a folder; `how`: the container's own (encoding, delimiter, …);
    `shown`: what people call the container, where not by its name; `only_texts`: whether cells are texts, numbers
    too; `ragged`: whether a row may lack columns, so that one file of several may.

    **Example:**

    >>> import pathlib, tempfile
    >>> from robust_rlhf_jax.io import read_table
    >>> file = pathlib.Path(tempfile.mkdtemp(), "pairs.csv")
    >>> _ = file.write_text("prompt;chosen;rejected\\nHi;Hello!;What?\\n")
    >>> source = read_table(file).source
    >>> source.container, source.suffix, source.how["delimiter"]
    ('csv', '.csv', ';')
    """

    path: Path
    files: tuple[Path, ...]
    container: str
    suffix: str = ""
    compression: str = ""
    how: dict[str, Any] = dataclasses.field(default_factory=dict)
    shown: str = ""
    only_texts: bool = False
    ragged: bool = False

    @property
    def file(self) -> Path:
        return self.files[0]


@dataclasses.dataclass(frozen=True)
class Table:
    """Columns of a file by name, each with `n_rows` cells: a list of Python values, an array, or a pyarrow column.

    `bad`: rows that could not be read, whose cells are None; `notes`: what a reader should be told about the file.

    **Example:**

    >>> import pathlib, tempfile
    >>> from robust_rlhf_jax.io import read_table
    >>> file = pathlib.Path(tempfile.mkdtemp(), "pairs.csv")
    >>> _ = file.write_text("prompt,chosen,rejected\\nHi,Hello!,What?\\n")
    >>> table = read_table(file)
    >>> table.n_rows, table.names, table.cells("rejected")
    (1, ('prompt', 'chosen', 'rejected'), ['What?'])
    """

    source: Source
    columns: dict[str, Any]
    n_rows: int
    bad: tuple[BadCell, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        return self.source.path

    @property
    def format(self) -> str:
        return self.source.container.split()[0]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.columns)

    def cells(self, name: str | None) -> list:
        """The column as Python values, None where a cell is missing; of no column (`name` None) all are."""
        if name is None:
            return [None] * self.n_rows
        column = self.columns[name]
        if isinstance(column, np.ndarray):
            return column.tolist()
        return column if isinstance(column, list) else column.to_pylist()

    def first(self, name: str) -> Any:
        """The first cell that is not missing, or None."""
        return next((cell for cell in self.some(name) if cell is not None and cell != ""), None)

    def some(self, name: str, most: int = 200) -> list:
        """The first cells, and of an array those of its first row."""
        column = self.columns[name]
        if isinstance(column, np.ndarray):
            return column[:1].tolist()
        return column[:most] if isinstance(column, list) else column.slice(0, most).to_pylist()


class Container(Protocol):
    """A way in which files hold rows: what a module in `containers/` has.

    `NAME`; `SUFFIXES` that it reads; `read(path, how)` its rows (how: options such as `encoding`). The rest as needed:

    - `write(source, path, rows, extra)`: the file at `path` with some rows of it and further columns; without it
      nothing is exported.
    - `lines(source)`: of each row the line of the file in which it begins, from 1, where it has lines.
    - `holds(path)`: whether a folder is one.
    - `PACKED = True`: it compresses itself, and is not read from a compressed file.
    - `BEGINS`: first bytes of its files, where others are known by them (`MAGIC` in `reading.py`).
    - `read_batches(path, how, rows)`: its rows in tables of `rows`, for what need not fit into memory.
    - `AS_FOLDER = True`: what is written of a file is a folder.
    - `ORDER`: its place among the others.
    """

    NAME: str
    SUFFIXES: tuple[str, ...]

    def read(self, path: Path, how: dict[str, Any]) -> Table: ...

    def write(self, source: Source, path: Path, rows: Sequence[int], extra: dict[str, list]) -> None: ...
