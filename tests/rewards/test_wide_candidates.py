"""Candidates of wide pairs side by side are those one by one; the whole fit finds what was planted."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.rewards import RobustFit, candidates, fit_differences
from robust_rlhf_jax.rewards.contamination import cells_of
from robust_rlhf_jax.rewards.proposals import independent, proposals

from .wide_worlds import N, unit_free_pairs, wide_pairs

FEW = RobustFit(proposals=("opposite", "crowd", "contrary_short"))
fitted = jax.jit(fit_differences)


def settled(pairs):
    return jax.jit(lambda p: candidates.candidates(p, cells_of(p), FEW))(pairs)


@pytest.mark.slow
def test_groups_cover_all_in_order():
    pairs = unit_free_pairs()
    for config in (RobustFit(), FEW, RobustFit(proposals=())):
        made = proposals(pairs, config)
        groups = independent(len(made), config)
        assert [place for group in groups for place in group] == list(range(len(made)))
        after = [int(made[place].contrary) for place in groups[-1]]
        assert all(0 <= place < groups[-1].start for place in after)
        assert all(int(made[place].contrary) < 0 for group in groups[:-1] for place in group)


@pytest.mark.slow
def test_side_by_side_is_one_by_one(monkeypatch):
    pairs = unit_free_pairs(planted=N // 10)
    together = settled(pairs)
    monkeypatch.setattr(candidates, "independent", lambda count, _: [range(count)])
    alone = settled(pairs)
    for name in ("unsuspected", "explanations"):
        one, other = getattr(together, name), getattr(alone, name)
        for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-2, atol=1e-2)


@pytest.mark.slow
def test_planted_pairs_among_many_columns_go_and_a_new_level_compiles_nothing():
    x, labels = (jnp.asarray(part, jnp.float32) for part in wide_pairs(planted=N // 10))
    found = fitted(x, labels, jnp.float32(0.1))
    compiled = fitted._cache_size()
    assert np.asarray(found.weights)[: N // 10].max() < 0.05
    assert np.asarray(found.weights)[N // 10 :].mean() > 0.97
    assert np.sum(np.linalg.norm(found.doubted, axis=1) > 0) == 1
    assert fitted(x, labels, jnp.float32(0.2)).epsilon > 0.08
    unsuspecting = fitted(x, labels, jnp.float32(0.0))
    assert fitted._cache_size() == compiled
    np.testing.assert_array_equal(unsuspecting.weights, 1.0)
    assert not unsuspecting.doubted.any()
