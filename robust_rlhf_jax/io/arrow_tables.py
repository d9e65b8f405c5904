"""What Parquet files and Arrow data sets share: pyarrow tables."""

from collections.abc import Sequence
from typing import Any


def columns_of(columns: dict[str, Any]) -> dict[str, Any]:
    """Columns whose types are plain: texts of a dictionary or a view are texts."""
    import pyarrow as pa

    plain = {}
    for name, column in columns.items():
        kind = column.type
        if pa.types.is_dictionary(kind):
            column = column.cast(kind.value_type)
        plain[name] = column
    return plain


def with_columns(table, rows: Sequence[int], extra: dict[str, list]):
    """The `rows` of a pyarrow table; `extra` columns take the place of those of their name, or come last."""
    import pyarrow as pa

    table = table.take(pa.array(rows, pa.int64())).replace_schema_metadata(None)
    for name, cells in extra.items():
        if name in table.column_names:
            table = table.drop_columns([name])
        table = table.append_column(name, pa.array(cells))
    return table
