"""Which reader a path gets, and whether the file is what its suffix says.

`pairs.py` (`load_pairs`) makes pairs of the table that a reader gives.
"""

import os
from pathlib import Path
from types import ModuleType

from robust_rlhf_jax.preferences.tables import existing_file

from . import arrow_folders, csv_files, jsonl_files, parquet_files
from .table import Table

# Each has `read(path)` and `write(source, path, rows, extra)`: the protocol `Reader`.
READERS: dict[str, ModuleType] = {
    "csv": csv_files,
    "jsonl": jsonl_files,
    "parquet": parquet_files,
    "arrow": arrow_folders,
}
SUFFIXES = (".csv", ".jsonl", ".parquet")
# First bytes by which other formats are known.
MAGIC = {
    b"PAR1": "Parquet",
    b"PK\x03\x04": "a zip archive (or a workbook)",
    b"\x1f\x8b": "compressed by gzip",
    b"\x28\xb5\x2f\xfd": "compressed by zstd",
    b"ARROW1": "an Arrow file",
    b"\x93NUMPY": "a NumPy array",
    b"SQLite": "a database",
    b"%PDF": "a PDF",
}


def read_table(path: str | os.PathLike) -> Table:
    """The rows of a CSV, JSON-lines or Parquet file, or of an Arrow data set in a folder.

    **Raises:** FileNotFoundError; ImportError for Parquet and Arrow without pyarrow; ValueError for another suffix, an
    empty or damaged file, one that is not what its suffix says, or no rows.
    """
    path = Path(path)
    if path.is_dir():
        table = arrow_folders.read(path)
    else:
        path = existing_file(path, SUFFIXES)
        _check_content(path)
        table = READERS[path.suffix.lower().removeprefix(".")].read(path)
    if not table.n_rows:
        raise ValueError(f"{path} has no rows: give at least one pair.")
    return table


def _check_content(path: Path) -> None:
    with open(path, "rb") as file:
        head = file.read(8)
    found = next((name for magic, name in MAGIC.items() if head.startswith(magic)), None)
    wanted = "Parquet" if path.suffix.lower() == ".parquet" else None
    if found != wanted and (found or wanted):
        is_what = f"is {found}" if found else "does not begin as Parquet does"
        raise ValueError(f"{path} {is_what}, whatever its suffix says: rename or write it again.")
