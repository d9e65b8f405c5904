"""Tastes of raters: Laplace's evidence against quadrature, shrinkage."""

import jax.numpy as jnp
import numpy as np
from scipy import integrate

from robust_rlhf_jax.raters.taste import Crowd, tastes


def test_the_evidence_is_the_integral():
    rng = np.random.default_rng(0)
    rows, who = rng.normal(size=(30, 2)).astype(np.float32), np.repeat([0, 1, 2], 10)
    mean, covariance = np.array([0.8, -0.4]), np.array([[0.5, 0.2], [0.2, 0.4]])
    found = tastes(jnp.asarray(rows), jnp.asarray(who), 3, Crowd(jnp.float32(mean), jnp.float32(covariance)))
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
    found = tastes(jnp.asarray(rows), jnp.asarray(who), 3, Crowd(mean, 1e-5 * jnp.eye(2)))
    np.testing.assert_allclose(found.t, np.tile(mean, (3, 1)), atol=1e-3)
    fits = [-np.sum(np.logaddexp(0, -rows[who == k] @ np.asarray(mean))) for k in range(3)]
    np.testing.assert_allclose(found.evidence, fits, atol=1e-2)
