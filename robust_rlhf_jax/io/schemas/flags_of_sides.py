"""Columns that say of one side whether it won: `a_chosen`, `winner_1`; and ranks of both, beside a label."""

from typing import Any

from ..labels import is_missing, number_in, suffixes, yes_or_no
from ..table import Table
from .sides import TOKENS, by_plain_name

FLAGS = (
    "chosen", "is_chosen", "selected", "is_selected", "best", "is_best", "preferred", "is_preferred", "winner",
    "if_chosen", "is_winner", "picked", "won", "win", "wins", "better", "is_better",
)  # fmt: skip
ANSWERS = ("", "response_", "answer_")
THINGS = (*ANSWERS, "model_", "option_", "side_")


def flags_called(
    table: Table,
    stems: tuple[str, ...],
    tokens: tuple[tuple[str, str], ...] = TOKENS,
    things: tuple[str, ...] = THINGS,
) -> list[tuple[str | None, str | None]]:
    """(the column of the first side, that of the second) that are called by a stem, one of `things` and one of
    `tokens`; None for one
    that is not there."""
    lower = {name.replace(".", "_"): column for name, column in by_plain_name(table).items()}
    forms = [
        form
        for stem in stems
        for both in ((f"{stem}_{thing}{{}}", f"{thing}{{}}_{stem}") for thing in things)
        for form in (*both, f"{stem}{{}}")
    ]
    pairs = ([lower.get(form.format(token)) for token in sides] for sides in tokens for form in forms)
    return [(a, b) for a, b in pairs if a is not None or b is not None]


def check_flags(table: Table, label: str, sides: tuple[str, str], ways: list[float | None]) -> None:
    """`ways`: above 0 where the label says that the first side won.

    **Raises:** ValueError for flags or ranks of sides that say something else in most rows.
    """
    flags = ((columns, _by_flags) for columns in flags_called(table, FLAGS, (suffixes(sides),)))
    ranks = ((columns, _by_ranks) for columns in flags_called(table, ("rank",), (suffixes(sides),), ANSWERS))
    for columns, way_of in (*flags, *ranks):
        names = [name for name in columns if name not in (None, label)]
        cells = (table.cells(name if name in names else None) for name in columns)
        said = (way_of(a, b) for a, b in zip(*cells, strict=True))
        agree = [a * b > 0 for a, b in zip(ways, said, strict=True) if a and b]
        if 2 * sum(agree) < len(agree):
            raise ValueError(
                f"{label} and {' and '.join(names)} both say which side won, and disagree in most rows: give "
                f"--label {label} if that is right"
            )


def _by_flags(first: Any, second: Any) -> float:
    """Above 0 if two flags, or the only one, say that the first side won; 0 if they say neither."""
    told = [None if is_missing(cell) else yes_or_no(cell) for cell in (first, second)]
    first_won, second_won = (0.0 if flag is None else 1.0 if flag else -1.0 for flag in told)
    return first_won - second_won


def _by_ranks(first: Any, second: Any) -> float:
    a, b = number_in(first), number_in(second)
    return 0.0 if a is None or b is None else b - a
