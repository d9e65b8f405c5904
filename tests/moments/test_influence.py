"""What rows that a filter removed still count."""

import jax.numpy as jnp
import numpy as np

from robust_rlhf_jax.moments.influence import SUSPECT_WEIGHT, floored_weights

X = np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32)
X[0] *= 1e5


def test_where_all_are_trusted_only_the_floor_counts():
    weights = jnp.linspace(0.0, 1.0, 50)
    found = floored_weights(jnp.asarray(X), weights, jnp.float32(0.0))
    np.testing.assert_array_equal(found, np.maximum(weights, np.float32(SUSPECT_WEIGHT)))


def test_a_far_row_counts_less_and_its_square_is_bounded():
    found = np.asarray(floored_weights(jnp.asarray(X), jnp.zeros(50), jnp.float32(0.1)))
    np.testing.assert_allclose(found[1:], SUSPECT_WEIGHT)
    assert found[0] < 1e-9
    lengths = np.sum(X**2, axis=1)
    assert found[0] * lengths[0] < 200 * SUSPECT_WEIGHT * np.median(lengths)
