"""Labels that the rest contradicts."""

import dataclasses

import numpy as np
from issue_batches import found_in, numeric
from text_pairs import made_up_fit

from robust_rlhf_jax.audit.issues import ISSUES, Batch


def test_the_fault_is_found_and_explained(tmp_path):
    found_in(tmp_path, "label", "label looks flipped")


def test_no_reason_claims_certainty():
    pairs = numeric(np.random.default_rng(0).normal(size=(50, 3)))
    fit = made_up_fit(pairs, (3, 4))
    margins = fit.audit.robust.margins.copy()
    margins[[3, 4]] = -400.0, -0.01
    robust = dataclasses.replace(fit.audit.robust, margins=margins)
    fit = dataclasses.replace(fit, audit=dataclasses.replace(fit.audit, robust=robust))
    issue = ISSUES["label"](Batch(pairs, fit))
    assert "more than 99.9%" in issue.explain(3)
    assert "more than" not in issue.explain(4)
