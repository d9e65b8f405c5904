"""JSON lines: one object a line, its keys the columns."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from .bad_cells import BadCell, shown
from .table import Table


def read(path: Path) -> Table:
    """**Raises:** ValueError for what is not UTF-8, or one JSON array instead of lines."""
    rows, bad = [], []
    for number, line in enumerate(_lines(path)):
        row = _object(line)
        if row is None:
            bad.append(BadCell(number, "", f"is not a JSON object ({shown(line.strip())})"))
        rows.append(row or {})
    if rows and bad and bad[0].row == 0 and next(_lines(path)).lstrip().startswith("["):
        raise ValueError(f"{path} holds a JSON array: write one object per line.")
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: [row.get(name) for row in rows] for name in names}
    return Table(path, "jsonl", columns, len(rows), tuple(bad))


def write(source: Path, path: Path, rows: Sequence[int], extra: dict[str, list]) -> None:
    """The objects of `source` with further keys."""
    place = {row: i for i, row in enumerate(rows)}
    with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
        for number, line in enumerate(_lines(source)):
            if number in place:
                added = {name: column[place[number]] for name, column in extra.items()}
                file.write(json.dumps(json.loads(line) | added, ensure_ascii=False) + "\n")


def _lines(path: Path) -> Iterator[str]:
    try:
        with open(path, encoding="utf-8-sig", newline="\n") as file:
            yield from (line for line in file if line.strip())
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} cannot be read as UTF-8 ({error}): write it again.") from None


def _object(line: str) -> dict | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None
