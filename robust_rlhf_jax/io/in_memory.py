"""Tables of rows that a program holds already: data frames, Arrow tables, data sets of `datasets`, columns, dicts."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .frames import is_frame
from .table import Source, Table

# What messages call it in place of a path.
NAME = Path("the data set")


def table_in_memory(data: Any, split: str | None = None) -> Table:
    """`data` as a `Table` without a file.

    `data`: a frame of pandas or Polars, a pyarrow table, a `datasets.Dataset`, a dict of columns, or a sequence of
    dicts, one a row; of a `datasets.DatasetDict`, or any dict of those, the `split`.

    **Raises:** TypeError for anything else; ValueError for no rows, columns of unequal length, a name that is there
    twice, or splits of which none is chosen.
    """
    data = _chosen_split(data, split)
    shown, columns = _columns(data)
    lengths = {name: len(column) for name, column in columns.items()}
    n_rows = max(lengths.values(), default=0)
    short = [name for name, length in lengths.items() if length < n_rows]
    if short:
        raise ValueError(f"{NAME}: column {short[0]} has {lengths[short[0]]} cells and another {n_rows}.")
    if not n_rows:
        raise ValueError(f"{NAME} has no rows: give at least one pair.")
    return Table(Source(NAME, (), "memory", shown=shown), columns, n_rows)


def _chosen_split(data: Any, split: str | None) -> Any:
    splits = list(data) if isinstance(data, Mapping) and data and all(map(_is_table, data.values())) else []
    if not splits and split is not None:
        raise ValueError(f"{NAME} has no splits: leave out split={split!r}.")
    if split is None and len(splits) > 1:
        raise ValueError(f"{NAME} holds the splits {', '.join(splits)}: choose one by split={splits[0]!r}.")
    if split is not None and split not in splits:
        raise ValueError(f"{NAME} has no split {split!r}: it holds {', '.join(splits)}.")
    return data[split or splits[0]] if splits else data


def _is_table(data: Any) -> bool:
    return is_frame(data) or _is_arrow(data)


def _columns(data: Any) -> tuple[str, dict[str, Any]]:
    """What people call it, and its columns by name."""
    if _is_arrow(data):
        return _of_arrow(data)
    if is_frame(data):
        names = [str(name) for name in data.columns]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise ValueError(f"{NAME}: the column {twice[0]!r} is there twice: rename one.")
        return "data frame", {str(name): _cells(data[name]) for name in data.columns}
    if isinstance(data, Mapping):
        return "columns", {str(name): _cells(column) for name, column in data.items()}
    if (
        isinstance(data, Sequence)
        and not isinstance(data, str)
        and all(isinstance(row, Mapping) for row in data)
    ):
        names = dict.fromkeys(name for row in data for name in row)
        return "rows", {str(name): [_cell(row.get(name)) for row in data] for name in names}
    raise TypeError(
        f"data is of the type {type(data).__name__}: give the path of a file, a data frame, an Arrow table, a data set "
        "of the package datasets, a dict of columns, or a list of dicts."
    )


def _is_arrow(data: Any) -> bool:
    """A pyarrow table or a `datasets.Dataset`, not a stream of rows."""
    return hasattr(data, "column_names") and hasattr(data, "__len__") and not isinstance(data, Mapping)


def _of_arrow(data: Any) -> tuple[str, dict[str, Any]]:
    from .containers.arrow_tables import columns_of

    if not hasattr(data, "with_format"):
        return "Arrow table", columns_of(data)
    names = {name: feature.names for name, feature in data.features.items() if hasattr(feature, "names")}
    # With the rows that the data set selects, in its order.
    return "data set", columns_of(data.with_format("arrow")[:], names)


def _cells(column: Any) -> Any:
    """A numeric array as it is, everything else as a list of Python values."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        return column
    listed = getattr(column, "tolist", None) or getattr(column, "to_list", None)  # of pandas, of Polars
    return [_cell(value) for value in (column if listed is None else listed())]


def _cell(value: Any) -> Any:
    """A cell as JSON would have it: None for pandas' ways of saying that nothing is there."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    missing = (isinstance(value, float) and value != value) or type(value).__name__ in ("NAType", "NaTType")
    return None if missing else value
