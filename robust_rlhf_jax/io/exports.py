"""Files written back in the format they came in, whole or not at all."""

import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from . import npy_pairs
from .pairs import Pairs
from .reading import READERS

# Each has `write(source, path, rows, extra)`.
WRITERS = {**READERS, "npy": npy_pairs}
# Formats that are folders.
FOLDERS = ("arrow", "npy")


def check_export(pairs_path: Path, form: str, path: Path, option: str) -> None:
    """**Raises:** ValueError for a place to which this format cannot be written, said before any work."""
    if form not in WRITERS:
        raise ValueError(
            f"{option} {path}: {pairs_path} has no columns to add to; --out writes suspects.csv."
        )
    if form == "npy" and path.suffix.lower() == ".npy":
        raise ValueError(
            f"{option} {path}: two .npy files are written as a folder, so give a name without a suffix."
        )
    if form not in FOLDERS and path.suffix.lower() != f".{form}":
        raise ValueError(
            f"{option} {path}: {pairs_path} is a .{form} file, so give a name that ends in .{form}."
        )
    if path.resolve() == pairs_path.resolve():
        raise ValueError(f"{option} {path} is the file itself: give another name.")
    if path.is_dir():
        raise ValueError(f"{option} {path} is a folder that exists: give another name.")
    if form in FOLDERS and path.exists():
        raise ValueError(
            f"{option} {path} is a file that exists, and a folder would be written: give another name."
        )
    if not path.absolute().parent.is_dir():
        raise ValueError(f"{option} {path}: the folder {path.parent} does not exist: make it first.")


def export(
    pairs: Pairs, path: str | os.PathLike, columns: dict[str, list], keep: Iterable[bool] | None = None
) -> Path:
    """Write the usable rows of `pairs` with further `columns`, one cell a pair; with `keep`, those rows alone.

    Cells, types and the order of columns stay as they are; what a spreadsheet would run as a formula becomes a text.
    Two `.npy` files become a folder of `.npy` files, one for each side and each further column.

    **Raises:** ValueError for another suffix, the file itself, or a folder that exists.
    """
    path = Path(path)
    check_export(pairs.path, pairs.format, path, "export")
    with whole_path(path) as scratch:
        write_rows(pairs, scratch, columns, keep)
    return path


def write_rows(
    pairs: Pairs, path: Path, columns: dict[str, list], keep: Iterable[bool] | None = None
) -> None:
    """What `export` writes, at a `path` that `whole_path` gave."""
    chosen = range(pairs.n_pairs) if keep is None else [i for i, kept in enumerate(keep) if kept]
    rows = [int(pairs.rows[i]) for i in chosen]
    cells = {name: [column[i] for i in chosen] for name, column in columns.items()}
    source = pairs.path if pairs.partner is None else (pairs.path, pairs.partner)
    WRITERS[pairs.format].write(source, path, rows, cells)


@contextmanager
def whole_path(path: Path) -> Iterator[Path]:
    """A name beside `path`, of a file or a folder, that takes its place when the block ends well."""
    scratch = path.with_name(f".{path.name}.{uuid.uuid4().hex}.unfinished")
    try:
        yield scratch
        os.replace(scratch, path)
    finally:
        if scratch.is_dir():
            shutil.rmtree(scratch, ignore_errors=True)
        scratch.unlink(missing_ok=True)
