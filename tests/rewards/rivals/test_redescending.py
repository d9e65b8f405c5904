"""The density power fit against SciPy from many starts."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.likelihood.margin_fit import MarginFit
from robust_rlhf_jax.likelihood.margin_losses import TiltedLogistic
from robust_rlhf_jax.rewards.rivals import redescending as rival
from robust_rlhf_jax.rewards.rivals.redescending import redescending, row_normalised_weights


def sample(seed, n=80):
    """A fifth of the labels of the longest rows flipped: plain likelihood is far off."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2)) * rng.uniform(0.5, 3, size=(n, 1))
    labels = np.where(x @ [2.0, -1.0] > 0, 1.0, -1.0)
    longest = np.argsort(-np.linalg.norm(x, axis=1))[: n // 5]
    labels[longest] *= -1
    return x, labels


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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "best"), [((3.0, 1.0, 2.0), 1), ((3.0, 1.0, np.nan), 2), ((np.nan, 1.0, 2.0), 0)]
)
def test_the_lowest_value_wins_unless_one_is_no_number(values, best, monkeypatch):
    """With a stand-in for the fits, whose starts tell them apart by the sum of their weights."""

    def fit_margin_loss(problem):
        if isinstance(problem.loss, TiltedLogistic):
            return MarginFit(jnp.full(2, jnp.sum(problem.weights)), None, None, None, None, None)
        lane = jnp.argmin(jnp.abs(sums - problem.start[0]))
        return MarginFit(problem.start, jnp.zeros(4), jnp.asarray(values)[lane], None, None, lane)

    x = jnp.asarray([[1.0, 0.0], [0.0, 2.0], [3.0, 1.0], [1.0, -1.0]])
    sums = jnp.append(4.0, jnp.sum(row_normalised_weights(x), axis=1))
    monkeypatch.setattr(rival, "fit_margin_loss", fit_margin_loss)
    found = rival._redescending.__wrapped__(x, jnp.ones(4), jnp.float32(1.0), jnp.float32(1.0))
    assert found.status == best


def test_rows_weigh_by_their_length(x64):
    x, _ = sample(3)
    z = x @ np.linalg.inv(np.linalg.cholesky(x.T @ x / len(x))).T
    weights = row_normalised_weights(jnp.asarray(x))
    for rows, found in zip((x, z), weights, strict=True):
        length = np.linalg.norm(rows, axis=1)
        np.testing.assert_allclose(found, length.min() / length, rtol=1e-8)
    with_zero = jnp.asarray(np.vstack([x, np.zeros(2)]))
    np.testing.assert_array_equal(row_normalised_weights(with_zero)[:, -1], 0.0)


def test_options_are_given_by_name():
    with pytest.raises(TypeError):
        redescending(*map(jnp.asarray, sample(0)), 0.1, 3.0)
