"""What raters answered in `ask.csv`, as decisions: a label that they do not confirm goes."""

from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np

from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.io.bad_cells import shown
from robust_rlhf_jax.io.labels import is_missing, word, word_rule

from .ask_pairs import BETTER, first_is_rejected

# The columns of the two sides, whose order does not depend on the label.
SIDES = ("first", "second")
NUMBERS = {"1": "first", "2": "second"}
RULE = word_rule(SIDES)


class Answers(NamedTuple):
    """`pairs` that are answered, by number from 0, and which of them the answers `confirm`; `open`: how many of
    those in the file nobody answered.
    """

    pairs: tuple[int, ...]
    confirm: tuple[bool, ...]
    open: int

    @property
    def message(self) -> str:
        count, kept = len(self.pairs), sum(self.confirm)
        asked = count + self.open
        return (
            f"Raters answered {count:,} of the {asked:,} pairs to ask about: {kept:,} as in the file, "
            f"{count - kept:,} otherwise and left out."
        )


def is_asked(columns: list[str]) -> bool:
    """Whether a file with these columns is an `ask.csv`."""
    return "decision" not in columns and (BETTER in columns or {*SIDES} <= {*columns})


def read_answers(rows: list[tuple[str, int, Any]], pairs: Pairs) -> Answers:
    """Whether more of the answers about each pair say what the file says than say either of the other two: that the
    other side is better, or a tie.

    **Arguments:** `rows`: where it stands, the pair from 0, and what `better` says: first, second, a tie, or nothing.

    **Raises:** ValueError in one sentence for another word.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax import Pairs
    >>> from robust_rlhf_jax.audit.answers import read_answers
    >>> pairs = Pairs(np.ones((3, 1)), np.zeros((3, 1)))
    >>> read_answers([("line 2", 0, "first"), ("line 3", 1, "tie"), ("line 4", 2, "")], pairs).message
    'Raters answered 2 of the 3 pairs to ask about: 0 as in the file, 2 otherwise and left out.'
    """
    said: dict[int, list[float]] = defaultdict(list)
    for where, pair, cell in rows:
        said[pair] += (
            [] if is_missing(cell) else [_side(where, cell) * (-1 if first_is_rejected(pair) else 1)]
        )
    answered = {pair: ways for pair, ways in said.items() if ways}
    label = np.where(pairs.ties, 0.0, 1.0)
    confirm = tuple(_confirms(ways, label[pair]) for pair, ways in answered.items())
    return Answers(tuple(answered), confirm, len(said) - len(answered))


def _confirms(ways: list[float], label: float) -> bool:
    return all(ways.count(label) > ways.count(other) for other in {-1.0, 0.0, 1.0} - {label})


def _side(where: str, cell: Any) -> float:
    """1 for the first side, 0 for a tie, −1 for the second."""
    told = word(cell)
    value = RULE.value(NUMBERS.get(told, told))
    if value is None:
        raise ValueError(
            f"{where}: {BETTER} is {shown(cell)}: answer first, second or tie, or leave it empty."
        )
    return float(np.sign(value))
