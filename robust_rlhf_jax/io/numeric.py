"""Numbers of a table: features, embeddings and scores, a matrix for each side."""

import re
from typing import Any

import numpy as np
from jaxtyping import Float

from .bad_cells import NOT_NUMERIC, BadCell, shown
from .schemas.base import structured
from .table import Table

# Whole numbers up to 999, or with a point before each three digits.
THOUSANDS = re.compile(r"-?[1-9]\d{0,2}(?:\.\d{3})*|0")


def matrix(table: Table, name: str) -> tuple[Float[np.ndarray, "N p"], list[BadCell]]:
    """A column of numbers [N, 1] or of lists of numbers [N, p] in float64 (lists in their own float).

    Texts of numbers are numbers only where all cells are texts, as in CSV. A bad cell's row is 0:
    missing, not a number, not finite, or a list of another length than the first.

    **Raises:** ValueError for numbers whose points part thousands.
    """
    column = table.columns[name]
    if isinstance(column, np.ndarray):
        return (column if column.ndim > 1 else column[:, None]), []
    if not isinstance(column, list):
        fast = _arrow(column)
        if fast is not None:
            return _finite(fast, name, [])
    cells = table.cells(name)
    from_text = table.source.only_texts
    if from_text:
        _check_thousands(name, cells)
        # lists, too
        cells = [structured(cell) for cell in cells]
    width = next((len(cell) for cell in cells if isinstance(cell, list) and cell), None)
    values, bad = np.zeros((len(cells), width or 1)), []
    for row, cell in enumerate(cells):
        why = _wrong(cell, width)
        if not why:
            try:
                values[row] = _numbers(cell, from_text)
            except (TypeError, ValueError, OverflowError):
                why = f"{NOT_NUMERIC}{shown(cell)}"
        if why:
            bad.append(BadCell(row, name, why))
            values[row] = 0.0
    return _finite(values, name, bad)


def _check_thousands(name: str, cells: list) -> None:
    """**Raises:** ValueError for whole numbers whose points part thousands: 12.500 beside 740; who writes the zeros of
    12.500 writes those of 740.000, too.
    """
    texts = [cell for cell in cells if isinstance(cell, str)]
    if not any("." in cell for cell in texts) or not all(
        THOUSANDS.fullmatch(cell.strip()) for cell in texts if cell.strip()
    ):
        return
    there = [cell.strip() for cell in texts]
    ends = next((cell for cell in there if "." in cell and cell.endswith("0")), None)
    plain = next((cell for cell in there if len(cell.lstrip("-")) == 3), None)
    if ends is not None and plain is not None:
        raise ValueError(
            f"column {name} holds {shown(ends)} beside {shown(plain)}, as if points separated thousands: write numbers "
            "with a decimal point and no other marks, such as 17500 for 17.500"
        )


def _wrong(cell: Any, width: int | None) -> str:
    if cell is None or cell == "" or cell == []:
        return "is missing"
    if width is None:
        return ""
    if not isinstance(cell, list):
        return f"holds {shown(cell)} where other rows have lists"
    return "" if len(cell) == width else f"has {len(cell)} numbers, the first row {width}"


def _numbers(cell: Any, from_text: bool):
    cells = cell if isinstance(cell, list) else [cell]
    return [_number(one, from_text) for one in cells]


def _number(cell: Any, from_text: bool) -> float:
    if isinstance(cell, bool) or (isinstance(cell, str) and (not from_text or "_" in cell)):
        raise TypeError
    return float(cell)


def _finite(values: np.ndarray, name: str, bad: list[BadCell]) -> tuple[np.ndarray, list[BadCell]]:
    wrong = np.argwhere(~np.isfinite(values))
    seen = {cell.row for cell in bad}
    for row, place in wrong:
        if row not in seen:
            entry = f" at entry {place + 1}" if values.shape[1] > 1 else ""
            bad.append(BadCell(int(row), name, f"is {values[row, place]}{entry}, not a finite number"))
            seen.add(row)
    if len(wrong):
        values = np.where(np.isfinite(values), values, 0.0)
    return values, bad


def _arrow(column: Any) -> np.ndarray | None:
    """A pyarrow column without missing cells, of numbers or of lists of one length, without a copy per cell."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if column.null_count:
        return None
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return column.cast(pa.float64(), safe=False).to_numpy()[:, None]
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if not any(test(kind) for test in lists) or not pa.types.is_floating(kind.value_type):
        return None
    flat = pc.list_flatten(column)  # pyright: ignore[reportAttributeAccessIssue]
    lengths = pc.unique(pc.list_value_length(column))  # pyright: ignore[reportAttributeAccessIssue]
    if flat.null_count or len(lengths) != 1 or not lengths[0].as_py():
        return None
    values = flat.to_numpy()
    values = values.astype(np.float32) if values.dtype == np.float16 else values
    return values.reshape(len(column), -1)
