"""Cells that cannot be used: collected while a file is read, then refused in one sentence or counted.

Each reason is worded where its cells are read: `texts.py`, `labels.py`, `numeric.py`, `role_cells.py`, in
`schemas/` and in the files' readers.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

# Before the cell that a column of numbers holds instead: most often the whole column is of another kind.
NOT_NUMERIC = "holds no number but "


class BadCell(NamedTuple):
    """`row` counts from 0; `column` may be empty where a whole row is meant; `reason` follows "row 3, column x".

    **Example:**

    >>> import pathlib, tempfile
    >>> from robust_rlhf_jax.io import load_pairs
    >>> file = pathlib.Path(tempfile.mkdtemp(), "pairs.csv")
    >>> _ = file.write_text("chosen_price,rejected_price\\n2400,4000\\n,3000\\n")
    >>> load_pairs(file, skip_bad=1).bad[0].sentence
    'row 2, column chosen_price is missing'
    """

    row: int
    column: str
    reason: str

    @property
    def sentence(self) -> str:
        """Row, column and reason, without a full stop."""
        if self.reason.startswith(NOT_NUMERIC):
            return f"column {self.column} is not numeric (row {self.row + 1} holds {self.reason[len(NOT_NUMERIC) :]})"
        return f"{self.place} {self.reason}"

    @property
    def place(self) -> str:
        return f"row {self.row + 1}, column {self.column}" if self.column else f"row {self.row + 1}"


def check_skip_bad(skip_bad: float) -> None:
    """**Raises:** ValueError for a `skip_bad` of `usable_rows` that is neither a count nor a share."""
    if not 0 <= skip_bad < np.inf:
        raise ValueError(f"skip_bad={skip_bad} must be 0 or more: a count of rows, or below 1 a share.")


def usable_rows(
    path: Path,
    n_rows: int,
    bad: Iterable[BadCell],
    skip_bad: float,
    in_file: Callable[[BadCell], BadCell] = lambda cell: cell,
    what: str = "rows",
) -> Int[np.ndarray, " n"]:
    """Rows without a bad cell, in order, where `skip_bad` allows to go on without the others.

    `skip_bad`: how many rows may be unusable, a count from 1 on, below 1 a share of the rows; 0: none. `in_file`: the
    cell of the file that a bad one is; `what`: what the rows are called.

    **Raises:** ValueError that names the first bad cell, and how many rows are bad; or that no row is left.
    """
    bad = sorted(bad, key=lambda cell: cell.row)
    rows = {cell.row for cell in bad}
    allowed = skip_bad if skip_bad >= 1 else skip_bad * n_rows
    if len(rows) > allowed:
        raise ValueError(f"{path}: {in_file(bad[0]).sentence}{_how_many(len(rows), n_rows, skip_bad, what)}.")
    kept = np.setdiff1d(np.arange(n_rows), np.fromiter(rows, int, len(rows)))
    if not len(kept):
        raise ValueError(f"{path} has no usable row: give at least one pair.")
    return kept


def _how_many(bad: int, n_rows: int, skip_bad: float, what: str) -> str:
    if bad == n_rows:
        return f" ({bad} of {n_rows} {what} are unusable: none is left)"
    if bad == 1 and not skip_bad:
        return ": mend or drop that row, or go on without it by --skip-bad 1"
    more = f"more than --skip-bad {skip_bad:g}; mend them" if skip_bad else f"mend them, or --skip-bad {bad}"
    return f" ({bad} of {n_rows} {what} are unusable: {more})"


def shown(cell: object) -> str:
    """A cell in a sentence: its repr, cut to 40 characters."""
    text = repr(cell)
    return text if len(text) <= 40 else text[:37] + "..."
