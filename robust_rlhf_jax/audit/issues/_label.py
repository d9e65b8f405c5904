"""Labels that the rest of the file contradicts, by robust fits that did not see them."""

import numpy as np

from ..flips import posterior
from .base import Batch, Issue, as_chance, counted

ORDER = 10

# The share of flips that scores assume where there is evidence of none, so that labels are ranked anyway.
LEAST_SHARE = 0.01


def label(batch: Batch) -> Issue:
    """Score: P(label is honest | the rest), by margins under `fit_reward` without the pair.

    Flagged: as many of lowest margin as the fits find evidence against (contradictions, `AuditResult.evidence`); and as
    many of lowest chance as are flipped where the most certain predictions fail more often than people's differences
    allow (`flips`).
    """
    held_out, n = batch.held_out, batch.pairs.n_pairs
    share, chance = max(held_out.epsilon, LEAST_SHARE), held_out.agreement()
    score = np.where(held_out.fitted, 1.0 - posterior(chance, share), 1.0)
    flag = held_out.contradicted.copy()
    rest = held_out.fitted & ~flag
    count = int(held_out.flips.evident * rest.sum())
    flag[np.argsort(np.where(rest, chance, np.inf), kind="stable")[:count]] = True
    flag &= held_out.fitted & (held_out.margins < 0)

    def explain(row: int) -> str:
        left = " The fits that saw it left it out." if held_out.left_out[row] > 0.5 else ""
        given = as_chance(1 - chance[row])
        return f"By the other pairs, the rejected side wins with probability {given}: the label looks flipped.{left}"

    return Issue(
        "label",
        score,
        flag,
        explain,
        counted(int(flag.sum()), n, "have a label that the rest contradicts"),
        doubts="every pair",
        suggests="rejected",
    )
