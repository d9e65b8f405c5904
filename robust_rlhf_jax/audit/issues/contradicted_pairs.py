"""Pairs that another pair contradicts, in files in which equal sides are no accident: texts and embeddings."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool, Float, Int

from robust_rlhf_jax.io import Pairs

from .base import Batch, Issue, counted

# Rows of fewer features repeat by chance.
TELLING = 16


def has_telling_sides(pairs: Pairs) -> bool:
    return pairs.texts is not None or (pairs.kind != "arrays" and np.shape(pairs.chosen)[1] >= TELLING)


def keys_of_sides(batch: Batch) -> Iterator[tuple[int, int | bytes, int | bytes]]:
    """(prompt, chosen, rejected) of each pair, so that equal ones are equal: texts but for case and spaces."""
    if batch.wordings is not None:
        yield from map(tuple, batch.wordings.of.tolist())
        return
    for first, second in zip(np.asarray(batch.pairs.chosen), np.asarray(batch.pairs.rejected), strict=True):
        yield 0, first.tobytes(), second.tobytes()


def judged_by_several(pairs: Pairs, rows: list[int]) -> bool:
    """Whether `rows` are one pair of the file that as many raters judged: they may disagree, none is a duplicate."""
    if pairs.raters is None or pairs.groups is None:
        return False
    return len(set(pairs.groups[rows])) == 1 and len(set(pairs.raters[rows])) == len(rows)


def contradicted(
    name: str,
    pairs: Pairs,
    score: Float[np.ndarray, " N"],
    drop: Bool[np.ndarray, " N"],
    twin: Int[np.ndarray, " N"],
    *,
    says: str,
    what: str,
) -> Issue:
    """The issue of pairs that another pair contradicts: `twin` [N] is its place, -1 where there is none."""
    flag = twin >= 0

    def explain(row: int) -> str:
        return f"Row {pairs.rows[twin[row]] + 1} {says}"

    summary = counted(int(flag.sum()), pairs.n_pairs, what)
    return Issue(name, score, flag, explain, summary, certain=True, drop=drop, doubts="flagged pairs")
