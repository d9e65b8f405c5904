"""Parquet files, by pyarrow."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from robust_rlhf_jax.memory import check_room

from ..table import Source, Table
from .arrow_tables import columns_of, refusing_damage, with_columns

ORDER, NAME, SUFFIXES, PACKED = 30, "parquet", (".parquet", ".pq"), True
MAGIC, KIND = b"PAR1", "Parquet file"
BEGINS = (MAGIC,)


def read(path: Path, how: dict[str, Any]) -> Table:
    """**Raises:** ValueError for a file that is no readable Parquet; ImportError without pyarrow."""
    with open(path, "rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise ValueError(
                f"{path} does not begin as Parquet does, whatever its suffix says: rename or write it again."
            )
    return table_of(Source(path, (path,), NAME, shown="Parquet"), read_file(path))


def read_batches(path: Path, how: dict[str, Any], rows: int) -> Iterator[Table]:
    """The rows in tables of at most `rows`.

    **Raises:** as `read`, and for damage while reading.
    """
    pa, source = pyarrow_with_parquet(), Source(path, (path,), NAME, shown="Parquet")
    options = {"pre_buffer": False, "page_checksum_verification": True}
    with refusing_damage(path, KIND), pa.parquet.ParquetFile(path, **options) as file:
        for batch in file.iter_batches(rows, use_threads=False):
            table = pa.Table.from_batches([batch]).replace_schema_metadata(file.schema_arrow.metadata)
            yield table_of(source, table)


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


def read_file(path: Path):
    """The pyarrow table of one file.

    **Raises:** ValueError for damaged bytes; ImportError without pyarrow.
    """
    pa = pyarrow_with_parquet()
    with refusing_damage(path, KIND), pa.parquet.ParquetFile(path, page_checksum_verification=True) as file:
        # Not read_table: it would make columns of folders named key=value in the path.
        size = 8 * file.metadata.num_columns * file.metadata.num_rows
        check_room(f"{path}: reading it", size, "write it in smaller files")
        table = file.read()
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
