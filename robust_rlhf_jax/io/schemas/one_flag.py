"""A column of yes and no that says of one side whether it won, `a_is_better`, `b_wins`, `prefer_a`, or lost,
`a_lost`."""

import re
from typing import Any

from ..columns import Columns
from ..labels import TIE, is_missing, suffixes, word, yes_or_no
from ..table import Table
from .base import Mapped
from .plain import check_asked
from .sides import TOKENS, open_sides, plain_name
from .winner_flags import stand_beside_sides, with_winners

NAME = "a flag of one side"
ORDER = 86
WON = (
    "(?:wins?|won|is_better|better|is_best|is_preferred|preferred|is_winner|is_chosen|is_selected|was_chosen|"
    "was_preferred)"
)
LOST = (
    "(?:loses?|lost|is_worse|worse|is_worst|is_loser|is_rejected|rejected|was_rejected|is_dispreferred|dispreferred|"
    "is_not_preferred|not_preferred)"
)
THING = "(?:response|answer|model|option|side|output|completion|text|summary|candidate)"
LOSING = (
    "^(?:{one}_{lost}|(?:reject(?:s|ed)?|dispreferred)_{one}|is_{one}_(?:worse|worst|rejected|the_loser))$"
)
CALLED = "^(?:{one}_{won}|(?:prefers?|preferred)_{one}|is_{one}_(?:better|best|preferred|chosen|the_winner){picked})$"
PICKED = "|(?:chose|chosen|picked|selected)_{one}|{one}_(?:chosen|picked|selected)"


def recognise(table: Table) -> bool:
    found = _found(table)
    return found is not None and stand_beside_sides(table, (found[0],))


def map(table: Table, asked: Columns) -> Mapped:
    """The side of the column where it says yes, the other one where it says no; of one that lost the other way.

    **Raises:** as the schemas of tables with a label.
    """
    check_asked(table, asked)
    found = _found(table)
    assert found is not None
    column, side = found
    yes, no = ("first", "second") if side == 0 else ("second", "first")
    winners = [_winner(cell, yes, no) for cell in table.cells(column)]
    return with_winners(table, asked, (column,), winners, NAME, f"yes is the {yes} side, no the {no}")


def _found(table: Table) -> tuple[str, int] | None:
    """The column and the number of the side that won where it says yes, if it is the only one of its kind and says both
    yes and no."""
    sides = open_sides(table, ())
    if len(sides) not in (0, 2):
        return None
    named = [suffixes((sides[0], sides[1]))] if sides else TOKENS
    called = [
        (pattern, i if won else 1 - i)
        for both in named
        for i, token in enumerate(both)
        for pattern, won in _called(token, sides[i] if sides else "")
    ]
    plain = {name: plain_name(name) for name in table.names if name not in sides}
    found = [(name, i) for pattern, i in called for name in plain if pattern.match(plain[name])]
    if len(found) != 1:
        return None
    said = {
        yes_or_no(cell) for cell in table.some(found[0][0]) if not is_missing(cell) and word(cell) not in TIE
    }
    return found[0] if said == {True, False} else None


def _called(token: str, side: str) -> list[tuple[re.Pattern, bool]]:
    """What the columns of a side are called, and whether they say that it won."""
    names = [re.escape(plain_name(side))] if side else []
    names += [rf"(?:{THING}_)?{token}"] if token else []
    one = f"(?:{'|'.join(names)})"
    # If sides are called by numbers, chosen_1 may be what the first of several raters says.
    picked = "" if token.isdigit() else PICKED.format(one=one)
    won, lost = CALLED.format(one=one, won=WON, picked=picked), LOSING.format(one=one, lost=LOST)
    # Of numbers, 1_rejected may be the vote of a rater; a column of the side that was rejected may hold its text.
    return [(re.compile(won), True), *([] if token.isdigit() else [(re.compile(lost), False)])]


def _winner(cell: Any, yes: str, no: str) -> Any:
    """What a label would say; what says neither yes nor no stays as it is."""
    told = None if is_missing(cell) else yes_or_no(cell)
    return cell if told is None else yes if told else no
