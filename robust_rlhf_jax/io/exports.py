"""Files written back in the format they came in, whole or not at all."""

import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .pairs import Pairs
from .reading import READERS


def check_export(pairs_path: Path, form: str, path: Path, option: str) -> None:
    """**Raises:** ValueError for a place to which this format cannot be written, said before any work."""
    if form not in READERS:
        raise ValueError(
            f"{option} {path}: {pairs_path} has no columns to add to; --out writes suspects.csv."
        )
    wanted = "" if form == "arrow" else f".{form}"
    if path.suffix.lower() != wanted and form != "arrow":
        raise ValueError(
            f"{option} {path}: {pairs_path} is a {wanted} file, so give a name that ends in {wanted}."
        )
    if path.resolve() == pairs_path.resolve():
        raise ValueError(f"{option} {path} is the file itself: give another name.")
    if path.is_dir():
        raise ValueError(f"{option} {path} is a folder that exists: give another name.")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"{option} {path}: the folder {path.parent} does not exist: make it first.")


def export(
    pairs: Pairs, path: str | os.PathLike, columns: dict[str, list], keep: Iterable[bool] | None = None
) -> Path:
    """Write the usable rows of `pairs` with further `columns`, one cell a pair; with `keep`, those rows alone.

    Cells, types and the order of columns stay as they are; what a spreadsheet would run as a formula becomes a text.

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
    READERS[pairs.format].write(pairs.path, path, rows, cells)


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
