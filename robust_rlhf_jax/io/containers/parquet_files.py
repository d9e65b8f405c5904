"""Parquet files, by pyarrow."""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from robust_rlhf_jax.memory import check_room

from ..table import Source, Table
from .arrow_tables import columns_of, with_columns

NAME, SUFFIXES = "parquet", (".parquet", ".pq")
MAGIC = b"PAR1"


def read(path: Path, how: dict[str, Any]) -> Table:
    """**Raises:** ValueError for a file that is no readable Parquet; ImportError without pyarrow."""
    return table_of(Source(path, (path,), NAME), read_file(path))


def table_of(source: Source, table: Any) -> Table:
    try:
        return Table(source, columns_of(table), table.num_rows)
    except ValueError as error:
        raise ValueError(f"{source.path}: {error}.") from None


def write(source: Source, path: Path, rows: Sequence[int], extra: dict[str, list]) -> None:
    """The rows of `source`, with types, order and metadata of its columns, its compression, and further columns."""
    pa = pyarrow_with_parquet()
    pa.parquet.write_table(
        with_columns(read_file(source.file), rows, extra), path, compression=_codec(pa, source.file)
    )


def read_file(path: Path, names: list[str] | None = None):
    """The pyarrow table of one file, or some of its columns.

    **Raises:** ValueError for damaged bytes; ImportError without pyarrow.
    """
    pa = pyarrow_with_parquet()
    with refusing_damage(path), pa.parquet.ParquetFile(path, page_checksum_verification=True) as file:
        # Not read_table: it would make columns of folders named key=value in the path.
        wanted = file.metadata.num_columns if names is None else len(names)
        check_room(f"{path}: reading it", 8 * wanted * file.metadata.num_rows, "write it in smaller files")
        table = file.read(columns=names)
        table.validate(full=True)
        return table


def _codec(pa: Any, path: Path) -> str:
    with pa.parquet.ParquetFile(path) as file:
        if not file.metadata.num_row_groups or not file.metadata.num_columns:
            return "snappy"
        name = file.metadata.row_group(0).column(0).compression.lower()
    return "none" if name == "uncompressed" else name


def pyarrow_with_parquet():
    """The package, imported.

    **Raises:** ImportError in one sentence without the extra `cli`.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            "Parquet files need pyarrow: install it with pip install 'robust-rlhf-jax[cli]'."
        ) from error
    return pyarrow


@contextlib.contextmanager
def refusing_damage(path: Path):
    """Make one ValueError of all that pyarrow raises on damaged bytes."""
    pa = pyarrow_with_parquet()
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError, KeyError, TypeError, MemoryError) as error:
        reason = str(error).split("\n")[0].rstrip(".")
        raise ValueError(f"{path} is not a readable Parquet file ({reason}): write it again.") from None
