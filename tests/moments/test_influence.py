"""What rows that a filter removed still count."""

import jax
import jax.numpy as jnp
import numpy as np

from robust_rlhf_jax.kernels.units import LONGEST, LONGEST_IN_SCALES
from robust_rlhf_jax.moments import influence
from robust_rlhf_jax.moments.influence import SUSPECT_WEIGHT

bounded_rows, floored_weights = jax.jit(influence.bounded_rows), jax.jit(influence.floored_weights)

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


def test_rows_are_bounded_in_columns_of_typical_size_unless_all_are_trusted(x64):
    x = np.random.default_rng(1).normal(size=(50, 2)) * [1e-8, 1e5]
    x[3] *= 1e9
    size = np.median(np.abs(x), axis=0)
    lengths = np.linalg.norm(x / size, axis=1)
    found = np.asarray(bounded_rows(jnp.asarray(x), jnp.asarray(0.1)))
    np.testing.assert_allclose(np.delete(found, 3, 0), np.delete(x, 3, 0), rtol=1e-14)
    np.testing.assert_allclose(found[3] / x[3], LONGEST * np.median(lengths) / lengths[3], rtol=0.2)
    np.testing.assert_array_equal(bounded_rows(jnp.asarray(x), jnp.asarray(0.0)), x)


def test_bounded_rows_are_nan_where_they_are_not_finite():
    x = jnp.ones((4, 2)).at[1, 0].set(jnp.inf).at[2, 1].set(jnp.nan)
    for epsilon in (0.0, 0.1):
        found = np.asarray(bounded_rows(x, jnp.float32(epsilon)))
        assert np.isnan(found[1, 0])
        assert np.isnan(found[2, 1])
        np.testing.assert_array_equal(found[[0, 3]], 1.0)


def test_the_share_of_a_row_falls_with_the_square_of_its_length_from_the_longest_on(x64):
    """Rows along one axis, so that lengths are relative to 1; ε of next to nothing drops none from the scale."""
    lengths = np.array(
        [1.0, 1.0, 1.0, 1.0, LONGEST_IN_SCALES, 2 * LONGEST_IN_SCALES, 100 * LONGEST_IN_SCALES]
    )
    weights = jnp.asarray([1.0, 0.5, 0.0, 1.0, 1.0, 1.0, 0.0])
    found = floored_weights(jnp.asarray(lengths[:, None]), weights, jnp.asarray(1e-9))
    floor = SUSPECT_WEIGHT
    np.testing.assert_allclose(found, [1.0, 0.5, floor, 1.0, 1.0, 0.25, 1e-4 * floor], rtol=1e-12)
