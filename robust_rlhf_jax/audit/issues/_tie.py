"""Ties: pairs for which the file records no preference. How often each rater ties: `raters/votes.py`."""

import numpy as np

from .base import Batch, Issue, counted

ORDER = 80


def tie(batch: Batch) -> Issue:
    """Score: strength of the preference over the file's strongest; flagged where the file calls it a tie.

    Ties take no part in fits, and a cleaned copy leaves them out.
    """
    strength = batch.pairs.strength
    flag = batch.pairs.ties
    score = np.clip(strength / max(float(strength.max()), 1e-300), 0.0, 1.0) if strength.any() else strength
    what = counted(int(flag.sum()), len(flag), "are ties")
    return Issue(
        "tie", score, flag, lambda row: "The file calls it a tie.", what, certain=True, suggests="tie"
    )
