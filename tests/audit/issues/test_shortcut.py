"""A feature that explains the labels by itself."""

import numpy as np
from issue_batches import numeric
from text_pairs import made_up_fit

from robust_rlhf_jax.audit.issues import ISSUES, Batch


def test_a_shortcut_is_named():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 3))
    x[:, 0] = np.abs(x[:, 0])  # the larger f0 always wins
    pairs = numeric(x)
    issue = ISSUES["shortcut"](Batch(pairs, made_up_fit(pairs)))
    assert issue.summary.startswith("The larger f0 alone explains 100%")
    assert not issue.dropped.any()
