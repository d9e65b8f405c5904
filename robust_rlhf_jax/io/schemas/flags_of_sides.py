"""What says of one side how good it is, beside a label: `a_chosen`, `winner_1`; ranks and scores of both; the loser."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ..labels import is_missing, number_in, suffixes, word_rule, yes_or_no
from ..table import Table
from .sides import TOKENS, by_plain_name

FLAGS = (
    "chosen", "is_chosen", "selected", "is_selected", "best", "is_best", "preferred", "is_preferred", "winner",
    "if_chosen", "is_winner", "picked", "won", "win", "wins", "better", "is_better",
)  # fmt: skip
ANSWERS = ("", "response_", "answer_")
THINGS = (*ANSWERS, "model_", "option_", "side_")

SCORES = ("score", "rating", "reward", "overall_score", "quality")
# Not those of other criteria, such as more_harmful.
LOSERS = re.compile(r"(?:^|[\W_])(?:loser|losing|rejected|dispreferred|worse|worst)(?:$|[\W_])", re.I)
# Rows from which on it is no chance if scores agree with the label in less than this share of them.
MANY, RARELY = 10, 0.1


def flags_called(
    table: Table,
    stems: tuple[str, ...],
    tokens: tuple[tuple[str, str], ...] = TOKENS,
    things: tuple[str, ...] = THINGS,
) -> list[tuple[str | None, str | None]]:
    """(the column of the first side, that of the second) that are called by a stem, one of `things` and one of
    `tokens`; None for one that is not there.
    """
    lower = {
        name.replace(":::", "_").replace(".", "_"): column for name, column in by_plain_name(table).items()
    }
    return [
        (lower.get(a), lower.get(b)) for a, b in _names(stems, tokens, things) if a in lower or b in lower
    ]


@lru_cache
def _names(
    stems: tuple[str, ...], tokens: tuple[tuple[str, str], ...], things: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """What the columns of both sides may be called. Every file is asked for thousands of names, several times."""
    forms = [
        form
        for stem in stems
        for both in ((f"{stem}_{thing}{{}}", f"{thing}{{}}_{stem}") for thing in things)
        for form in (*both, f"{stem}{{}}")
    ]
    return tuple((form.format(first), form.format(second)) for first, second in tokens for form in forms)


def check_flags(table: Table, label: str, sides: tuple[str, str], ways: list[float | None]) -> None:
    """`ways`: above 0 where the label says that the first side won.

    **Raises:** ValueError for flags or ranks that say something else in most rows, and for scores and losers that do in
        nearly all: people may contradict scores.
    """
    flags = ((columns, _by_flags) for columns in flags_called(table, FLAGS, (suffixes(sides),)))
    ranks = ((columns, _by_ranks) for columns in flags_called(table, ("rank",), (suffixes(sides),), ANSWERS))
    # Beside options that columns of numbers describe, a rating is one of these.
    scored = SCORES if {*sides} <= {*table.names} else ()
    scores = ((columns, _by_scores) for columns in flags_called(table, scored, (suffixes(sides),), ANSWERS))
    for columns, way_of in (*flags, *ranks, *scores):
        names = [name for name in columns if name not in (None, label)]
        cells = (table.cells(name if name in names else None) for name in columns)
        said = [way_of(a, b) for a, b in zip(*cells, strict=True)]
        rows = "nearly all" if way_of is _by_scores else "most"
        contrary = contradict_always if way_of is _by_scores else contradict_mostly
        if contrary(ways, said):
            raise ValueError(
                f"{label} and {' and '.join(names)} both say which side won, and disagree in {rows} rows: give "
                f"--label {label} if that is right"
            )
    _check_losers(table, label, sides, ways)


def _check_losers(table: Table, label: str, sides: tuple[str, str], ways: list[float | None]) -> None:
    """**Raises:** ValueError for a column that names either side as the losing one, and the winner in nearly all rows;
    what is the same in all rows may be a flag of theirs, or who rejected them.
    """
    value = word_rule(sides).value
    for name in (name for name in table.names if LOSERS.search(name) and name not in (label, *sides)):
        if not any(map(value, table.some(name))):  # reasons in sentences
            continue
        lost = [-way if (way := value(cell)) else None for cell in table.cells(name)]
        if len({way > 0 for way in lost if way}) == 2 and contradict_always(ways, lost):
            raise ValueError(
                f"{label} and {name} name the same side in nearly all rows, as the one that won and the one that lost: "
                f"give --label {label} if that is right"
            )


def contradict_mostly(ways: Sequence[float | None], others: Sequence[float | None]) -> bool:
    """Whether of the rows that both decide (not 0, not None) most are decided otherwise."""
    agree = _agree(ways, others)
    return 2 * sum(agree) < len(agree)


def contradict_always(ways: Sequence[float | None], others: Sequence[float | None]) -> bool:
    """Whether of many rows that both decide nearly all are decided otherwise."""
    agree = _agree(ways, others)
    return len(agree) >= MANY and sum(agree) < RARELY * len(agree)


def _agree(ways: Sequence[float | None], others: Sequence[float | None]) -> list[bool]:
    return [a * b > 0 for a, b in zip(ways, others, strict=True) if a and b]


def _by_flags(first: Any, second: Any) -> float:
    """Above 0 if two flags, or the only one, say that the first side won; 0 if they say neither."""
    told = [None if is_missing(cell) else yes_or_no(cell) for cell in (first, second)]
    first_won, second_won = (0.0 if flag is None else 1.0 if flag else -1.0 for flag in told)
    return first_won - second_won


def _by_scores(first: Any, second: Any) -> float:
    return -_by_ranks(first, second)


def _by_ranks(first: Any, second: Any) -> float:
    a, b = number_in(first), number_in(second)
    return 0.0 if a is None or b is None else b - a
