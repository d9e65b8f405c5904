"""KLDPO against SciPy, by the dual and by the worst distribution itself."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from noisy_labels import RADIUS, lowest, sample

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.rewards.rivals.kldpo import kldpo


def losses(theta, x, labels):
    return np.logaddexp(0, -labels * (x @ np.asarray(theta)))


@pytest.mark.slow
@pytest.mark.parametrize("tau", [0.3, 1.0, 5.0])
def test_it_is_the_minimum_of_the_dual(tau, x64):
    x, labels = sample()
    value = lambda t: tau * np.log(np.mean(np.exp(losses(t, x, labels) / tau)))  # noqa: E731
    fit = kldpo(jnp.asarray(x), jnp.asarray(labels), 0.1, radius=RADIUS, tau=tau)
    assert fit.status == Status.CONVERGED
    assert value(np.asarray(fit.theta)) <= lowest(value).fun + 1e-8


@pytest.mark.slow
def test_weights_are_the_worst_distribution_of_their_divergence(x64):
    """Of all P no farther from uniform, SciPy finds none under which θ does worse."""
    x, labels = sample(n=30)
    fit = kldpo(jnp.asarray(x), jnp.asarray(labels), 0.1, radius=RADIUS)
    loss, worst = losses(fit.theta, x, labels), np.asarray(fit.weights) / np.sum(fit.weights)
    divergence = lambda p: np.sum(p * np.log(p * len(p)))  # noqa: E731
    bounds = (
        {"type": "ineq", "fun": lambda p: divergence(worst) - divergence(p)},
        {"type": "eq", "fun": lambda p: p.sum() - 1},
    )
    found = scipy.optimize.minimize(
        lambda p: -p @ loss, np.full(30, 1 / 30), method="SLSQP", constraints=bounds, bounds=[(1e-9, 1)] * 30
    )
    np.testing.assert_allclose(worst @ loss, -found.fun, rtol=1e-5)
    np.testing.assert_allclose(found.x, worst, atol=1e-3)
    # At the minimum over θ the losses weigh as P says.
    pull = (np.asarray(fit.weights) * labels / (1 + np.exp(labels * (x @ np.asarray(fit.theta))))) @ x
    np.testing.assert_allclose(pull, 0.0, atol=1e-5)


@pytest.mark.slow
def test_a_large_tau_is_the_likelihood(x64):
    x, labels = sample()
    fit = kldpo(jnp.asarray(x), jnp.asarray(labels), 0.1, radius=RADIUS, tau=1e5)
    np.testing.assert_allclose(fit.theta, lowest(lambda t: np.mean(losses(t, x, labels))).x, atol=1e-3)


@pytest.mark.slow
def test_far_rows_do_not_overflow():
    x, labels = sample()
    x[0] *= 1e3
    fit = kldpo(jnp.float32(x), jnp.float32(labels), 0.1, radius=RADIUS, tau=0.5)
    assert fit.status == Status.CONVERGED
    assert np.isfinite(fit.theta).all()


def test_a_tau_that_is_not_positive():
    with pytest.raises(ValueError, match=r"tau=0 must be positive and finite\."):
        kldpo(*map(jnp.asarray, sample()), 0.1, radius=RADIUS, tau=0)
