"""Every adversary on segments that are shorter than the episodes of the world it knows."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax import changed_pairs, delivery_grid, sample_segments
from robust_rlhf_jax.attacks import ATTACKS, adaptive, adaptive_filtered, push_features
from robust_rlhf_jax.attacks.spoil_transitions import least_covered_directions

SHORT = {
    "adaptive": partial(adaptive, steps=2),
    "adaptive_filtered": partial(adaptive_filtered, steps=2, restarts=2, templates=5),
}
MDP = delivery_grid(jax.random.key(0), size=4, horizon=10)
DATA = sample_segments(jax.random.key(1), MDP, 300, 4, temperature=0.18)


@pytest.mark.parametrize("name", ATTACKS)
def test_budget_shapes_and_plan_are_kept(name):
    attack = SHORT.get(name, ATTACKS[name])
    spoilt = jax.jit(attack)(jax.random.key(2), DATA, jnp.float32(0.1), MDP)
    assert jax.tree.structure(spoilt) == jax.tree.structure(DATA)
    for old, new in zip(jax.tree.leaves(DATA), jax.tree.leaves(spoilt), strict=True):
        assert (old.shape, old.dtype) == (new.shape, new.dtype)
        assert np.isfinite(np.asarray(new, np.float64)).all()
    assert spoilt.planning_horizon == 10
    np.testing.assert_array_equal(spoilt.planning_start, DATA.planning_start)
    assert 0 < int(changed_pairs(DATA, spoilt).sum()) <= 30


def test_push_features_speaks_against_theta():
    spoilt = push_features(jax.random.key(2), DATA, 0.1, MDP)
    changed = np.asarray(changed_pairs(DATA, spoilt))
    x = np.asarray(spoilt.differences())[changed]
    theta = np.asarray(MDP.theta[0])
    np.testing.assert_allclose(x, np.broadcast_to(-8 * theta / np.linalg.norm(theta), x.shape), atol=1e-4)


def test_pooled_data_have_one_least_covered_direction():
    phi = np.asarray(DATA.features, np.float64).reshape(-1, MDP.dim)
    (direction,) = np.asarray(least_covered_directions(DATA))
    rarest = np.argmin(np.where(phi.sum(axis=0) > 0, phi.sum(axis=0), np.inf))
    np.testing.assert_allclose(phi.sum(axis=0)[np.abs(direction) > 0.5], phi.sum(axis=0)[rarest])
