"""The density power fit against SciPy from many starts."""

import jax.numpy as jnp
import noisy_labels
import numpy as np
import pytest
import scipy.optimize

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.rewards.rivals.redescending import redescending


def sample(seed, n=80):
    """A fifth of the labels of the longest rows flipped: plain likelihood is far off."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2)) * rng.uniform(0.5, 3, size=(n, 1))
    labels = np.where(x @ [2.0, -1.0] > 0, 1.0, -1.0)
    longest = np.argsort(-np.linalg.norm(x, axis=1))[: n // 5]
    labels[longest] *= -1
    return x, labels


@pytest.mark.slow
@pytest.mark.parametrize("gamma", [0.5, 1.0])
def test_reaches_the_best_of_many_starts(gamma, x64):
    x, labels = sample(0)

    def value(theta):
        p = 1 / (1 + np.exp(-labels * (x @ theta)))
        return np.mean(-(1 + 1 / gamma) * p**gamma + p ** (1 + gamma) + (1 - p) ** (1 + gamma))

    ball = {"type": "ineq", "fun": lambda t: 9.0 - t @ t}
    starts = np.random.default_rng(1).normal(size=(12, 2))
    best = min(
        (scipy.optimize.minimize(value, s, method="SLSQP", constraints=ball) for s in starts),
        key=lambda r: r.fun,
    )
    fit = redescending(jnp.asarray(x), jnp.asarray(labels), 0.1, radius=3.0, gamma=gamma)
    assert fit.status == Status.CONVERGED
    assert value(np.asarray(fit.theta)) <= best.fun + 1e-6
    np.testing.assert_allclose(fit.theta, best.x, atol=1e-2)


@pytest.mark.slow
def test_by_default_it_is_the_square_loss_on_probabilities(x64):
    """Σ(1 − σ(oθᵀx))², SquareχPO's loss, by SciPy from many starts."""
    x, labels = noisy_labels.sample()
    value = lambda t: np.mean((1 - 1 / (1 + np.exp(-labels * (x @ t)))) ** 2)  # noqa: E731
    fit = redescending(jnp.asarray(x), jnp.asarray(labels), 0.1, radius=noisy_labels.RADIUS)
    assert value(np.asarray(fit.theta)) <= noisy_labels.lowest(value).fun + 1e-8


@pytest.mark.slow
def test_a_label_beyond_belief_pulls_no_longer(x64):
    """One pair far out against θ has no influence: as if it said nothing."""
    x, labels = sample(2)
    labels = np.where(x @ [2.0, -1.0] > 0, 1.0, -1.0) * np.where(np.arange(len(x)) % 8, 1, -1)
    labels[0], x[0] = 1.0, [-200.0, 100.0]
    fit = redescending(jnp.asarray(x), jnp.asarray(labels), 0.1, radius=3.0)
    x[0] = 0.0
    without = redescending(jnp.asarray(x), jnp.asarray(labels), 0.1, radius=3.0)
    np.testing.assert_allclose(fit.theta, without.theta, atol=1e-3)
    assert fit.weights[0] < 1e-6
    assert fit.suspicion.argmax() == 0


def test_options_are_given_by_name():
    with pytest.raises(TypeError):
        redescending(*map(jnp.asarray, sample(0)), 0.1, 3.0)
