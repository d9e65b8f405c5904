"""Files that have a rank and a score for each answer, of which a reader takes one."""

import itertools
from collections.abc import Iterable, Sequence

from ..labels import number_in


def check_agreement(scores: str, ranks: str, sets: Iterable[tuple[Sequence, Sequence]], remedy: str) -> None:
    """`sets`: (scores, ranks) of answers to one prompt; of those that follow each other, which both decide, most must
    agree that the higher score and the lower rank are the better ones.

    **Raises:** ValueError, with the remedy.
    """
    agree = [
        a * b < 0
        for of_set in sets
        for a, b in zip(*map(steps_of, of_set), strict=True)
        if a is not None and b is not None and a * b != 0
    ]
    if 2 * sum(agree) < len(agree):
        raise ValueError(
            f"{scores} and {ranks} contradict each other in most answers, if the highest score and the lowest rank are "
            f"the best: {remedy}"
        )


def steps_of(values: Sequence) -> list[float | None]:
    """From each number to the next; None where one is missing."""
    numbers = [number_in(value) for value in values]
    return [None if a is None or b is None else b - a for a, b in itertools.pairwise(numbers)]
