"""CSV and TSV files: a header, then rows; cells stay texts until someone asks for numbers."""

import contextlib
import csv
import dataclasses
import io
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from robust_rlhf_jax.terminal import counted

from ..bad_cells import BadCell
from ..table import Source, Table
from .compression import compression_of
from .encodings import Encoding, encoding_of, open_text, write_text
from .spreadsheet_lines import Around, around, check_one_header, totals, without_empty_end

ORDER, NAME, SUFFIXES = 10, "csv", (".csv", ".tsv", ".tab")
# A text may be long; more than this in one cell is an unclosed quotation mark.
LONGEST_CELL = 1 << 27
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "spaces"}
# The names of R's `write.table`, in quotation marks, and of further columns: they alone say that spaces part cells.
SPACED = re.compile(r'"[^"]*"(?: (?:"[^"]*"|[^\s",;|]+))+\s*')
# What a spreadsheet writes before the header to say by what cells are separated.
SEP = re.compile(r'"?sep=[,;\t|]"?\r?\n', re.I)
# A quotation mark inside a cell, as databases and Spark write it: after a backslash, but not after two.
ESCAPED = re.compile(r'(?<!\\)((?:\\\\)*)\\"')
# What stands for it while cells are told apart: a code point that is no character.
INSIDE = "\ufdd0"
# Stands for a record that is by no rule.
BROKEN = ["\ufdd1"]
# Lines with quotation marks by which it is seen whether these are plain characters.
MARKED = 10_000
# Records that say which delimiter a file has, and lines that the last cell of a truncated file may have.
SNIFFED, CUT_LINES = 50, 200


def read(path: Path, how: dict[str, Any]) -> Table:
    """**Raises:** ValueError for what is no table, a name that is there twice, or no header."""
    source = _source(path, how)
    encoding, delimiter = source.how["encoding"], source.how["delimiter"]
    records = _records(source)
    table = _table(source, _names(path, next(records, None)), records)
    check_one_header(table)
    cut = _cut_short(source, table.n_rows, encoding)
    said = [] if delimiter == "," else [f"Cells are separated by {DELIMITERS[delimiter]}."]
    if heads := source.how["around"].heads:
        said.append(
            f"Left out below the names of the columns: {counted(heads, 'line')} of a survey's program."
        )
    notes = (*((encoding.note,) if encoding.note else ()), *said)
    return dataclasses.replace(table, bad=(*table.bad, *cut, *totals(table)), notes=notes)


def read_batches(path: Path, how: dict[str, Any], rows: int) -> Iterator[Table]:
    """The rows in tables of `rows`.

    **Raises:** as `read`.
    """
    source = _source(path, how)
    records = _records(source)
    header = _names(path, next(records, None))
    some = list(itertools.islice(records, rows))
    first = True
    while some:
        after = list(itertools.islice(records, rows))
        table = _table(source, header, some)
        if first:
            check_one_header(table)
        first = False
        cut = () if after else _cut_short(source, table.n_rows, source.how["encoding"])
        yield dataclasses.replace(table, bad=(*table.bad, *cut))
        some = after


def _source(path: Path, how: dict[str, Any]) -> Source:
    compression = compression_of(path)
    encoding = encoding_of(path, compression, how.get("encoding"))
    told = _told(path, compression, encoding)
    delimiter = _delimiter(path, compression, encoding) if told is None else told.strip('"\r\n')[-1]
    own = {
        "encoding": encoding,
        "delimiter": delimiter,
        "ends": _line_ends(path, compression, encoding),
        "told": told,
    }
    own |= _quotes(path, compression, encoding, delimiter)
    shown = "TSV" if delimiter == "\t" else "CSV"
    source = Source(
        path, (path,), NAME, "", compression, own | {"around": Around(0, False)}, shown, only_texts=True
    )
    first = [*itertools.islice(_all_spelled(source), SNIFFED + 1)]
    quoted = all(letters.startswith('"') for _, letters, _ in first)
    return dataclasses.replace(source, how=own | {"around": around([record for record, *_ in first], quoted)})


def _table(source: Source, header: list[str], records: Iterable[list[str]]) -> Table:
    bad, body = [], []
    for number, row in enumerate(records):
        fits = len(row) == len(header) and row is not BROKEN
        if row is BROKEN:
            bad.append(
                BadCell(number, "", "has letters after a closing quotation mark, or one that never ends")
            )
        elif not fits:
            bad.append(BadCell(number, "", f"has {len(row)} cells, the header {len(header)}"))
        elif row == header:  # files that were put one after another
            bad.append(BadCell(number, "", "repeats the names of the columns"))
            fits = False
        body.append(row if fits else [None] * len(header))
    columns = zip(*body, strict=True) if body else [()] * len(header)
    cells = {name: list(column) for name, column in zip(header, columns, strict=True)}
    return Table(source, cells, len(body), tuple(bad))


def write(source: Source, path: Path, rows: Sequence[int], extra: dict[str, list]) -> None:
    """The rows of `source` as they are, with further columns; those of the same name give way."""
    records = ((record, letters) for record, letters, _ in _spelled(source))
    header, letters = next(records)
    kept = [i for i, name in enumerate(header) if name not in extra]
    place = {row: i for i, row in enumerate(rows)}
    with write_text(path, source.compression, source.how["encoding"].name) as file:
        file.write(source.how["told"] or "")
        put = _writer(file, source.how)

        def put_all(record: list[str], letters: str, more: list) -> None:
            if len(kept) < len(header):
                put([*(record[i] for i in kept), *more])
            else:
                file.write(_longer(letters, more, source.how))

        put_all(header, letters, list(extra))
        for number, (record, letters) in enumerate(records):
            if number in place:
                put_all(record, letters, [column[place[number]] for column in extra.values()])


def lines(source: Source) -> Iterator[int]:
    """The line of the file, from 1, in which each row begins."""
    return itertools.islice((line for _, _, line in _spelled(source)), 1, None)


def _longer(letters: str, more: list, how: dict[str, Any]) -> str:
    """A record as the file spells it, with further cells: which cells are in quotation marks may mean something."""
    own = letters.rstrip("\r\n")
    cells = io.StringIO()
    if more:
        _writer(cells, how)(["", *more])
    return own + cells.getvalue().removesuffix(how["ends"]) + (letters[len(own) :] or how["ends"])


def _writer(file: TextIO, how: dict[str, Any]) -> Callable[[list], Any]:
    if how["quotes"] == "escaped":
        return lambda record: file.write(_written(record, how))
    return csv.writer(file, lineterminator=how["ends"], **_style(how)).writerow


def _names(path: Path, header: list[str] | None) -> list[str]:
    """The header; one unnamed column, an index, is called ""; more of them are called by their place."""
    if header is None:
        raise ValueError(f"{path} has no header: give the names of the columns in the first line.")
    if header is BROKEN:
        raise ValueError(
            f"{path}: in the first line letters follow a closing quotation mark: write commas, semicolons, tabs or "
            "bars between the names of the columns."
        )
    unnamed = header.index("") if "" in header else -1
    names = [name or ("" if i == unnamed else f"column {i + 1}") for i, name in enumerate(header)]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"{path} has the column {twice!r} twice: rename one.")
    return names


def _records(source: Source) -> Iterator[list[str]]:
    return (record for record, _, _ in _spelled(source))


def _spelled(source: Source) -> Iterator[tuple[list[str], str, int]]:
    """`_all_spelled` of the header and the rows; where rows have numbers, with a name "" for these."""
    records = without_empty_end(_all_spelled(source))
    heads, numbered = source.how["around"]
    for record, letters, line in itertools.islice(records, 1):
        yield ["", *record] if numbered else record, letters, line
    yield from itertools.islice(records, heads, None)


def _all_spelled(source: Source) -> Iterator[tuple[list[str], str, int]]:
    """(a record, the letters of the file that it was read from, the line in which it begins, from 1)."""
    encoding, path = source.how["encoding"], source.file
    escaped = source.how["quotes"] == "escaped"
    letters: list[str] = []
    line = 1 + (source.how["told"] is not None)
    try:
        with _open(path, source.compression, encoding) as file, long_cells():
            lines = _lines(_noted(file, letters), source.how["quotes"])
            for row in _rows(csv.reader(lines, **_style(source.how))):
                if escaped and row is not BROKEN:
                    row = [cell.replace(INSIDE, '"') for cell in row]
                if row:
                    yield row, "".join(letters), line
                line += len(letters)
                letters.clear()
    except (csv.Error, UnicodeError) as error:
        raise ValueError(f"{path} cannot be read as CSV ({error}): write it again.") from None


def _noted(lines: Iterable[str], seen: list[str]) -> Iterator[str]:
    for line in lines:
        seen.append(line)
        yield line


@contextlib.contextmanager
def _open(path: Path, compression: str, encoding: Encoding) -> Iterator[TextIO]:
    """The text from the header on."""
    told = _told(path, compression, encoding)
    with open_text(path, compression, encoding) as file:
        if told is not None:
            file.readline()
        yield file


def _told(path: Path, compression: str, encoding: Encoding) -> str | None:
    """The line before the header that says by what cells are separated, or None."""
    with open_text(path, compression, encoding) as file:
        first = file.readline(len('"sep=;"\r\n'))
    return first if SEP.fullmatch(first) else None


def _rows(reader: Any) -> Iterator[list[str]]:
    """Records, and `BROKEN` in place of one that is by no rule."""
    while True:
        try:
            yield next(reader)
        except StopIteration:
            return
        except csv.Error:
            yield BROKEN


def _delimiter(path: Path, compression: str, encoding: Encoding) -> str:
    """The delimiter by which the header has the most cells, if the next records have as many; else a comma."""
    usual = "\t" if ".tsv" in path.name.lower() or ".tab" in path.name.lower() else ","
    with _open(path, compression, encoding) as file:
        lines = io.StringIO(file.read(1 << 18), newline="").readlines()
    if len(lines) > 1 and not lines[-1].endswith(("\n", "\r")):
        lines = lines[:-1]
    readings = (lines, list(_lines(lines, "escaped")))
    marks = [mark for mark in DELIMITERS if mark != " " or (lines and SPACED.fullmatch(lines[0]))]
    found = {mark: max(_width(each, mark) for each in readings) for mark in (usual, *marks)}
    best = max(found, key=lambda mark: found[mark])
    return usual if found[usual] > 1 or found[best] <= 1 else best


def _width(lines: list[str], delimiter: str) -> int:
    """Cells of the header, where most of the next records have as many; else 0."""
    try:
        with long_cells():
            records = [row for row in csv.reader(lines, delimiter=delimiter) if row][: SNIFFED + 1]
    except csv.Error:
        return 0
    if not records:
        return 0
    numbered = around(records, lines[0].startswith('"')).numbered
    alike = sum(numbered or len(row) == len(records[0]) for row in records)
    return len(records[0]) if alike > 0.8 * len(records) else 0


def _style(how: dict[str, Any]) -> dict[str, Any]:
    plain = {} if how["quotes"] != "plain" else {"quoting": csv.QUOTE_NONE, "quotechar": None}
    return {"delimiter": how["delimiter"], "strict": how["broken"], **plain}


def _quotes(path: Path, compression: str, encoding: Encoding, delimiter: str) -> dict[str, Any]:
    """`quotes`, what quotation marks are: "doubled" inside cells that they enclose, as the rule is; "escaped" there by
    a backslash; or "plain", where each line has the cells of the header as it is, and by the rules most lines with a
    cell that begins with one are broken, or cells would swallow lines. `cut`: whether the last cell never ends;
    `broken`: whether some record is by no rule.
    """
    width, lines, marked, alike = 0, 0, [], True
    begins = re.compile(rf'(?:^|{re.escape(delimiter)})"')
    marks = False
    with _open(path, compression, encoding) as file:
        for line in file:
            if line.strip("\r\n"):
                lines, width = lines + 1, width or line.count(delimiter)
                alike = alike and line.count(delimiter) == width
                marks = marks or '"' in line
                marked += [line] if len(marked) < MARKED and begins.search(line) else []
    found = {}
    for quotes in ("doubled", "escaped") if marks else ():
        with _open(path, compression, encoding) as file:
            found[quotes] = _faults(_lines(file, quotes), delimiter)
    best = min(found, key=lambda quotes: found[quotes].rank, default="doubled")
    seen = found.get(best, Faults(0, lines, False, False))
    as_lines = alike and width > 0 and not seen.cut
    alone = [_faults(_lines([line], best), delimiter) for line in marked]
    broken = sum(one.broken or one.cut for one in alone)
    swallows = not seen.broken and seen.misfits > 0 and seen.records < lines
    if as_lines and (swallows or (seen.broken and 2 * broken > len(marked))):
        return {"quotes": "plain", "cut": False, "broken": False}
    return {"quotes": best, "cut": seen.cut, "broken": seen.broken}


class Faults(NamedTuple):
    """`misfits`: records that have not as many cells as the first, of all `records`; `broken`: whether letters follow a
    closing quotation mark; `cut`: whether the last cell never ends.
    """

    misfits: int
    records: int
    broken: bool
    cut: bool

    @property
    def rank(self) -> tuple[bool, int]:
        return self.broken, self.misfits


def _faults(lines: Iterable[str], delimiter: str) -> Faults:
    widths, broken, cut = [], 0, False
    with long_cells():
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        while True:
            try:
                row = next(reader, None)
            except csv.Error as error:
                cut = cut or "unexpected end" in str(error)
                broken += not cut
                continue
            if row is None:
                break
            widths += [len(row)] if row else []
    misfits = broken + cut + sum(width != widths[0] for width in widths)
    return Faults(misfits, len(widths) + broken + cut, broken > 0, cut)


@contextlib.contextmanager
def long_cells() -> Iterator[None]:
    """Let cells be of any length that memory holds."""
    before = csv.field_size_limit(LONGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _lines(file: Iterable[str], quotes: str) -> Iterable[str]:
    """Lines in which a quotation mark inside a cell is `INSIDE`, where it is written after a backslash."""
    return (ESCAPED.sub(r"\1" + INSIDE, line) for line in file) if quotes == "escaped" else file


def _written(record: list[str], how: dict[str, Any]) -> str:
    """A record whose quotation marks are escaped by backslashes."""
    special = (how["delimiter"], '"', "\n", "\r")
    cells = ("" if cell is None else str(cell) for cell in record)
    quoted = (
        f'"{c.replace(chr(34), chr(92) + chr(34))}"' if any(s in c for s in special) else c for c in cells
    )
    return how["delimiter"].join(quoted) + how["ends"]


def _line_ends(path: Path, compression: str, encoding: Encoding) -> str:
    with _open(path, compression, encoding) as file:
        return "\r\n" if file.readline().endswith("\r\n") else "\n"


def _cut_short(source: Source, n_rows: int, encoding: Encoding) -> list[BadCell]:
    """The last row, if its quotation mark never ends or its last character is half there.

    **Raises:** ValueError where the open quotation mark swallowed many lines.
    """
    lines, opened, at = 0, False, 0
    if not source.how["cut"]:
        return [BadCell(n_rows - 1, "", "is cut short")] if encoding.cut and n_rows else []
    with _open(source.file, source.compression, encoding) as file:
        for lines, line in enumerate(_lines(file, source.how["quotes"]), 1):
            if line.count('"') % 2:
                opened = not opened
                at = lines
    if opened and lines - at > CUT_LINES:
        at += source.how["told"] is not None
        raise ValueError(f"{source.file}: the quotation mark in line {at} never ends: close it.")
    if (opened or encoding.cut) and n_rows:
        return [BadCell(n_rows - 1, "", "is cut short")]
    return []
