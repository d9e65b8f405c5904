"""The same two options compared twice, with opposite results."""

from collections import defaultdict

import numpy as np

from .base import Batch, Issue
from .contradicted_pairs import contradicted, has_telling_sides, judged_by_several, keys_of_sides

ORDER = 40


def both_orders(batch: Batch) -> Issue | None:
    """Score: of the file's votes on these two options, the share that goes this pair's way; flagged below 1.

    A cleaned copy drops the minority, and both where votes are even. None for tables of few features, where equal
    rows are usual.
    """
    pairs = batch.pairs
    if not has_telling_sides(pairs):
        return None
    votes: dict = defaultdict(lambda: defaultdict(list))
    for row, (asked, first, second) in enumerate(keys_of_sides(batch)):
        if first != second and not pairs.ties[row]:
            votes[asked, frozenset((first, second))][first].append(row)
    n = pairs.n_pairs
    score, drop, twin = np.ones(n), np.zeros(n, bool), np.full(n, -1)
    for sides in votes.values():
        if len(sides) < 2:
            continue
        (some, others) = sides.values()
        if judged_by_several(pairs, some + others):
            continue
        for mine, theirs in ((some, others), (others, some)):
            score[mine] = len(mine) / (len(mine) + len(theirs)) * 0.999
            drop[mine] = len(mine) <= len(theirs)
            twin[mine] = theirs[0]
    return contradicted(
        "both_orders",
        pairs,
        score,
        drop,
        twin,
        says="prefers the other one of the same two options.",
        what="are the same two options with the opposite result",
    )
