"""A column of 0 and 1 for each side, which is 1 for the one that won: `a_chosen` and `b_chosen`, `winner_1` and
`winner_2`. What else says it in columns called after the sides: `one_flag.py`, `thumbs.py`."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from ..columns import Columns
from ..labels import is_missing, suffixes, yes_or_no
from ..table import Table
from . import numbers_of_two_sides, plain
from .base import Mapped
from .columns_of_raters import rater_columns
from .flags_of_sides import FLAGS, flags_called
from .plain import check_asked, tie_column
from .shown_places import that_says_where
from .sides import LABELS, chosen_sides, named, open_sides

NAME = "a flag for each side"
ORDER = 85
STEMS = (*FLAGS, "choice", "vote", "preference", "prefer", "prefers")
# The share of rows at most in which both sides won: of more, the columns say something of each side.
MOST_BOTH = 0.1


def recognise(table: Table) -> bool:
    flags = _flags(table)
    return flags is not None and stand_beside_sides(table, flags)


def map(table: Table, asked: Columns) -> Mapped:
    """The side whose column is 1; without a column of ties, 0 and 0 are a tie.

    **Raises:** as the schemas of tables with a label.
    """
    check_asked(table, asked)
    flags = _flags(table)
    assert flags is not None
    ties = tie_column(table, asked, None) is not None
    cells = zip(*(table.cells(name) for name in flags), strict=True)
    winners = [_winner(a, b, ties) for a, b in cells]
    return with_winners(table, asked, flags, winners, NAME, "the 1 of them")


def stand_beside_sides(table: Table, columns: Sequence[str]) -> bool:
    """Whether a table has two sides beside columns that say who won, and nothing else that says it."""
    if chosen_sides(table) or named(table, (*LABELS, "chosen")) is not None:
        return False
    others = _without(table, columns)
    sides = open_sides(others, ())
    if len(sides) == 2:
        return not rater_columns(table, (sides[0], sides[1]))
    return numbers_of_two_sides.recognise(others)


def with_winners(
    table: Table, asked: Columns, columns: Sequence[str], winners: list, schema: str, says: str
) -> Mapped:
    """The table with `winners`, what a label would say, in place of the `columns` that say it.

    **Raises:** ValueError for a column that says in which rows the sides changed places; as tables with a label.
    """
    # The name of a column may say who lost, and its winners do not.
    label, others = "the winner" if len(columns) == 1 else " and ".join(columns), _without(table, columns)
    made = dataclasses.replace(others, columns=others.columns | {label: winners})
    sides = open_sides(others, ())
    if len(sides) == 2:
        _check_places(table, columns, (sides[0], sides[1]))
        found = plain.map(made, dataclasses.replace(asked, label=label, chosen=sides[0], rejected=sides[1]))
    else:
        found = numbers_of_two_sides.map(made, dataclasses.replace(asked, label=label))
    verb, listed = "say" if len(columns) > 1 else "says", " and ".join(columns)
    chosen = found.roles.said["chosen"].replace(f"{label} says", f"{listed} {verb}")
    said = found.roles.said | {"chosen": chosen, "label": f"{listed}: {says}"}
    return dataclasses.replace(
        found, schema=schema, used=(*found.used, *columns), reads=("tie",), cells_of={label: (columns[0], False)},
        roles=dataclasses.replace(found.roles, said=said),
    )  # fmt: skip


def _check_places(table: Table, columns: Sequence[str], sides: tuple[str, str]) -> None:
    tokens = [token for token in suffixes(sides) if token]
    where = that_says_where(table, tokens, (*columns, *sides), sides)
    if where is not None:
        raise ValueError(
            f"column {where} says in which rows the sides changed places, and {' and '.join(columns)} may name places "
            f"or columns: leave column {where} out if {sides[0]} and {sides[1]} are named as the file has them; else "
            "write which of those won into a column called winner"
        )


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


def _without(table: Table, names: Sequence[str]) -> Table:
    return dataclasses.replace(table, columns={n: c for n, c in table.columns.items() if n not in names})


def _winner(first: Any, second: Any, ties: bool) -> str | None:
    """What a label would say; of a row that says nothing, or two things, what its cells hold."""
    told = [None if is_missing(cell) else yes_or_no(cell) for cell in (first, second)]
    if told == [None, None]:
        return None
    if bool(told[0]) != bool(told[1]):
        return "first" if told[0] else "second"
    return f"{first} and {second}" if ties or told[0] else "tie"
