"""A feature that explains the labels by itself."""

import dataclasses

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


def test_no_reason_claims_certainty():
    x = np.abs(np.random.default_rng(0).normal(size=(500, 3)))
    pairs = numeric(x)
    fit = made_up_fit(pairs)
    robust = dataclasses.replace(fit.audit.robust, margins=np.full(500, -400.0))
    fit = dataclasses.replace(fit, audit=dataclasses.replace(fit.audit, robust=robust))
    assert ISSUES["shortcut"](Batch(pairs, fit)).explain(0).endswith("with probability more than 99.9%.")
