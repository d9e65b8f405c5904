"""Tastes of raters: Laplace's evidence against quadrature, shrinkage."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate

from robust_rlhf_jax.raters._by_rater import RowsByRater
from robust_rlhf_jax.raters.taste import COLD, WARM, Crowd, tastes


def from_the_mean(rows, who, crowd):
    pairs = RowsByRater.of(jnp.asarray(rows), jnp.asarray(who), 3)
    return tastes(pairs, crowd, jnp.broadcast_to(crowd.mean, (3, 2)), COLD)


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
        np.testing.assert_allclose(found.evidence[k], np.log(value), atol=0.05)


def test_without_spread_everyone_has_the_taste_of_the_crowd():
    rng = np.random.default_rng(1)
    rows, who = rng.normal(size=(30, 2)).astype(np.float32), np.repeat([0, 1, 2], 10)
    mean = jnp.asarray([0.8, -0.4])
    found = from_the_mean(rows, who, Crowd(mean, 1e-5 * jnp.eye(2)))
    np.testing.assert_allclose(found.t, np.tile(mean, (3, 1)), atol=1e-3)
    fits = [-np.sum(np.logaddexp(0, -rows[who == k] @ np.asarray(mean))) for k in range(3)]
    np.testing.assert_allclose(found.evidence, fits, atol=1e-2)


@pytest.mark.slow
def test_from_the_tastes_of_nearly_the_same_crowd_few_steps_reach_the_maximum():
    rng = np.random.default_rng(2)
    pairs = RowsByRater.of(
        jnp.asarray(rng.normal(size=(60, 2)), jnp.float32), jnp.asarray(np.arange(60) % 3), 3
    )
    crowds = [Crowd(jnp.asarray([0.8 * size, -0.4]), 0.5 * jnp.eye(2)) for size in (1.0, 1.1)]
    starts = [jnp.broadcast_to(crowd.mean, (3, 2)) for crowd in crowds]
    before = tastes(pairs, crowds[0], starts[0], COLD)
    cold, warm = tastes(pairs, crowds[1], starts[1], COLD), tastes(pairs, crowds[1], before.t, WARM)
    np.testing.assert_allclose(warm.t, cold.t, atol=1e-4)
    np.testing.assert_allclose(warm.evidence, cold.evidence, atol=1e-4)
