"""Which pairs folds keep together: those of one group, and copies of one text."""

from typing import Any

import numpy as np
from jaxtyping import Int

from robust_rlhf_jax.io import Pairs


def kept_together(data: Any, groups: Int[np.ndarray, " N"] | None, folds: int) -> Int[np.ndarray, " N"]:
    """A number for each pair; `folds` do not divide pairs of one number.

    Without `groups`, copies of the same prompt and answers, in either order, are together: fits that have seen a copy
    would know the label of the pair that is held out, and be certain of it. Where that leaves fewer groups than folds,
    each pair is its own.
    """
    if groups is not None:
        return groups
    alone = np.arange(data.n_pairs)
    if not isinstance(data, Pairs) or data.texts is None:
        return alone
    first: dict[tuple[str, frozenset[str]], int] = {}
    texts = zip(data.texts.prompt, data.texts.chosen, data.texts.rejected, strict=True)
    found = [first.setdefault((prompt, frozenset(sides)), i) for i, (prompt, *sides) in enumerate(texts)]
    return np.array(found) if len(first) >= folds else alone
