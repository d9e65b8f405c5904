"""Dr. DPO against SciPy from many starts, by its own formula."""

import jax.numpy as jnp
import numpy as np
import pytest
from noisy_labels import RADIUS, lowest, sample

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.rewards.rivals.dr_dpo import dr_dpo


@pytest.mark.slow
@pytest.mark.parametrize("beta", [0.5, 1.0, 3.0])
def test_reaches_the_best_of_many_starts(beta, x64):
    x, labels = sample()

    def value(theta):
        losses = np.logaddexp(0, -labels * (x @ theta))
        return -beta * np.log(np.mean(np.exp(-losses / beta)))

    fit = dr_dpo(jnp.asarray(x), jnp.asarray(labels), 0.1, radius=RADIUS, beta=beta)
    assert fit.status == Status.CONVERGED
    assert value(np.asarray(fit.theta)) <= lowest(value).fun + 1e-7


@pytest.mark.slow
def test_a_large_beta_is_the_likelihood(x64):
    x, labels = sample()
    value = lambda t: np.mean(np.logaddexp(0, -labels * (x @ t)))  # noqa: E731
    fit = dr_dpo(jnp.asarray(x), jnp.asarray(labels), 0.1, radius=RADIUS, beta=1e5)
    np.testing.assert_allclose(fit.theta, lowest(value).x, atol=1e-3)
    np.testing.assert_allclose(fit.weights, 1.0, atol=1e-3)


@pytest.mark.slow
def test_a_label_beyond_belief_pulls_no_longer(x64):
    x, labels = sample()
    x[0], labels[0] = [-50.0, 25.0], 1.0
    fit = dr_dpo(jnp.asarray(x), jnp.asarray(labels), 0.1, radius=RADIUS)
    assert fit.weights[0] < 1e-6
    x[0] = 0.0
    without = dr_dpo(jnp.asarray(x), jnp.asarray(labels), 0.1, radius=RADIUS)
    np.testing.assert_allclose(fit.theta, without.theta, atol=1e-4)
