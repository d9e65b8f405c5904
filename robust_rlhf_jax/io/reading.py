"""Which container a path gets, and whether the file is what its suffix says.

`loading.py` makes pairs of the table that a container gives.
"""

import dataclasses
import glob
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .containers import BY_SUFFIX, FOLDERS, shards
from .containers.compression import SUFFIXES as COMPRESSED
from .containers.compression import without_compression
from .table import Table

# Files that are known by their first bytes, and what those are called; a container's own are in its `BEGINS`.
MAGIC = {
    b"PAR1": "Parquet",
    b"PK\x03\x04": "a zip archive (or a workbook)",
    b"ARROW1": "an Arrow file",
    b"\x93NUMPY": "a NumPy array",
    b"SQLite": "a database",
    b"%PDF": "a PDF",
}
# What stands in a file's place where a download gave no data: its beginning, what it is, and what helps.
IN_PLACE = (
    (re.compile(rb"version https://git-lfs"), "a pointer of Git LFS", "fetch the data by git lfs pull"),
    (re.compile(rb"\s*<(?:!doctype html|html|\?xml)[\s>]", re.I), "a page of the web", "download the data themselves"),
)  # fmt: skip
# Tables of spreadsheets and statistics programs, which those save as CSV.
OTHER_TABLES = (".xlsx", ".xls", ".ods", ".sav", ".dta", ".sas7bdat", ".rds", ".rdata")
# Files that are never read, and what to do with them.
ARCHIVES, PICKLES = (".zip", ".tar", ".tgz", ".7z", ".rar"), (".pkl", ".pickle", ".pt", ".pth", ".joblib")
# Files beside data that hold none.
BESIDE = ("dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json", "config.json")


def read_table(
    path: str | os.PathLike,
    *,
    split: str | None = None,
    encoding: str | None = None,
    partner: str | os.PathLike | None = None,
) -> Table:
    """The rows of a file in one of `CONTAINERS`, of a folder of such files, or of a pattern ("data/*.parquet").

    `split`: which one, where there are several; `encoding`: of texts, where it is not UTF-8; `partner`: the other
    side's `.npy` file.

    **Raises:** FileNotFoundError; ImportError without a package that the container needs; ValueError for another
    suffix, an empty or damaged file, one that is not what its suffix says, or no rows.

    **Example:**

    >>> import pathlib, tempfile
    >>> from robust_rlhf_jax.io import read_table
    >>> file = pathlib.Path(tempfile.mkdtemp(), "pairs.csv")
    >>> _ = file.write_text("prompt;chosen;rejected\\nHi;Hello!;What?\\n")
    >>> read_table(file).cells("chosen")
    ['Hello!']
    """
    path = Path(path)
    how = {"split": split, "encoding": encoding, "partner": partner}
    table = _of_several(path, how) if _is_pattern(path) or path.is_dir() else _of_file(path, how)
    if not table.n_rows:
        raise ValueError(f"{path} has no rows: give at least one pair.")
    return table


def table_batches(
    path: str | os.PathLike, rows: int, *, split: str | None = None, encoding: str | None = None
) -> Iterator[Table]:
    """The rows of one file in tables of at most `rows`; nothing of what can only be read whole, such as a folder.

    **Raises:** as `read_table`, damage while reading.
    """
    path = Path(path)
    if _is_pattern(path) or path.is_dir():
        return
    container, _ = _container_of(path)
    # With a split `read_table` says what is wrong.
    if hasattr(container, "read_batches") and split is None:
        yield from container.read_batches(path, {"split": split, "encoding": encoding}, rows)


def existing_file(path: str | os.PathLike, suffixes: tuple[str, ...]) -> Path:
    """The path of a file that exists, is not empty, and has one of the suffixes.

    **Raises:** FileNotFoundError, or ValueError for a stream, another suffix, a folder, or 0 bytes.
    """
    path = Path(path)
    if str(path) in ("-", "/dev/stdin") or path.is_relative_to("/dev/fd"):
        raise ValueError(_stream(path, suffixes))
    if Path(without_compression(path)).suffix.lower() not in suffixes:
        raise ValueError(
            f"{path}: suffix {path.suffix!r} is not one of {', '.join(suffixes)}{_advice(path, suffixes)}."
        )
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist: check the path.")
    if path.is_fifo():  # it would be waited for
        raise ValueError(_stream(path, suffixes))
    if not path.is_file():
        raise ValueError(f"{path} is {'a folder' if path.is_dir() else 'no regular file'}: give a file.")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty (0 bytes): write the data again.")
    return path


def _advice(path: Path, suffixes: tuple[str, ...]) -> str:
    """What helps where the suffix is another one."""
    inner = {suffix.lower() for suffix in path.suffixes[-2:]}
    if inner & {*ARCHIVES}:
        return "; unpack the archive and give a file of it, or their folder"
    if inner & {*PICKLES}:
        return "; files of pickle may run code and are not read: write the table as Parquet"
    if inner & {*OTHER_TABLES} and ".csv" in suffixes:
        return "; save the table as CSV"
    return ": give the file the suffix of what it holds"


def _stream(path: Path, suffixes: tuple[str, ...]) -> str:
    return (
        f"{path} is a stream, and no file that can be read twice: write it to a file first, under a name that ends in "
        f"what it holds ({', '.join(suffixes[:5])}, …), and give that."
    )


def _of_file(path: Path, how: dict[str, Any]) -> Table:
    container, inner = _container_of(path)
    table = container.read(path, how)
    if how["split"] is not None and table.source.how.get("split") != how["split"]:
        of_rows = (
            f"; its column split says it of each row: keep those of {how['split']} first"
            if "split" in table.names
            else ""
        )
        raise ValueError(f"{path} is one file and has no splits: leave --split out{of_rows}.")
    suffix = inner + (path.suffix.lower() if path.suffix.lower() in COMPRESSED else "")
    return _with_source(table, suffix="" if getattr(container, "AS_FOLDER", False) else suffix)


def _container_of(path: Path) -> tuple[Any, str]:
    """The container of a file, by its suffix, and that suffix."""
    path = existing_file(path, tuple(BY_SUFFIX))
    inner = Path(without_compression(path)).suffix.lower()
    container = BY_SUFFIX[inner]
    if getattr(container, "PACKED", False) and path.suffix.lower() in COMPRESSED:
        raise ValueError(
            f"{path} is a compressed {inner} file: decompress it first, since {inner} compresses itself."
        )
    _check_content(path, inner)
    return container, inner


def _of_several(path: Path, how: dict[str, Any]) -> Table:
    if path.is_dir():
        folder = next((module for module in FOLDERS if module.holds(path)), None)
        if folder is not None:
            return folder.read(path, how)
        files = [file for file in sorted(path.rglob("*")) if _holds_data(file)]
    else:
        files = [
            Path(name) for name in sorted(glob.glob(str(path), recursive=True)) if _holds_data(Path(name))
        ]
    if not files:
        what = (
            "is a folder without an Arrow data set, arrays or files of pairs"
            if path.is_dir()
            else "names no file of pairs"
        )
        raise ValueError(
            f"{path} {what}: give one that has {', '.join(BY_SUFFIX)} files or that save_to_disk wrote."
        )
    for file in files:
        existing_file(file, tuple(BY_SUFFIX))
        _check_content(file, Path(without_compression(file)).suffix.lower())
    return shards.read(path, files, BY_SUFFIX, how)


def _with_source(table: Table, **changes: Any) -> Table:
    return dataclasses.replace(table, source=dataclasses.replace(table.source, **changes))


def _holds_data(file: Path) -> bool:
    inner = Path(without_compression(file)).suffix.lower()
    return file.is_file() and inner in BY_SUFFIX and file.name not in BESIDE and not file.name.startswith(".")


def _is_pattern(path: Path) -> bool:
    return any(mark in str(path) for mark in "*?[") and not path.exists()


def _check_content(path: Path, inner: str) -> None:
    with open(path, "rb") as file:
        head = file.read(64)
    if head.startswith(tuple(getattr(BY_SUFFIX[inner], "BEGINS", ()))):
        return
    found = next((name for magic, name in MAGIC.items() if head.startswith(magic)), None)
    if found:
        raise ValueError(f"{path} is {found}, whatever its suffix says: rename or write it again.")
    for beginning, what, helps in IN_PLACE:
        if beginning.match(head):
            raise ValueError(f"{path} holds no data but {what}: {helps}.")
