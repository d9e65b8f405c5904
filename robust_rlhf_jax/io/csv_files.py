"""CSV files: UTF-8, comma, a header. Cells stay texts until someone asks for numbers."""

import contextlib
import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from .bad_cells import BadCell
from .table import Table

# A text may be long; more than this in one cell is an unclosed quotation mark.
LONGEST_CELL = 1 << 27
# What a spreadsheet takes for the beginning of a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def read(path: Path) -> Table:
    """**Raises:** ValueError for what is no CSV in UTF-8, a name that is there twice, or no header."""
    rows = _records(path)
    header = next(rows, None)
    if header is None:
        raise ValueError(f"{path} has no header: give the names of the columns in the first line.")
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise ValueError(f"{path} has the column {twice!r} twice: rename one.")
    bad, body = [], []
    for number, row in enumerate(rows):
        if len(row) != len(header):
            bad.append(BadCell(number, "", f"has {len(row)} cells, the header {len(header)}"))
            row = [None] * len(header)
        body.append(row)
    columns = zip(*body, strict=True) if body else [()] * len(header)
    cells = {name: list(column) for name, column in zip(header, columns, strict=True)}
    return Table(path, "csv", cells, len(body), tuple(bad))


def write(source: Path, path: Path, rows: Sequence[int], extra: dict[str, list]) -> None:
    """The rows of `source` as they are, with further columns; what a spreadsheet would run is made a text."""
    records = _records(source)
    header = next(records)
    kept = {name: i for i, name in enumerate(header) if name not in extra}
    place = {row: i for i, row in enumerate(rows)}
    with open(path, "w", newline="", encoding="utf-8", errors="backslashreplace") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([without_formula(name) for name in (*kept, *extra)])
        for number, record in enumerate(records):
            if number in place:
                mine = [without_formula(record[i]) for i in kept.values()]
                writer.writerow([*mine, *(column[place[number]] for column in extra.values())])


def without_formula(cell: str) -> str:
    """`cell`, behind an apostrophe where a spreadsheet would run it; numbers stay."""
    if not cell.startswith(FORMULA):
        return cell
    with contextlib.suppress(ValueError):
        float(cell)
        return cell
    return f"'{cell}"


def _records(path: Path) -> Iterator[list[str]]:
    before = csv.field_size_limit(LONGEST_CELL)
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            yield from (row for row in csv.reader(file) if row)
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read as CSV in UTF-8 ({error}): write it again.") from None
    finally:
        csv.field_size_limit(before)
