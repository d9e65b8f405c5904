"""Pairs of texts that one rater judged several times, with different results: later rows may correct earlier ones."""

import numpy as np

from .pairs import Pairs
from .unnamed_raters import has_name


def of_changed_judgements(pairs: Pairs) -> list[str]:
    """A note on pairs that a rater judged again with another result; `descriptions.py` tells of those with the same.

    **Example:**

    >>> from robust_rlhf_jax.io import describe
    >>> row = {"response_a": "Yes.", "response_b": "No.", "winner": "a", "rater": "ann"}
    >>> describe([row, row | {"response_b": "So."}, row | {"winner": "b"}]).notes[-1]
    '1 judgement contradicts an earlier one of the same pair by the same rater (rows 1 and 3), and both count: \
if the later one corrects it, keep that row alone.'
    """
    texts, raters = pairs.texts, pairs.raters
    if texts is None or raters is None or pairs.kind != "texts":
        return []
    said: dict[tuple, tuple[str, int]] = {}
    changed: list[tuple[int, int]] = []
    sides = zip(texts.prompt, texts.chosen, texts.rejected, strict=True)
    rows = zip(
        sides, raters.tolist(), has_name(raters), pairs.ties.tolist(), pairs.rows.tolist(), strict=True
    )
    for (prompt, chosen, rejected), who, known, tie, row in rows:
        if not known:
            continue
        won = "" if tie else chosen
        before, first = said.setdefault((prompt, frozenset((chosen, rejected)), who), (won, row))
        if first != row and before != won:
            changed.append((first, row))
    return _of_changed(changed)


def _of_changed(changed: list[tuple[int, int]]) -> list[str]:
    if not changed:
        return []
    first, row = (1 + int(place) for place in np.asarray(changed[0]))
    if len(changed) == 1:
        return [
            "1 judgement contradicts an earlier one of the same pair by the same rater (rows "
            f"{first} and {row}), and both count: if the later one corrects it, keep that row alone."
        ]
    return [
        f"{len(changed):,} judgements contradict an earlier one of the same pair by the same rater, such as "
        f"rows {first} and {row}, and all count: if later ones correct them, keep the last row of each alone."
    ]
