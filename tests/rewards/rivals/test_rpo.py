"""RPO's EM against EM in NumPy."""

import jax.numpy as jnp
import numpy as np
import pytest
from noisy_labels import sample

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.rewards.rivals.rpo import rpo


def log_likelihood(x, labels, theta, share):
    p = 1 / (1 + np.exp(-labels * (x @ theta)))
    return np.mean(np.log(share * p + (1 - share) * (1 - p)))


def by_hand(x, labels, rounds):
    """EM in NumPy: logistic regression with soft labels by Newton's method."""
    o = labels[:, None] * x

    def maximised(right):
        theta = np.zeros(x.shape[1])
        for _ in range(30):
            p = 1 / (1 + np.exp(-o @ theta))
            theta += np.linalg.solve((o * (p * (1 - p))[:, None]).T @ o, o.T @ (right - p))
        return theta

    theta, share = maximised(np.ones(len(x))), 0.9
    for _ in range(rounds):
        p = 1 / (1 + np.exp(-o @ theta))
        right = share * p / (share * p + (1 - share) * (1 - p))
        theta, share = maximised(right), right.mean()
    return theta, share


@pytest.mark.slow
def test_it_is_em_by_hand_and_climbs_the_likelihood(x64):
    x, labels = sample(n=1_000, flipped=0.2)
    theta, share = by_hand(x, labels, 40)
    fit = rpo(jnp.asarray(x), jnp.asarray(labels), 0.1, radius=20.0)
    assert fit.status == Status.CONVERGED
    np.testing.assert_allclose(fit.theta, theta, atol=1e-5)
    np.testing.assert_allclose(np.mean(fit.weights), share, atol=1e-6)
    climbed = [log_likelihood(x, labels, *by_hand(x, labels, rounds)) for rounds in (0, 10, 40)]
    assert climbed == sorted(climbed)


@pytest.mark.slow
def test_weights_are_the_chance_that_a_label_is_right(x64):
    x, labels = sample(n=2_000, flipped=0.2)
    fit = rpo(jnp.asarray(x), jnp.asarray(labels), 0.1, radius=20.0)
    p = 1 / (1 + np.exp(-labels * (x @ np.asarray(fit.theta))))
    share = float(jnp.mean(fit.weights))
    np.testing.assert_allclose(fit.weights, share * p / (share * p + (1 - share) * (1 - p)), atol=0.01)
