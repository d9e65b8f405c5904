"""Who won: labels as words, strengths from −3 to 3, ties."""

from collections.abc import Iterable

import numpy as np
from jaxtyping import Float

from .bad_cells import BadCell, shown

FIRST = {
    "first",
    "a",
    "left",
    "option_a",
    "response_a",
    "model_a",
    "answer_a",
    "response_1",
    "a is better",
    "+1",
    "a>b",
}
SECOND = {"second", "b", "right", "option_b", "response_b", "model_b", "answer_b", "response_2", "b is better", "-1", "b>a"}  # fmt: skip  # noqa: E501
TIE = {"tie", "ties", "equal", "same", "both", "neither", "draw", "none", "tie (bothbad)", "both_bad", "a=b"}
CHOSEN, REJECTED = {"chosen"}, {"rejected"}
STRONGEST = 3.0


def read_labels(
    cells: list, column: str, first_is: str | None = None
) -> tuple[Float[np.ndarray, " N"], list[BadCell]]:
    """How much the first side is preferred, one number a row: above 0 the first, 0 a tie, below 0 the second.

    Words are understood as `FIRST`, `SECOND`, `TIE`; `first_is` is the value that stands for the first side, whatever
    it is, any other one but a tie's for the second. Numbers are strengths from −3 to 3, negative where the *first*
    side is better (HelpSteer3); 0 and 1 alone say nothing about which is which, and need `first_is`.

    **Raises:** ValueError for a column of 0 and 1 without `first_is`.
    """
    told = None if first_is is None else first_is.strip().casefold()
    if told is None and _only_zero_and_one(cells):
        raise ValueError(
            f"column {column} holds 0 and 1 alone: say which one means the first side, by --first-is 0 or --first-is 1"
        )
    values, bad = np.zeros(len(cells)), []
    for row, cell in enumerate(cells):
        value = _told(cell, told) if told is not None else _understood(cell)
        if value is None:
            reason = "is missing" if cell is None else f"holds the unknown label {shown(cell)}"
            bad.append(BadCell(row, column, reason))
        else:
            values[row] = value
    return values, bad


def read_ties(cells: list, column: str) -> tuple[np.ndarray, list[BadCell]]:
    """Whether each row is a tie: true, 1, yes or a word for a tie; false, 0, no or nothing."""
    yes, no = {"true", "1", "yes", "1.0", *TIE}, {"false", "0", "no", "0.0", "", "none", *FIRST, *SECOND}
    words = ["" if cell is None else str(cell).strip().casefold() for cell in cells]
    bad = [
        BadCell(row, column, f"holds {shown(cells[row])}, neither yes nor no")
        for row, word in enumerate(words)
        if word not in yes | no
    ]
    return np.array([word in yes and word != "none" for word in words]), bad


def _only_zero_and_one(cells: Iterable) -> bool:
    words = {str(cell).strip() for cell in cells if cell is not None}
    return bool(words) and words <= {"0", "1", "0.0", "1.0", "True", "False"}


def _told(cell, told: str) -> float | None:
    if cell is None or cell == "":
        return None
    word = _word(cell)
    return 0.0 if word in TIE else 1.0 if word == told else -1.0


def _understood(cell) -> float | None:
    if cell is None or cell == "":
        return None
    word = _word(cell)
    for words, value in ((FIRST, 1.0), (SECOND, -1.0), (TIE, 0.0), (CHOSEN, 1.0), (REJECTED, -1.0)):
        if word in words and word not in ("+1", "-1"):
            return value
    try:
        strength = float(word)
    except ValueError:
        return None
    return -strength if -STRONGEST <= strength <= STRONGEST else None


def _word(cell) -> str:
    word = str(cell).strip().casefold()
    # 1.0 in a table of floats is the 1 that was typed.
    return word.removesuffix(".0")
