"""A column of 0 and 1 for each side, which is 1 for the one that won: `a_chosen` and `b_chosen`, `winner_1` and
`winner_2`."""

import dataclasses
from typing import Any

from ..columns import Columns
from ..labels import is_missing, yes_or_no
from ..table import Table
from . import numbers_of_two_sides, plain
from .base import Mapped
from .flags_of_sides import FLAGS, flags_called
from .plain import check_asked, tie_column
from .sides import LABELS, chosen_sides, named, open_sides, rater_columns

NAME = "a flag for each side"
ORDER = 85
STEMS = (*FLAGS, "choice", "vote", "preference")
# The share of rows at most in which both sides won: of more, the columns say something of each side.
MOST_BOTH = 0.1


def recognise(table: Table) -> bool:
    flags = _flags(table)
    if flags is None or chosen_sides(table) or named(table, (*LABELS, "chosen")) is not None:
        return False
    others = _without(table, flags)
    sides = open_sides(others, ())
    if len(sides) == 2:
        return not rater_columns(table, (sides[0], sides[1]))
    return numbers_of_two_sides.recognise(others)


def map(table: Table, asked: Columns) -> Mapped:
    """The side whose column is 1; without a column of ties, 0 and 0 are a tie.

    **Raises:** as the schemas of tables with a label.
    """
    check_asked(table, asked)
    flags = _flags(table)
    assert flags is not None
    label, ties = f"{flags[0]} and {flags[1]}", tie_column(table, asked, None) is not None
    cells = zip(*(table.cells(name) for name in flags), strict=True)
    others = _without(table, flags)
    made = dataclasses.replace(
        others, columns=others.columns | {label: [_winner(a, b, ties) for a, b in cells]}
    )
    sides = open_sides(others, ())
    if len(sides) == 2:
        found = plain.map(made, dataclasses.replace(asked, label=label, chosen=sides[0], rejected=sides[1]))
    else:
        found = numbers_of_two_sides.map(made, dataclasses.replace(asked, label=label))
    chosen = found.roles.said["chosen"].replace(f"{label} says", f"{label} say")
    said = found.roles.said | {"chosen": chosen, "label": f"{label}: the 1 of them"}
    return dataclasses.replace(
        found, schema=NAME, used=(*found.used, *flags), reads=("tie",), cells_of={label: (flags[0], False)},
        roles=dataclasses.replace(found.roles, said=said),
    )  # fmt: skip


def _flags(table: Table) -> tuple[str, str] | None:
    """The columns of the first and of the second side, if they say yes or no, and both yes in few rows."""
    for a, b in flags_called(table, STEMS):
        if a is not None and b is not None and _are_flags(table, a, b):
            return a, b
    return None


def _are_flags(table: Table, first: str, second: str) -> bool:
    pairs = [
        [False if is_missing(cell) else yes_or_no(cell) for cell in cells]
        for cells in zip(table.some(first), table.some(second), strict=False)
    ]
    yes = [None if None in pair else pair.count(True) for pair in pairs]
    return None not in yes and 1 in yes and yes.count(2) <= MOST_BOTH * len(yes)


def _without(table: Table, names: tuple[str, ...]) -> Table:
    return dataclasses.replace(table, columns={n: c for n, c in table.columns.items() if n not in names})


def _winner(first: Any, second: Any, ties: bool) -> str | None:
    """What a label would say; of a row that says nothing, or two things, what its cells hold."""
    told = [None if is_missing(cell) else yes_or_no(cell) for cell in (first, second)]
    if told == [None, None]:
        return None
    if bool(told[0]) != bool(told[1]):
        return "first" if told[0] else "second"
    return f"{first} and {second}" if ties or told[0] else "tie"
