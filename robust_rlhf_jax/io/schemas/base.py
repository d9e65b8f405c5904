"""What a schema is: how it recognises a table, and what it makes of it."""

import ast
import dataclasses
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from jaxtyping import Int

from ..bad_cells import BadCell
from ..columns import Columns
from ..labels import Rule
from ..table import Source, Table

# Numbers as NumPy prints them, with spaces between.
ARRAY = re.compile(r"\[(?:[-+\d.e\s]|nan|inf)+\]", re.I)
# Ready-made strengths: above 0 for the first side.
READY = Rule("", lambda cell: float(cell) if isinstance(cell, int | float) else None)

# What a caller may say of how labels are to be read, and those of it that `label_rules` heeds.
SAYING_WHO_WON = ("first_is", "scale", "tie_is", "ranking", "tie")
OF_LABELS = ("first_is", "scale", "tie_is", "tie")


@dataclasses.dataclass(frozen=True)
class Roles:
    """Which column plays which part, and how the label is read.

    `text`: (prompt, first, second) or None; `numbers`: {feature: (first, second)} by kind; `words`: the same of columns
    of words; `said`: what a description says of a part, where the column's name is not enough; `ignored`: why a column
    is not used.
    """

    text: tuple[str | None, str, str] | None
    numbers: dict[str, dict[str, tuple[str, str]]] = dataclasses.field(default_factory=dict)
    label: str | None = None
    rule: Rule | None = None
    rater: str | None = None
    weight: str | None = None
    tie: str | None = None
    id: str | None = None
    group: str | None = None
    said: dict[str, str] = dataclasses.field(default_factory=dict)
    ignored: dict[str, str] = dataclasses.field(default_factory=dict)
    words: dict[str, tuple[str, str]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Mapped:
    """`schema`: a name; `table`: the file's, or one with a row for each pair, made of it; `origin` [N]: the file's row
    of each, None where they are the same; `second`: those of the second sides, where they are others; `used`: the
    file's columns that take part; `cells_of`: column of `table` → (the file's column that its cells come from, or that
    of each cell; whether they come from the `second` rows); `reads`: those of `SAYING_WHO_WON` that it heeds; `by`:
    "scores", "ranks" or "order" where those say which answer is the better one.
    """

    schema: str
    table: Table
    roles: Roles
    origin: Int[np.ndarray, " N"] | None = None
    used: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    second: Int[np.ndarray, " N"] | None = None
    cells_of: Mapping[str, tuple[str | tuple[str, ...], bool]] = dataclasses.field(default_factory=dict)
    reads: tuple[str, ...] = ()
    by: str = ""

    def in_file(self, cell: BadCell) -> BadCell:
        """The cell of `table` by the file's row and column."""
        column, of_second = self.cells_of.get(cell.column, (cell.column, False))
        column = column if isinstance(column, str) else column[cell.row]
        rows = self.second if of_second else self.origin
        return cell._replace(row=cell.row if rows is None else int(rows[cell.row]), column=column)


class Schema(Protocol):
    """One way of writing preferences: `NAME`; `recognise(table)`; `map(table, asked)`, which raises ValueError for what
    cannot be decided.

    A module may also have `ORDER`, its place before those that recognise more tables; `ANY_LABEL`, true where it reads
    whatever label the caller names, or `reads_label(table, label)`, whether it reads this one; `OWN_SIDES`, true where
    it reads sides that the caller names; `recognise_asked(table, asked)`, for tables that it knows once columns are
    named.
    """

    NAME: str

    def recognise(self, table: Table) -> bool: ...

    def map(self, table: Table, asked: Columns) -> Mapped: ...


class Judged(NamedTuple):
    """A pair found in a row: sides, who won (above 0 the first), who judged, and the second side's row if another."""

    first: Any
    second: Any
    strength: float
    rater: str | None = None
    second_row: int | None = None


def of_rows(
    table: Table,
    schema: str,
    rows: Iterable[tuple[int, Any, list[Judged] | str]],
    used: Iterable[str | None],
    said: dict[str, str],
    asked: Columns,
    groups: list | None = None,
    notes: tuple[str, ...] = (),
    ids: str | None = None,
    reads: tuple[str, ...] = ("tie",),
    by: str = "",
) -> Mapped:
    """A table with a row for each pair, of (row of the file, prompt, pairs or why there are none).

    `used`: the file's columns that take part, None for those that it lacks; `groups`: the group of dependent pairs for
    each row of the file, the row itself if None; `ids`: the column that names pairs where the caller names none.
    """
    used = tuple(name for name in used if name is not None)
    cells, origin, seconds, bad = _cells_of_pairs(table, rows, used, groups)
    places = np.asarray(origin, int)
    bad += [
        BadCell(i, cell.column, cell.reason)
        for cell in table.bad
        for i in np.flatnonzero(places == cell.row).tolist()
    ]
    known = ids if ids in table.columns else None
    beside = {"rater": asked.rater, "weight": asked.weight, "tie": asked.tie, "id": asked.pair_id or known}
    more = {part: name for part, name in beside.items() if name is not None}
    for part, name in more.items():
        column = table.cells(name)
        cells[f"{part} of the file"] = [column[row] for row in origin]
    made = Table(table.source, cells, len(origin), tuple(bad), table.notes)
    rater, weight, tie, one = (f"{part} of the file" if part in more else None for part in beside)
    if rater is None and any(who is not None for who in cells["rater"]):
        rater = "rater"
    text = ("prompt", "first", "second")
    # `more`: as the file calls them.
    roles = Roles(text, {}, "strength", READY, rater, weight, tie, one, "group", more | said)
    second = None if seconds == origin else np.asarray(seconds, int)
    cells_of = {f"{part} of the file": (name, False) for part, name in more.items()}
    return Mapped(schema, made, roles, places, (*used, *more.values()), notes, second, cells_of, reads, by)


def _cells_of_pairs(
    table: Table,
    rows: Iterable[tuple[int, Any, list[Judged] | str]],
    used: tuple[str, ...],
    groups: list | None,
) -> tuple[dict[str, list], list[int], list[int], list[BadCell]]:
    """(columns of a table of pairs; the file's row of each pair; that of its second side; rows that make no pair)."""
    cells: dict[str, list] = {n: [] for n in ("prompt", "first", "second", "strength", "rater", "group")}
    origin, seconds, bad = [], [], []
    for row, prompt, judged in rows:
        pairs = [Judged(None, None, 0.0)] if isinstance(judged, str) else judged
        if isinstance(judged, str):
            bad.append(BadCell(len(origin), used[0] if used else "", judged))
        for pair in pairs:
            mine = (prompt, *pair[:4], groups[row] if groups else row)
            for column, cell in zip(cells.values(), mine, strict=True):
                column.append(cell)
            origin.append(row)
            seconds.append(row if pair.second_row is None else pair.second_row)
    for row in {cell.row for cell in table.bad} - set(
        origin
    ):  # rows that could not be read are reported, too
        for column in cells.values():
            column.append(None)
        cells["strength"][-1] = 0.0
        origin.append(row)
        seconds.append(row)
    return cells, origin, seconds, bad


def inner_table(table: Table, name: str) -> Table:
    """The columns of the objects that a column holds; a cell that is none has no cells there."""
    found = [cell if isinstance(cell := structured(c), dict) else {} for c in table.cells(name)]
    names = dict.fromkeys(inner for row in found for inner in row)
    return Table(
        Source(table.path, (), "jsonl"), {n: [row.get(n) for row in found] for n in names}, len(found)
    )


def judged_by(
    votes: Iterable[tuple[str, Any, Rule]], first: Any, second: Any, what: str = "label"
) -> list[Judged] | str:
    """A pair for each vote (rater, cell, how to read it), or which cell is unknown."""
    judged = []
    for who, cell, rule in votes:
        value = rule.value(cell)
        if value is None:
            return f"holds the unknown {what} {cell!r}"
        judged.append(Judged(first, second, value, who))
    return judged


def structured(cell: Any) -> Any:
    """Lists and objects of a cell that holds them as text, in JSON or as Python or NumPy writes them; else the cell
    itself."""
    if isinstance(cell, np.ndarray):
        return cell.tolist()
    if not isinstance(cell, str) or not cell.lstrip().startswith(("[", "{")):
        return cell
    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        pass
    try:
        if ARRAY.fullmatch(cell.strip()):
            return [float(number) for number in cell.strip(" \n[]").split()]
        found = ast.literal_eval(cell.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return cell
    return found if isinstance(found, list | dict) else cell


def records(cell: Any) -> list[dict]:
    """A list of objects, whichever way round it is written: [{"a": 1}, {"a": 2}] or {"a": [1, 2]}; else []."""
    cell = structured(cell)
    if isinstance(cell, dict):
        lists = {name: values for name, values in cell.items() if isinstance(values, list)}
        lengths = {len(values) for values in lists.values()}
        if len(lengths) != 1:
            return [cell] if cell and not lists else []
        return [{name: values[i] for name, values in lists.items()} for i in range(lengths.pop())]
    if not isinstance(cell, list):
        return []
    cell = [structured(entry) for entry in cell]
    return cell if all(isinstance(entry, dict) for entry in cell) else []


def has(table: Table, *names: str) -> bool:
    return all(name in table.columns for name in names)
