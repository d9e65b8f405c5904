"""A thumb for each side, up or down, and no label: `thumbs_a` and `thumbs_b`; the same thumb for both is a tie."""

from typing import Any

from ..columns import Columns
from ..labels import is_missing, number_in, word, yes_or_no
from ..table import Table
from .base import Mapped
from .flags_of_sides import flags_called
from .plain import check_asked
from .winner_flags import stand_beside_sides, with_winners

NAME = "a thumb for each side"
ORDER = 87
STEMS = (
    "thumbs", "thumb", "thumbs_up", "thumbs_rating", "feedback", "reaction", "vote", "like", "liked", "likes",
)  # fmt: skip
UP = {
    "up", "thumbs up", "thumb up", "thumbsup", "👍", ":thumbsup:", "+1", "like", "liked", "positive", "good", "upvote",
}  # fmt: skip
DOWN = {
    "down", "thumbs down", "thumb down", "thumbsdown", "👎", ":thumbsdown:", "-1", "dislike", "disliked", "negative",
    "bad", "downvote",
}  # fmt: skip


def recognise(table: Table) -> bool:
    found = _found(table)
    return found is not None and stand_beside_sides(table, found)


def map(table: Table, asked: Columns) -> Mapped:
    """The side whose thumb is up where the other one's is down.

    **Raises:** as the schemas of tables with a label.
    """
    check_asked(table, asked)
    found = _found(table)
    assert found is not None
    thumbs = zip(*(table.cells(name) for name in found), strict=True)
    return with_winners(table, asked, found, [_winner(*both) for both in thumbs], NAME, "the one that is up")


def _found(table: Table) -> tuple[str, str] | None:
    """The columns of the first and of the second side; of yes and no only where they are called after likes."""
    for a, b in flags_called(table, STEMS):
        if a is None or b is None:
            continue
        ways = {_way(cell) for name in (a, b) for cell in table.some(name) if not is_missing(cell)}
        marks = {word(cell) for name in (a, b) for cell in table.some(name)} & {*UP, *DOWN}
        if ways == {1.0, -1.0} and (marks or "like" in a.casefold() or "thumb" in a.casefold()):
            return a, b
    return None


def _way(cell: Any) -> float | None:
    said = str(cell).strip().casefold() if number_in(cell) is None else word(cell)
    said = said if said in {*UP, *DOWN} else word(cell)
    if said in UP or said in DOWN:
        return 1.0 if said in UP else -1.0
    told = yes_or_no(cell)
    return None if told is None else 1.0 if told else -1.0


def _winner(first: Any, second: Any) -> str | None:
    """What a label would say; of a row without both thumbs nothing, or what its cells hold."""
    if is_missing(first) or is_missing(second):
        return None
    a, b = _way(first), _way(second)
    if a is None or b is None:
        return f"{first} and {second}"
    return "tie" if a == b else "first" if a > b else "second"
