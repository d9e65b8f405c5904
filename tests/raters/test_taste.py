"""Tastes of raters: mean, covariance and evidence against quadrature, shrinkage."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate

from robust_rlhf_jax.raters._by_rater import RowsByRater
from robust_rlhf_jax.raters.taste import Crowd, tastes, tastes_nearby


def from_the_mean(rows, who, crowd):
    pairs = RowsByRater.of(jnp.asarray(rows), jnp.asarray(who), 3)
    return tastes(pairs, crowd, *at_the_mean(crowd, len(rows)))


def at_the_mean(crowd, n):
    return jnp.broadcast_to(crowd.mean, (3, 2)), jnp.zeros(n)


@pytest.mark.slow
def test_the_evidence_is_the_integral():
    rng = np.random.default_rng(0)
    rows, who = rng.normal(size=(30, 2)).astype(np.float32), np.repeat([0, 1, 2], 10)
    mean, covariance = np.array([0.8, -0.4]), np.array([[0.5, 0.2], [0.2, 0.4]])
    crowd = Crowd(jnp.float32(mean), jnp.float32(covariance))
    found = from_the_mean(rows, who, crowd)
    inverse = np.linalg.inv(covariance)

    def joint(b, a, k):
        t = np.array([a, b])
        fit = -np.sum(np.logaddexp(0, -rows[who == k].astype(float) @ t))
        return np.exp(fit - 0.5 * (t - mean) @ inverse @ (t - mean)) / (
            2 * np.pi * np.sqrt(np.linalg.det(covariance))
        )

    for k in range(3):
        value, _ = integrate.dblquad(joint, -4, 5, -4, 4, args=(k,), epsrel=1e-5)
        assert np.log(value) - 0.05 < found.evidence[k] < np.log(value) + 1e-3  # a bound from below
        first, _ = integrate.dblquad(lambda b, a, k: a * joint(b, a, k), -4, 5, -4, 4, args=(k,), epsrel=1e-4)
        second, _ = integrate.dblquad(
            lambda b, a, k: a**2 * joint(b, a, k), -4, 5, -4, 4, args=(k,), epsrel=1e-4
        )
        np.testing.assert_allclose(found.t[k, 0], first / value, atol=0.02)
        np.testing.assert_allclose(
            found.covariance[k, 0, 0], second / value - (first / value) ** 2, rtol=0.06
        )


@pytest.mark.slow
def test_without_spread_everyone_has_the_taste_of_the_crowd():
    rng = np.random.default_rng(1)
    rows, who = rng.normal(size=(30, 2)).astype(np.float32), np.repeat([0, 1, 2], 10)
    mean = jnp.asarray([0.8, -0.4])
    found = from_the_mean(rows, who, Crowd(mean, 1e-5 * jnp.eye(2)))
    np.testing.assert_allclose(found.t, np.tile(mean, (3, 1)), atol=1e-3)
    fits = [-np.sum(np.logaddexp(0, -rows[who == k] @ np.asarray(mean))) for k in range(3)]
    np.testing.assert_allclose(found.evidence, fits, atol=1e-2)


@pytest.mark.slow
def test_repeated_steps_end_at_the_maximum_and_its_evidence():
    rng = np.random.default_rng(2)
    pairs = RowsByRater.of(
        jnp.asarray(rng.normal(size=(60, 2)), jnp.float32), jnp.asarray(np.arange(60) % 3), 3
    )
    crowd = Crowd(jnp.asarray([0.8, -0.4]), 0.5 * jnp.eye(2))
    there = tastes(pairs, crowd, *at_the_mean(crowd, 60))
    one_step = jax.jit(tastes_nearby)
    near = one_step(pairs, crowd, there.t + 0.1, there.variance)
    np.testing.assert_allclose(near.t, there.t, atol=1e-2)
    for _ in range(12):
        near = one_step(pairs, crowd, near.t, near.variance)
    for one, other in zip(near, there, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("far", [3.0, 30.0, 300.0])
def test_steps_from_far_away_end_there_too(far):
    """Where labels are certain at the start the curvature is that of a broad prior, and a Newton step overshoots."""
    rng = np.random.default_rng(3)
    pairs = RowsByRater.of(
        jnp.asarray(3 * rng.normal(size=(60, 2)), jnp.float32), jnp.asarray(np.arange(60) % 3), 3
    )
    crowd = Crowd(jnp.asarray([0.8, -0.4]), 100.0 * jnp.eye(2))
    there = tastes(pairs, crowd, *at_the_mean(crowd, 60))
    one_step = jax.jit(tastes_nearby)
    near = far * jnp.asarray([[1.0, 1.0], [-1.0, 0.5], [0.0, -1.0]]), jnp.zeros(60)
    for _ in range(40):
        near = one_step(pairs, crowd, *near)
        near = near.t, near.variance
    np.testing.assert_allclose(near[0], there.t, atol=1e-3)


@pytest.mark.slow
def test_the_covariance_is_the_inverse_of_the_expected_curvature():
    rng = np.random.default_rng(4)
    rows, who = rng.normal(size=(30, 2)), np.repeat([0, 1, 2], 10)
    precision = np.linalg.inv([[0.5, 0.2], [0.2, 0.4]])
    found = from_the_mean(
        rows.astype(np.float32), who, Crowd(jnp.asarray([0.8, -0.4]), jnp.asarray([[0.5, 0.2], [0.2, 0.4]]))
    )
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    for k in range(3):
        mine, covariance = rows[who == k], np.asarray(found.covariance[k], float)
        spread = np.einsum("ni,ij,nj->n", mine, covariance, mine)
        np.testing.assert_allclose(found.variance[who == k], spread, rtol=1e-4)
        margins = (mine @ np.asarray(found.t[k], float))[:, None] + np.sqrt(spread)[:, None] * nodes
        curvature = (1 / (2 + 2 * np.cosh(margins))) @ weights / weights.sum()
        expected = np.linalg.inv(precision + (mine * curvature[:, None]).T @ mine)
        np.testing.assert_allclose(covariance, expected, rtol=2e-3)
