"""The places where an editor finds the rows of a file: the file, if there are several, and the line."""

from pathlib import Path

from .containers import CONTAINERS
from .table import Source

LINES = {module.NAME: module.lines for module in CONTAINERS if hasattr(module, "lines")}


def places_of(source: Source | None, n_rows: int) -> dict[str, list]:
    """{"file": name of each row's file, where there are several; "line": where the row begins in it, from 1, where its
    files have lines}. Of rows in memory, of other containers, and of a file that has changed since it was read nothing.
    """
    if source is None:
        return {}
    parts, lengths = source.how.get("parts", [source]), source.how.get("lengths", [n_rows])
    lines = [_lines(part, length) for part, length in zip(parts, lengths, strict=True)]
    found: dict[str, list] = {}
    if len(parts) > 1:
        found["file"] = [
            Path(part.file).name for part, length in zip(parts, lengths, strict=True) for _ in range(length)
        ]
    if all(lines):
        found["line"] = [line for some in lines for line in some]
    return {name: column for name, column in found.items() if len(column) == n_rows}


def _lines(source: Source, n_rows: int) -> list[int]:
    """The lines of the rows; empty if they are not known."""
    try:
        found = list(LINES[source.container](source)) if source.container in LINES else []
    except (OSError, ValueError):
        return []
    return found if len(found) == n_rows else []
