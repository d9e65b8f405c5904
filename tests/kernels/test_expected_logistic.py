"""Expectations over normal margins against Gauss-Hermite quadrature in float64, and as derivatives of each other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit

from robust_rlhf_jax.kernels.expected_logistic import SCALES, SHARES, expected_logistic

MEANS = np.array([-9.0, -3.0, -0.5, 0.0, 0.2, 1.0, 4.0, 12.0])


def by_quadrature(mean, variance):
    nodes, weights = np.polynomial.hermite_e.hermegauss(200)
    m = mean + np.sqrt(variance) * nodes
    chance, weights = expit(m), weights / weights.sum()
    return weights @ -np.logaddexp(0, -m), weights @ (1 - chance), weights @ (chance * (1 - chance))


@pytest.mark.parametrize("variance", [0.0, 0.1, 2.0, 30.0])
def test_the_expectations_are_the_integrals(variance):
    found = jax.jit(expected_logistic)(jnp.float32(MEANS), jnp.full(len(MEANS), variance, jnp.float32))
    expected = np.transpose([by_quadrature(mean, variance) for mean in MEANS])
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-4)


def test_the_mixture_of_normal_distributions_is_off_by_no_more_than_is_said():
    from scipy.stats import norm

    m = np.linspace(-30, 30, 60_001)
    assert np.sum(SHARES) == pytest.approx(1.0, abs=1e-12)
    assert np.max(np.abs(norm.cdf(m[:, None] * SCALES) @ SHARES - expit(m))) < 4.5e-5


@pytest.mark.slow
def test_each_is_the_derivative_of_the_one_before():
    m, v = jnp.float32(MEANS), jnp.full(len(MEANS), 1.5, jnp.float32)
    found = expected_logistic(m, v)
    slope = jax.vmap(jax.grad(lambda a, b: expected_logistic(a, b).log_likelihood))(m, v)
    bend = jax.vmap(jax.grad(lambda a, b: -expected_logistic(a, b).residual))(m, v)
    by_variance = jax.vmap(jax.grad(lambda a, b: expected_logistic(a, b).log_likelihood, argnums=1))(m, v)
    np.testing.assert_allclose(slope, found.residual, atol=1e-5)
    np.testing.assert_allclose(bend, found.curvature, atol=1e-5)
    np.testing.assert_allclose(by_variance, -0.5 * found.curvature, atol=1e-5)  # the heat equation


def test_extreme_margins_stay_finite():
    m = jnp.float32([-1e8, -100.0, 100.0, 1e8])
    for part in jax.jit(expected_logistic)(m, jnp.float32([0.0, 1e6, 0.0, 1e6])):
        assert bool(jnp.all(jnp.isfinite(part)))
