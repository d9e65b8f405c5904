"""Copies of Parquet files, one row group after the other."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Shaped

from robust_rlhf_jax.io.containers.arrow_tables import with_columns
from robust_rlhf_jax.io.containers.parquet_files import pyarrow_with_parquet

from .parquet import ParquetSource
from .parquet_columns import opened

Columns = dict[str, Shaped[np.ndarray, " N"]]


def copy_parquet(
    source: ParquetSource,
    place: Path,
    columns: Columns,
    keep: Bool[np.ndarray, " N"],
    told: Callable[[int, int], None],
) -> None:
    """The rows to `keep` of a file as the file `place`, of several files as files of their names in the folder
    `place`; a file of which no row is left is not written.

    **Raises:** ValueError for files of one name, and for a file that has changed.
    """
    files = source.files
    if len({file.name for file in files}) < len(files):
        raise ValueError("Several files have the same name, and a copy has them in one folder: rename one.")
    begin = 0
    for file in files:
        begin = _copy_file(file, place if len(files) == 1 else place / file.name, begin, columns, keep, told)
    if begin != source.n_pairs:
        raise ValueError(f"{files[0]} has changed since it was opened: open it again.")


def _copy_file(
    file: Path,
    place: Path,
    begin: int,
    columns: Columns,
    keep: Bool[np.ndarray, " N"],
    told: Callable[[int, int], None],
) -> int:
    """The place after the last row of the file, among all rows."""
    pa, writer = pyarrow_with_parquet(), None
    try:
        for table, how in _row_groups(file):
            mine = slice(begin, begin + table.num_rows)
            begin = mine.stop
            rows = np.flatnonzero(keep[mine])
            if len(rows):
                table = with_columns(table, rows, {name: v[mine][rows] for name, v in columns.items()})
                writer = writer or pa.parquet.ParquetWriter(place, table.schema, **how)
                writer.write_table(table, row_group_size=len(rows))
            del table
            told(begin, len(keep))
    finally:
        if writer is not None:
            writer.close()
    return begin


def _row_groups(file: Path) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Each row group as a table, and how it is written; what goes wrong while a copy is written is no damage."""
    with opened(file) as given:
        for i in range(given.num_row_groups):
            yield given.read_row_group(i, use_threads=False), _how_written(given.metadata.row_group(i))


def _how_written(group: Any) -> dict[str, Any]:
    """Compression as of the first column, and dictionaries where there are some: those of numbers take long."""
    columns = [group.column(j) for j in range(group.num_columns)]
    name = columns[0].compression.lower()
    return {
        "compression": "none" if name == "uncompressed" else name,
        "use_dictionary": [c.path_in_schema for c in columns if c.has_dictionary_page],
        "write_page_checksum": True,
    }
