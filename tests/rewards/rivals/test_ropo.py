"""ROPO's loss against SciPy from many starts."""

import jax.numpy as jnp
import numpy as np
import pytest
from noisy_labels import RADIUS, lowest, sample

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.rewards.rivals.ropo import ropo


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [2.0, 14.0])
def test_reaches_the_best_of_many_starts(alpha, x64):
    x, labels = sample()

    def value(theta):
        margins = labels * (x @ theta)
        return np.mean(alpha / (1 + np.exp(margins)) + np.logaddexp(0, -margins))

    fit = ropo(jnp.asarray(x), jnp.asarray(labels), 0.1, radius=RADIUS, alpha=alpha)
    assert fit.status == Status.CONVERGED
    assert value(np.asarray(fit.theta)) <= lowest(value).fun + 1e-7


@pytest.mark.slow
def test_without_the_bounded_part_it_is_the_likelihood(x64):
    x, labels = sample()
    value = lambda t: np.mean(np.logaddexp(0, -labels * (x @ t)))  # noqa: E731
    fit = ropo(jnp.asarray(x), jnp.asarray(labels), 0.1, radius=RADIUS, alpha=0.0)
    np.testing.assert_allclose(fit.theta, lowest(value).x, atol=1e-4)
    np.testing.assert_allclose(fit.weights, 1.0)


@pytest.mark.slow
def test_the_weight_of_an_absurd_label_is_that_of_the_likelihoods_share(x64):
    x, labels = sample()
    x[0], labels[0] = [-50.0, 25.0], 1.0
    fit = ropo(jnp.asarray(x), jnp.asarray(labels), 0.1, radius=RADIUS)
    np.testing.assert_allclose(fit.weights[0], 1 / 15, atol=1e-3)
