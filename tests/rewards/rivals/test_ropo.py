"""ROPO's loss against SciPy from many starts, and its tolerance of symmetric flips."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.rewards.rivals.ropo import ropo

RADIUS = 3.0


def sample(seed=0, n=120, flipped=0.15):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    labels = np.where(rng.logistic(size=n) < x @ [2.0, -1.0], 1.0, -1.0)
    return x, labels * np.where(rng.random(n) < flipped, -1.0, 1.0)


def lowest(value, starts=12):
    """SciPy's best of many starts within the ball."""
    ball = {"type": "ineq", "fun": lambda t: RADIUS**2 - t @ t}
    points = np.random.default_rng(1).normal(size=(starts, 2))
    ends = (scipy.optimize.minimize(value, p, method="SLSQP", constraints=ball, tol=1e-12) for p in points)
    return min(ends, key=lambda end: end.fun)


@pytest.mark.parametrize("alpha", [2.0, 14.0])
def test_reaches_the_best_of_many_starts(alpha, x64):
    x, labels = sample()

    def value(theta):
        margins = labels * (x @ theta)
        return np.mean(alpha / (1 + np.exp(margins)) + np.logaddexp(0, -margins))

    fit = ropo(jnp.asarray(x), jnp.asarray(labels), 0.1, radius=RADIUS, alpha=alpha)
    assert fit.status == Status.CONVERGED
    assert value(np.asarray(fit.theta)) <= lowest(value).fun + 1e-7


def test_without_the_bounded_part_it_is_the_likelihood(x64):
    x, labels = sample()
    value = lambda t: np.mean(np.logaddexp(0, -labels * (x @ t)))  # noqa: E731
    fit = ropo(jnp.asarray(x), jnp.asarray(labels), 0.1, radius=RADIUS, alpha=0.0)
    np.testing.assert_allclose(fit.theta, lowest(value).x, atol=1e-4)
    np.testing.assert_allclose(fit.weights, 1.0)


def test_the_weight_of_an_absurd_label_is_that_of_the_likelihoods_share(x64):
    x, labels = sample()
    x[0], labels[0] = [-50.0, 25.0], 1.0
    fit = ropo(jnp.asarray(x), jnp.asarray(labels), 0.1, radius=RADIUS)
    np.testing.assert_allclose(fit.weights[0], 1 / 15, atol=1e-3)
