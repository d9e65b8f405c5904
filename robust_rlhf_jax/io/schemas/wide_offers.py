"""The options of choices of one row as a table with a row for each that was offered, which `choice_sets` reads."""

from typing import Any, NamedTuple

from ..columns import Columns
from ..table import Table
from .choice_names import PEOPLE, by_parted_name, plain_cell
from .wide_names import WideColumns, are_named, from_one, named_options, plainly

# Cells that say that an option was not offered, where no column does.
NOTHING = ("", "na", "n/a", "nan", "null", "none", "nil", ".", "-")
# Columns of the table of offers that no feature can be called.
CHOICE, WAS_CHOSEN = " choice", " chosen"


class Offers(NamedTuple):
    """A table with a row for each option that was offered, which row of the file it is from, and which option;
    `unclear`: how many rows of the file did not choose one of several.
    """

    table: Table
    rows: list[int]
    options: list[str | None]
    unclear: int


def offered(table: Table, found: WideColumns, asked: Columns) -> Offers:
    """Rows that could not be read are one each, to be told of."""
    bad, there = {cell.row for cell in table.bad}, _were_offered(table, found)
    labels = from_one(named_options(table, found.label, asked), found.options, asked)
    offers: list[tuple[int, str | None]] = []
    unclear = 0
    for row, label in enumerate(labels):
        options = [option for option in found.options if there[option][row]]
        clear = len(options) > 1 and label in plainly(options)
        unclear += not clear and row not in bad
        offers += [(row, None)] if row in bad else [(row, option) for option in options] if clear else []
    rows, options = [row for row, _ in offers], [option for _, option in offers]
    chosen = [int(option is not None and labels[row] == plain_cell(option)) for row, option in offers]
    columns: dict[str, list] = {CHOICE: rows, WAS_CHOSEN: chosen}
    if are_named(found.options) and any(len(option) > 1 for option in found.options):
        columns["option_name"] = options
    for feature, of in found.features.items():
        cells = {option: table.cells(name) for option, name in of.items()}
        columns[feature] = [cells[o][row] if o in cells else None if o is None else 0.0 for row, o in offers]
    for name in _beside(table, found, asked):
        cells = table.cells(name)
        columns.setdefault(name, [cells[row] for row in rows])
    place = {row: i for i, row in reversed(list(enumerate(rows)))}
    moved = tuple(cell._replace(row=place[cell.row]) for cell in table.bad)
    return Offers(Table(table.source, columns, len(rows), moved, table.notes), rows, options, unclear)


def _were_offered(table: Table, found: WideColumns) -> dict[str, list[bool]]:
    """{option: of each row whether it was offered}: where no column says so, if any of its features is there."""
    offered = {}
    for option in found.options:
        if option in found.available:
            cells = table.cells(found.available[option])
            offered[option] = [plain_cell(cell) not in (0.0, "false", "no") for cell in cells]
        else:
            columns = [table.cells(of[option]) for of in found.features.values() if option in of]
            offered[option] = [
                not all(_is_nothing(cell) for cell in row) for row in zip(*columns, strict=True)
            ]
    return offered


def _is_nothing(cell: Any) -> bool:
    return cell is None or str(cell).strip().casefold() in NOTHING


def _beside(table: Table, found: WideColumns, asked: Columns) -> list[str]:
    """The columns of who chose and of how much a row counts."""
    lower = by_parted_name(table)
    known = [lower[name] for name in PEOPLE if name in lower]
    names = dict.fromkeys(name for name in (*known, asked.rater, asked.weight) if name is not None)
    return [name for name in names if name != found.label]
