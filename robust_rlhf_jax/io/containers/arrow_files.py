"""Arrow files and streams (.arrow, .feather, .ipc), by pyarrow."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..table import Source, Table
from .arrow_tables import refusing_damage, with_columns
from .parquet_files import table_of

ORDER, NAME, SUFFIXES, PACKED = 40, "arrow", (".arrow", ".feather", ".ipc"), True
BEGINS = (b"ARROW1",)
KIND = "Arrow data set"


def read(path: Path, how: dict[str, Any]) -> Table:
    """**Raises:** ValueError for a file that is no Arrow data; ImportError without pyarrow."""
    with refusing_damage(path, KIND):
        table = read_part(path)
    return table_of(Source(path, (path,), NAME, shown="Arrow"), table)


def write(source: Source, path: Path, rows: Sequence[int], extra: dict[str, list]) -> None:
    """A file or a stream, as the source is one."""
    import pyarrow as pa

    made = with_columns(read_part(source.file), rows, extra)
    new = pa.ipc.new_file if _is_file(source.file) else pa.ipc.new_stream
    with pa.OSFile(str(path), "wb") as sink, new(sink, made.schema) as writer:
        writer.write_table(made)


def read_part(file: Path):
    """The table of a file, or of a stream: `save_to_disk` writes streams, other writers write files."""
    import pyarrow as pa

    with pa.memory_map(str(file)) as source:
        opened = pa.ipc.open_file(source) if _is_file(file) else pa.ipc.open_stream(source)
        table = opened.read_all()
    table.validate(full=True)  # nothing else sees that an offset is damaged
    return table


def _is_file(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(6) in BEGINS
