"""Which rows of choices are marked as chosen: by yes and no, by words, or by a mark beside empty cells."""

from collections.abc import Sequence
from typing import Any

from ..labels import is_missing, word, yes_or_no

CHOSEN = {"chosen", "selected", "picked", "x", "✓", "✔", "☑"}
NOT_CHOSEN = {"not chosen", "unchosen", "not selected", "unselected", "not picked", "nonchosen", "non chosen"}


def marks_of(cells: Sequence[Any]) -> list[bool | None]:
    """Whether each row was chosen, None of what says neither; an empty cell says no where all others are one mark.

    **Example:**

    >>> from robust_rlhf_jax.io.schemas.chosen_marks import marks_of
    >>> marks_of(["chosen", "not chosen"]), marks_of(["x", "", ""]), marks_of([1, 0, None])
    ([True, False], [True, False, False], [True, False, None])
    """
    said = [None if is_missing(cell) else _mark(cell) for cell in cells]
    there = {word(cell) for cell in cells if not is_missing(cell)}
    alone = len(there) == 1 and True in said
    return [False if alone and is_missing(cell) else told for cell, told in zip(cells, said, strict=True)]


def _mark(cell: Any) -> bool | None:
    said = word(cell)
    if said in CHOSEN or said in NOT_CHOSEN:
        return said in CHOSEN
    return yes_or_no(cell)
