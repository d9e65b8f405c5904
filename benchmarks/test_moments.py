"""Robust mean and covariance of normal rows, a tenth of them moved to one place."""

import jax
import pytest

from robust_rlhf_jax import robust_covariance, robust_mean

EPSILON = 0.1


def spoilt_rows(n, d):
    """Standard normal rows; the first tenth lies in a tight cluster at distance 2√d."""
    x = jax.random.normal(jax.random.key(0), (n, d))
    spoilt = int(EPSILON * n)
    return jax.block_until_ready(x.at[:spoilt].set(0.1 * x[:spoilt] + 2.0))


def test_robust_mean(measure):
    x = spoilt_rows(100_000, 100)
    measure(
        lambda: robust_mean(x, EPSILON),
        what="`robust_mean`",
        size="n = 100,000, d = 100, ε = .1",
        group="robust_mean",
        rounds=5,
    )


@pytest.mark.parametrize(("n", "d"), [(20_000, 30), (10_000, 100)])
def test_robust_covariance(measure, n, d):
    x = spoilt_rows(n, d)
    measure(
        lambda: robust_covariance(x, EPSILON),
        what="`robust_covariance`",
        size=f"n = {n:,}, d = {d}, ε = .1",
        group="robust_covariance",
        rounds=5,
    )
