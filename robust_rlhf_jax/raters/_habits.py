"""What a rater may follow instead of a taste: whether the option shown first, or the longer one, was preferred."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Int

from ._missing import listed

# What a caller may give: numbers or truths, of which some may be missing.
Habits = ArrayLike | Sequence[bool | None]


def habit_of(given: Any, n_pairs: int, name: str) -> Int[np.ndarray, " N"]:
    """1 where the option was preferred, −1 where the other, 0 where nobody knows; from those numbers or from truths,
    either of which may be missing. `name`: what a message calls them.

    **Raises:** ValueError for other values, another number of them, and 0 and 1 alone, which may be meant as truths.

    **Example:**

    >>> from robust_rlhf_jax.raters._habits import habit_of
    >>> habit_of([True, None, False], 3, "chose_first").tolist()
    [1, 0, -1]
    """
    values = listed(given)
    known = [value for value in values if value is not None]
    truths = {isinstance(value, bool | np.bool_) for value in known}
    if len(values) != n_pairs or len(truths) > 1 or not all(_is_code(value) for value in known):
        raise ValueError(f"{name} must be -1, 0 or 1 for each of the {n_pairs} pairs, or true or false.")
    if truths == {False} and {int(value) for value in known} == {0, 1}:
        raise ValueError(
            f"{name} holds 0 and 1 alone, and 0 means that nobody knows: give truths, or -1 where the other option "
            "was preferred."
        )
    no = -1 if truths == {True} else 0
    return np.array([0 if value is None else int(value) or no for value in values], int)


def _is_code(value: Any) -> bool:
    return isinstance(value, bool | int | float | np.bool_ | np.number) and value in (-1, 0, 1)
