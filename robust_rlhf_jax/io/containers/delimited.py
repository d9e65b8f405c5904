"""CSV and TSV files: a header, then rows; cells stay texts until someone asks for numbers."""

import contextlib
import csv
import dataclasses
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from ..bad_cells import BadCell
from ..table import Source, Table
from .compression import compression_of
from .encodings import Letters, letters_of, open_text, write_text

ORDER, NAME, SUFFIXES = 10, "csv", (".csv", ".tsv", ".tab")
# A text may be long; more than this in one cell is an unclosed quotation mark.
LONGEST_CELL = 1 << 27
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
# What a spreadsheet writes before the header to say by what cells are separated.
SEP = re.compile(r"sep=[,;\t|]\r?\n", re.I)
# Records that say which delimiter a file has, and lines that the last cell of a truncated file may have.
SNIFFED, CUT_LINES = 50, 200


def read(path: Path, how: dict[str, Any]) -> Table:
    """**Raises:** ValueError for what is no table, a name that is there twice, or no header."""
    source = _source(path, how)
    letters, delimiter = source.how["letters"], source.how["delimiter"]
    records = _records(source)
    table = _table(source, _names(path, next(records, None)), records)
    cut = _cut_short(source, table.n_rows, letters)
    said = () if delimiter == "," else (f"Cells are separated by {DELIMITERS[delimiter]}.",)
    notes = (*((letters.note,) if letters.note else ()), *said)
    return dataclasses.replace(table, bad=(*table.bad, *cut), notes=notes)


def read_batches(path: Path, how: dict[str, Any], rows: int) -> Iterator[Table]:
    """The rows in tables of `rows`.

    **Raises:** as `read`.
    """
    source = _source(path, how)
    records = _records(source)
    header = _names(path, next(records, None))
    some = list(itertools.islice(records, rows))
    while some:
        after = list(itertools.islice(records, rows))
        table = _table(source, header, some)
        cut = () if after else _cut_short(source, table.n_rows, source.how["letters"])
        yield dataclasses.replace(table, bad=(*table.bad, *cut))
        some = after


def _source(path: Path, how: dict[str, Any]) -> Source:
    compression = compression_of(path)
    letters = letters_of(path, compression, how.get("encoding"))
    told = _told(path, compression, letters)
    delimiter = _delimiter(path, compression, letters) if told is None else told[4]
    own = {
        "letters": letters,
        "delimiter": delimiter,
        "ends": _line_ends(path, compression, letters),
        "told": told,
    }
    own["quoted"] = _quoted(path, compression, letters, delimiter)
    shown = "TSV" if delimiter == "\t" else "CSV"
    return Source(path, (path,), NAME, "", compression, own, shown, only_texts=True)


def _table(source: Source, header: list[str], records: Iterable[list[str]]) -> Table:
    bad, body = [], []
    for number, row in enumerate(records):
        fits = len(row) == len(header)
        if not fits:
            bad.append(BadCell(number, "", f"has {len(row)} cells, the header {len(header)}"))
        body.append(row if fits else [None] * len(header))
    columns = zip(*body, strict=True) if body else [()] * len(header)
    cells = {name: list(column) for name, column in zip(header, columns, strict=True)}
    return Table(source, cells, len(body), tuple(bad))


def write(source: Source, path: Path, rows: Sequence[int], extra: dict[str, list]) -> None:
    """The rows of `source` as they are, with further columns; those of the same name give way."""
    records = _records(source)
    header = next(records)
    kept = [i for i, name in enumerate(header) if name not in extra]
    place = {row: i for i, row in enumerate(rows)}
    encoding = source.how["letters"].encoding
    with write_text(path, source.compression, encoding) as file:
        file.write(source.how["told"] or "")
        writer = csv.writer(file, lineterminator=source.how["ends"], **_style(source.how))
        writer.writerow([*(header[i] for i in kept), *extra])
        for number, record in enumerate(records):
            if number in place:
                added = (column[place[number]] for column in extra.values())
                writer.writerow([*(record[i] for i in kept), *added])


def _names(path: Path, header: list[str] | None) -> list[str]:
    """The header; one unnamed column, an index, is called ""; more of them are called by their place."""
    if header is None:
        raise ValueError(f"{path} has no header: give the names of the columns in the first line.")
    unnamed = header.index("") if "" in header else -1
    names = [name or ("" if i == unnamed else f"column {i + 1}") for i, name in enumerate(header)]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"{path} has the column {twice!r} twice: rename one.")
    return names


def _records(source: Source) -> Iterator[list[str]]:
    before = csv.field_size_limit(LONGEST_CELL)
    letters, path = source.how["letters"], source.file
    try:
        with _open(path, source.compression, letters) as file:
            yield from (row for row in csv.reader(file, **_style(source.how)) if row)
    except (csv.Error, UnicodeError) as error:
        raise ValueError(f"{path} cannot be read as CSV ({error}): write it again.") from None
    finally:
        csv.field_size_limit(before)


@contextlib.contextmanager
def _open(path: Path, compression: str, letters: Letters) -> Iterator[TextIO]:
    """The text from the header on."""
    told = _told(path, compression, letters)
    with open_text(path, compression, letters) as file:
        if told is not None:
            file.readline()
        yield file


def _told(path: Path, compression: str, letters: Letters) -> str | None:
    """The line before the header that says by what cells are separated, or None."""
    with open_text(path, compression, letters) as file:
        first = file.readline(len("sep=;\r\n"))
    return first if SEP.fullmatch(first) else None


def _delimiter(path: Path, compression: str, letters: Letters) -> str:
    """The delimiter by which the header has the most cells, if the next records have as many; else a comma."""
    usual = "\t" if ".tsv" in path.name.lower() or ".tab" in path.name.lower() else ","
    with _open(path, compression, letters) as file:
        lines = file.read(1 << 18).splitlines(keepends=True)
    if len(lines) > 1 and not lines[-1].endswith(("\n", "\r")):
        lines = lines[:-1]
    found = {mark: _width(lines, mark) for mark in (usual, *DELIMITERS)}
    best = max(found, key=lambda mark: found[mark])
    return usual if found[usual] > 1 or found[best] <= 1 else best


def _width(lines: list[str], delimiter: str) -> int:
    """Cells of the header, where most of the next records have as many; else 0."""
    try:
        records = [row for row in csv.reader(lines, delimiter=delimiter) if row][: SNIFFED + 1]
    except csv.Error:
        return 0
    if not records:
        return 0
    alike = sum(len(row) == len(records[0]) for row in records)
    return len(records[0]) if alike > 0.8 * len(records) else 0


def _style(how: dict[str, Any]) -> dict[str, Any]:
    plain = {} if how["quoted"] else {"quoting": csv.QUOTE_NONE, "quotechar": None}
    return {"delimiter": how["delimiter"], **plain}


def _quoted(path: Path, compression: str, letters: Letters, delimiter: str) -> bool:
    """Whether quotation marks enclose cells; not where they are letters: each line has the cells of the header as it
    is, and by the rules of quotation it is broken, or cells would swallow lines. One that opens in the last line is
    cut.
    """
    width, lines, marks, odd = 0, 0, False, []
    with _open(path, compression, letters) as file:
        for line in file:
            if not line.strip("\r\n"):
                continue
            lines, width = lines + 1, width or line.count(delimiter)
            marks = marks or '"' in line
            odd += [lines] if line.count('"') % 2 else []
            if line.count(delimiter) != width:
                return True
    if not marks or not width or odd == [lines]:
        return True
    try:
        with _open(path, compression, letters) as file:
            return lines == sum(1 for row in csv.reader(file, delimiter=delimiter, strict=True) if row)
    except csv.Error:
        return False


def _line_ends(path: Path, compression: str, letters: Letters) -> str:
    with _open(path, compression, letters) as file:
        return "\r\n" if file.readline().endswith("\r\n") else "\n"


def _cut_short(source: Source, n_rows: int, letters: Letters) -> list[BadCell]:
    """The last row, if its quotation mark never ends or its last letter is half there.

    **Raises:** ValueError where the open quotation mark swallowed many lines.
    """
    lines, opened, at = 0, False, 0
    with _open(source.file, source.compression, letters) as file:
        for lines, line in enumerate(file, 1):
            if source.how["quoted"] and line.count('"') % 2:
                opened = not opened
                at = lines
    if opened and lines - at > CUT_LINES:
        at += source.how["told"] is not None
        raise ValueError(f"{source.file}: the quotation mark in line {at} never ends: close it.")
    if (opened or letters.cut) and n_rows:
        return [BadCell(n_rows - 1, "", "is cut short")]
    return []
