"""Rows far from 0: what is estimated moves with them, to the digits that a float holds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.moments import filter_mean, robust_covariance, robust_mean
from robust_rlhf_jax.moments.far_rows import moved_to_zero

RNG = np.random.default_rng(0)
CLEAN = RNG.normal(size=(600, 3)) @ np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.3], [0.0, 0.0, 2.0]])
ROWS = np.concatenate([CLEAN, np.full((45, 3), 8.0)])


@pytest.mark.slow
@pytest.mark.parametrize("away", [1e4, -1e6, 1e8, 1e12])
def test_means_and_covariances_move_with_the_rows(away):
    near, far = ROWS, ROWS + away
    digits = np.spacing(np.float32(abs(away)))
    for mean in (robust_mean, lambda x, e: robust_mean(x, e, splits=3), lambda x, e: filter_mean(x, e).mean):
        np.testing.assert_allclose(
            np.float64(mean(far, 0.1)) - away, mean(near, 0.1), rtol=0, atol=digits + 1e-3
        )
    a, b = robust_covariance(near, 0.1), robust_covariance(far, 0.1)
    np.testing.assert_allclose(a.covariance, b.covariance, rtol=0, atol=2e-3)
    np.testing.assert_allclose(np.float64(b.mean) - away, a.mean, rtol=0, atol=digits + 1e-3)
    np.testing.assert_allclose(a.weights, b.weights, rtol=0, atol=2e-3)


def test_a_known_covariance_is_that_of_rows_far_from_0_too():
    sigma = np.cov(CLEAN, rowvar=False)
    near, far = (filter_mean(ROWS + away, 0.1, covariance=sigma) for away in (0.0, 1e8))
    np.testing.assert_allclose(near.weights, far.weights, rtol=0, atol=2e-3)


def test_rows_near_0_and_traced_ones_stay_where_they_are():
    for x in (ROWS, ROWS + 50, np.eye(4)[RNG.integers(4, size=50)], np.ones((5, 2)), jnp.asarray(ROWS)):
        rows, centre = moved_to_zero(x)
        np.testing.assert_array_equal(rows, jnp.asarray(x))
        np.testing.assert_array_equal(centre, 0)
    rows, centre = jax.jit(moved_to_zero)(jnp.asarray(ROWS + 1e4))
    np.testing.assert_array_equal(rows, jnp.asarray(ROWS + 1e4))
    np.testing.assert_array_equal(centre, 0)


def test_rows_that_are_not_finite_are_refused_as_before():
    with pytest.raises(ValueError, match=r"^x\[0, 1\] is inf"):
        robust_mean(np.array([[1e8, np.inf], [1e8, 0.0]]), 0.1)
    assert np.isnan(filter_mean(np.array([[1e8, np.nan], [1e8, 0.0]]), 0.1).mean[1])


def test_fewer_rows_than_half_move_no_centre():
    """The planted rows come first, and are as far away as a float is."""
    x = np.concatenate([np.full((40, 2), 1e30), 1e6 + RNG.normal(size=(400, 2))])
    rows, centre = moved_to_zero(x)
    np.testing.assert_allclose(centre, 1e6, rtol=1e-6)
    assert np.abs(rows[40:]).max() < 10
