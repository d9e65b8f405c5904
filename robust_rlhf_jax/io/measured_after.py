"""Features of numbers whose names say that they were measured while somebody chose, or afterwards."""

import re

from .pairs import Pairs
from .schemas import Mapped
from .schemas.choice_features import HUMP
from .schemas.sides import plain_name
from .table import Table

UNIT = r"(?:_(?:ms|msec|millis\w*|s|sec|secs|seconds|min|mins|minutes))?"
MEAN = r"(?:(?:avg|mean|median|total|sum|max|n|num|number_of|count_of)_)*"
# How long people looked, where, and when they answered; `time`, `duration` and `latency` alone are attributes.
WATCHED = (
    r"dwell\w*|time_(?:on|spent|to)_\w+|time_spent|(?:response|reaction|reading|viewing|view|watch|decision|answer|"
    r"answering|looking|look|hover|completion|deliberation|listening)_(?:time|duration)s?|rts?|gaze\w*|fixations?(?:_\w+)?|"
    r"saccades?(?:_\w+)?|pupil\w*|scroll\w*|mouse_\w+|hovers?|keystrokes|watch_?time|watched"
)
# What people did with an option, and what they thought of it and of their choice.
DONE = (
    r"purchased|bought|clicked|converted|ordered|opened|liked|downloaded|returned|refunded|subscribed|replied|"
    r"clicks|likes|upvotes|downvotes|purchases|(?:click|open|conversion|purchase|return|refund)_rates?|"
    r"(?:user_|customer_)?satisfaction(?:_\w+)?|confidence|certainty|agreement|regret|n_(?:annotators|raters|judges|votes)"
)
# What a contest or the choice itself changed.
CHANGED = (
    r"\w+_(?:after|afterwards|post)|(?:post|after)_(?:rating|elo|score|mmr|rank)|"
    r"(?:\w+_)?(?:rating|elo|score|mmr|ranking|glicko)_?(?:change|diff|delta|gain)"
)
AFTER = re.compile(rf"^{MEAN}(?:{WATCHED}|{DONE}|{CHANGED}){UNIT}$")


def of_outcomes(pairs: Pairs, file: Table, mapped: Mapped) -> list[str]:
    """A note on the features that look measured after the choice, with the columns to leave out.

    **Example:**

    >>> from robust_rlhf_jax.io import describe
    >>> row = {"price_a": 3, "price_b": 4, "dwell_ms_a": 900, "dwell_ms_b": 300, "choice": "a"}
    >>> print(*describe([row, row | {"choice": "b"}]).notes)
    The feature dwell_ms looks measured during or after the choice, so that it may follow from who won: if so, leave \
the columns dwell_ms_a and dwell_ms_b out of the file.
    """
    if pairs.kind != "numeric":
        return []
    names = [name for name in pairs.names if AFTER.match(plain_name(HUMP.sub("_", name)))]
    if not names:
        return []
    columns = list(dict.fromkeys(one for name in names for one in _columns_of(name, mapped, file)))
    which = "column" if len(columns) == 1 else "columns"
    listed = f"leave the {which} {_and(columns)} out of the file"
    if len(names) == 1:
        return [
            f"The feature {names[0]} looks measured during or after the choice, so that it may follow from who won: if "
            f"so, {listed}."
        ]
    return [
        f"The features {_and(names)} look measured during or after the choice, so that they may follow from who won: "
        f"if so, {listed}."
    ]


def _columns_of(name: str, mapped: Mapped, file: Table) -> list[str]:
    """The file's columns that a feature comes from; its own name where that cannot be told."""
    found: dict[str, None] = {}
    for column in mapped.roles.numbers.get("numeric", {}).get(name, ()):
        of_file, _ = mapped.cells_of.get(column, (column, False))
        found |= dict.fromkeys((of_file,) if isinstance(of_file, str) else of_file)
    return [column for column in found if column in file.columns] or [name]


def _and(names: list[str]) -> str:
    return " and ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else names[0]
