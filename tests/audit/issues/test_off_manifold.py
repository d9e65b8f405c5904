"""Features far from all others."""

import numpy as np
from issue_batches import found_in, numeric
from text_pairs import made_up_fit

from robust_rlhf_jax.audit.issues import ISSUES, Batch


def test_the_fault_is_found_and_explained(tmp_path):
    found_in(tmp_path, "off_manifold", "occur in no other pair")


def test_one_row_far_off_is_found_and_heavy_tails_are_not():
    x = np.random.default_rng(0).standard_t(4, size=(3000, 5))
    clean = numeric(x)
    assert not ISSUES["off_manifold"](Batch(clean, made_up_fit(clean))).flag.any()
    x = x.copy()
    x[7] *= 1000
    corrupted = numeric(x)
    found = ISSUES["off_manifold"](Batch(corrupted, made_up_fit(corrupted)))
    np.testing.assert_array_equal(np.flatnonzero(found.flag), [7])
    assert "times as far out" in found.explain(7)


def test_rare_honest_features_are_not_off_manifold():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 6))
    x[:, 5] = rng.choice([-1, 0, 1], 3000, p=[0.02, 0.96, 0.02])
    pairs = numeric(x)
    assert not ISSUES["off_manifold"](Batch(pairs, made_up_fit(pairs))).flag.any()
