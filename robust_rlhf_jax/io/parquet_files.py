"""Parquet files, by pyarrow."""

from collections.abc import Sequence
from pathlib import Path

from robust_rlhf_jax.preferences import parquet

from .arrow_tables import columns_of, with_columns
from .table import Table


def read(path: Path) -> Table:
    """**Raises:** ValueError for a file that is no readable Parquet; ImportError without pyarrow."""
    columns = parquet.read_columns(path, ("",))
    n_rows = max((len(column) for column in columns.values()), default=0)
    return Table(path, "parquet", columns_of(columns), n_rows)


def write(source: Path, path: Path, rows: Sequence[int], extra: dict[str, list]) -> None:
    """The rows of `source`, types and order of its columns as they are, with further columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table(parquet.read_columns(source, ("",)))
    pq.write_table(with_columns(table, rows, extra), path)
