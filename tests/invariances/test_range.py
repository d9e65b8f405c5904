"""Rows near the ends of what a precision holds, in half precision, not finite, and ε just below one half."""

import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.checks import as_epsilon
from robust_rlhf_jax.likelihood import trimmed_mle
from robust_rlhf_jax.moments import robust_covariance, robust_linear_regression, robust_mean

ROWS = np.random.default_rng(0).normal(size=(100, 3)).astype(np.float32)
LABELS = np.where(ROWS @ [1.0, -1.0, 0.5] + np.random.default_rng(1).logistic(size=100) > 0, 1.0, -1.0)


@pytest.mark.parametrize("power", [-18, 0, 18])
def test_covariance_near_the_ends_of_the_range(power):
    plain = robust_covariance(ROWS, 0.1)
    found = robust_covariance(ROWS * np.float32(10.0**power), 0.1)
    assert found.status == Status.CONVERGED
    assert found.rank == 3
    scaled = found.covariance / np.float32(10.0 ** (2 * power))
    # Entries below the smallest normal number, .012 in this unit at worst, are flushed to 0.
    np.testing.assert_allclose(scaled, plain.covariance, rtol=1e-3, atol=0.012)


@pytest.mark.parametrize("power", [-30, 25])
def test_a_covariance_beyond_the_range_is_reported(power):
    found = robust_covariance(ROWS * np.float32(10.0**power), 0.1)
    assert found.status == Status.NONFINITE
    assert found.rank == 3


@pytest.mark.parametrize("size", [1e6, 1e20, 1e38])
def test_one_absurd_row_does_not_reach_the_covariance(size):
    clean = robust_covariance(ROWS, 0.05)
    rows = ROWS.copy()
    rows[7] = size
    found = robust_covariance(rows, 0.05)
    assert found.status == Status.CONVERGED
    assert found.weights[7] == 0
    np.testing.assert_allclose(found.covariance, clean.covariance, atol=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_half_precision_is_worked_with_in_single(dtype):
    rows = jnp.asarray(ROWS, dtype)
    wide = rows.astype(jnp.float32)
    np.testing.assert_array_equal(robust_mean(rows, 0.1), robust_mean(wide, 0.1))
    np.testing.assert_array_equal(
        robust_covariance(rows, 0.1).covariance, robust_covariance(wide, 0.1).covariance
    )
    found, expected = (trimmed_mle(x, LABELS, 0.1, radius=3.0).theta for x in (rows, wide))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_are_named(bad):
    rows = ROWS.copy()
    rows[7, 1] = bad
    with pytest.raises(ValueError, match=r"x\[7, 1\] is"):
        robust_mean(rows, 0.1)
    with pytest.raises(ValueError, match=r"phi\[7, 1\] is"):
        robust_linear_regression(rows, ROWS[:, 0], 0.1)
    with pytest.raises(ValueError, match=r"targets\[7\] is"):
        robust_linear_regression(ROWS, rows[:, 1], 0.1)
    assert robust_covariance(rows, 0.1).status == Status.NONFINITE


def test_an_epsilon_below_one_half_stays_below():
    assert as_epsilon(0.4999999999, jnp.float32) < 0.5
    assert np.isfinite(robust_mean(ROWS, 0.4999999999)).all()
