"""Pairs whose two sides are the same, in full or in the part that a trainer sees."""

import numpy as np
from jaxtyping import Bool, Float

from .base import Batch, Issue, counted

ORDER = 30


def identical(batch: Batch) -> Issue:
    """Score: the share of the longer side's words after the sides part; 0 where they never do.

    With `truncate` words of prompt and response together, as trainers cut them, sides that part later are the same.
    Without texts: 0 where all features are equal, else 1.
    """
    pairs = batch.pairs
    if pairs.texts is None:
        same = np.all(np.asarray(pairs.chosen) == np.asarray(pairs.rejected), axis=1)
        return _issue(np.where(same, 0.0, 1.0), same, np.zeros_like(same), batch)
    rows = zip(pairs.texts.prompt, pairs.texts.chosen, pairs.texts.rejected, strict=True)
    parted = np.array([_parting(len(p.split()), a.split(), b.split()) for p, a, b in rows])
    before, longest, room = parted.T
    same = before >= longest
    cut = ~same & (room + before >= batch.truncate)
    score = np.where(same | cut, 0.0, 1.0 - before / np.maximum(longest, 1))
    return _issue(score, same | cut, cut, batch)


def _issue(
    score: Float[np.ndarray, " N"], flag: Bool[np.ndarray, " N"], cut: Bool[np.ndarray, " N"], batch: Batch
):
    def explain(row: int) -> str:
        if cut[row]:
            return f"Cut to {batch.truncate} words, both sides are the same."
        return "Both sides are the same."

    more = f", {int(cut.sum()):,} of them after {batch.truncate} words" if cut.any() else ""
    what = f"have identical sides{more}"
    return Issue(
        "identical",
        score,
        flag,
        explain,
        counted(int(flag.sum()), len(flag), what),
        certain=True,
        suggests="tie",
    )


def _parting(asked: int, first: list[str], second: list[str]) -> tuple[int, int, int]:
    """(words that both begin with, words of the longer side, words of the prompt)."""
    both = zip(first, second, strict=False)
    before = next((i for i, (a, b) in enumerate(both) if a != b), min(len(first), len(second)))
    return before, max(len(first), len(second)), asked
