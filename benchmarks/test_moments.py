"""Robust mean and covariance of normal rows, a tenth of them moved to one place, and how both scale with n and d."""

import equinox as eqx
import pytest
from samples import EPSILON, corrupted_rows, size_of

from robust_rlhf_jax.moments import robust_covariance, robust_mean

# The usual size, then n and d smaller and larger; above d = 256 the mean takes its eigenvector from LOBPCG.
MEANS = [(100_000, 100), (10_000, 100), (1_000_000, 100), (100_000, 20), (100_000, 250), (20_000, 400)]
COVARIANCES = [(20_000, 30), (5_000, 30), (80_000, 30), (20_000, 10), (20_000, 100)]

compiled_mean = eqx.filter_jit(lambda x, epsilon: robust_mean(x, epsilon))
compiled_covariance = eqx.filter_jit(lambda x, epsilon: robust_covariance(x, epsilon))


def timed(measure, estimator, name, x):
    measure(
        estimator,
        x,
        EPSILON,
        what=f"`{name}`",
        size=f"{size_of(x)}, ε = .1",
        work=(x.shape[0], "rows"),
        rounds=5,
    )


@pytest.mark.parametrize(("n", "d"), MEANS)
def test_robust_mean(measure, rows, n, d):
    timed(measure, compiled_mean, "robust_mean", corrupted_rows(rows(n), d))


@pytest.mark.parametrize(("n", "d"), COVARIANCES)
def test_robust_covariance(measure, rows, n, d):
    timed(measure, compiled_covariance, "robust_covariance", corrupted_rows(rows(n), d))
