"""JSON: lines of objects, an array of objects, an object around either, or columns as pandas writes them."""

import contextlib
import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ..bad_cells import BadCell, shown
from ..table import Source, Table
from .compression import compression_of
from .encodings import encoding_of, open_text, write_text
from .json_documents import Document, document_of
from .json_splices import spliced, with_keys

ORDER, NAME, SUFFIXES = 20, "jsonl", (".jsonl", ".json", ".ndjson", ".jsonlines")
# Lines whose keys are looked at.
FIRST_LINES = 100


def read(path: Path, how: dict[str, Any]) -> Table:
    """What the content is decides, not the suffix.

    **Raises:** ValueError for what is no text, or a document in which no rows are found, or several splits.
    """
    source = _source(path, how)
    notes = tuple(filter(None, [source.how["encoding"].note]))
    found = None if _lines_of_objects(source) else _found(source)
    if found is None:
        source.how.update(twice=_keys_twice(source), split="")
        return _table(source, (_object(line) for line in _lines(source)), notes)
    source.how.update(document=found.kind, split=found.split)
    said = f"The file holds {found.says}."
    return _table(
        source, ((row if isinstance(row, dict) else None, str(row)) for row in found.rows), (*notes, said)
    )


def read_batches(path: Path, how: dict[str, Any], rows: int) -> Iterator[Table]:
    """The rows of lines of objects in tables of `rows`; of another document none, which is read whole.

    **Raises:** as `read`.
    """
    source = _source(path, how)
    if _lines_of_objects(source):
        source.how["twice"] = _keys_twice(source)
        lines = _lines(source)
        while some := list(itertools.islice(lines, rows)):
            yield _table(source, map(_object, some), ())


def _source(path: Path, how: dict[str, Any]) -> Source:
    compression = compression_of(path)
    encoding = encoding_of(path, compression, how.get("encoding"))
    return Source(
        path,
        (path,),
        NAME,
        "",
        compression,
        {"encoding": encoding, "split": how.get("split")},
        "JSON",
        ragged=True,
    )


def write(source: Source, path: Path, rows: Sequence[int], extra: dict[str, list]) -> None:
    """The objects of `source` with further keys, in lines or in the document that they came in."""
    place = {row: i for i, row in enumerate(rows)}
    with write_text(path, source.compression, source.how["encoding"].name) as file:
        if "document" in source.how:
            file.write(_document(source, rows, extra))
            return
        for number, line in enumerate(_lines(source)):
            if number in place:
                added = {name: column[place[number]] for name, column in extra.items()}
                file.write(with_keys(line.strip(), added) + ("\r\n" if line.endswith("\r\n") else "\n"))


def lines(source: Source) -> Iterator[int]:
    """The line of the file, from 1, that each row is; nothing for a document."""
    return iter(()) if "document" in source.how else (number for number, _ in _numbered(source))


def _document(source: Source, rows: Sequence[int], extra: dict[str, list]) -> str:
    """A document with some of its rows and further keys, letter by letter where each row stands in one piece."""
    found = _found(source)
    assert found is not None
    if (same := spliced(_text(source), found, rows, extra)) is not None:
        return same
    return json.dumps(found.rebuilt(list(rows), extra), ensure_ascii=False, indent=found.indent) + "\n"


def _table(source: Source, objects: Iterable[tuple[dict | None, str]], notes: Any) -> Table:
    rows, bad = [], []
    for number, (row, text) in enumerate(objects):
        if row is None:
            bad.append(BadCell(number, "", f"is not a JSON object ({shown(text.strip())})"))
        rows.append(row or {})
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: [row.get(name) for row in rows] for name in names}
    if bad and bad[-1].row == len(rows) - 1:
        notes = (*notes, "The last line is cut short or damaged.")
    return Table(source, columns, len(rows), tuple(bad), notes)


def _lines_of_objects(source: Source) -> bool:
    """Whether the first line is an object by itself."""
    lines = _lines(source)
    first, second = next(lines, ""), next(lines, "")
    row, _ = _object(first)
    if row is not None:
        # One line may also be a document: an object around rows.
        return bool(second) or _found(source, first) is None
    return not first.lstrip().startswith(("[", "{")) or (
        second.lstrip().startswith("{") and _object(second)[0] is not None
    )


def _found(source: Source, line: str | None = None) -> Document | None:
    """The document of the whole file, or in a `line` of it, if one is there."""
    text = _text(source) if line is None else line
    return document_of(text, source.file, line is None, source.how["split"] or None)


def _text(source: Source) -> str:
    with open_text(source.file, source.compression, source.how["encoding"]) as file:
        return file.read()


def _lines(source: Source) -> Iterator[str]:
    """Lines that are not blank; only a line feed ends one."""
    return (line for _, line in _numbered(source))


def _numbered(source: Source) -> Iterator[tuple[int, str]]:
    """(number of a line that is not blank, from 1; the line)."""
    try:
        with open_text(source.file, source.compression, source.how["encoding"], newline="\n") as file:
            yield from ((number, line) for number, line in enumerate(file, 1) if line.strip().strip("\ufeff"))
    except UnicodeError as error:
        raise ValueError(f"{source.file} cannot be read as text ({error}): write it again.") from None


def _keys_twice(source: Source) -> dict[str, int]:
    """{key: row} of keys that an object of the first lines has twice with two values; parsers take the last one."""
    found: dict[str, int] = {}
    for number, line in enumerate(itertools.islice(_lines(source), FIRST_LINES)):
        objects: list[list[tuple[str, Any]]] = []
        with contextlib.suppress(ValueError, RecursionError):
            json.loads(
                line, object_pairs_hook=lambda found, objects=objects: objects.append(found) or dict(found)
            )
        outer = objects[-1] if objects else []
        values = dict(outer)
        twice = (key for key, value in outer if value != values[key] and repr(value) != repr(values[key]))
        found = dict.fromkeys(twice, number) | found
    return found


def _object(line: str) -> tuple[dict | None, str]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None, line
    return (row if isinstance(row, dict) else None), line


__all__ = ["NAME", "ORDER", "SUFFIXES", "Document", "lines", "read", "read_batches", "write"]
