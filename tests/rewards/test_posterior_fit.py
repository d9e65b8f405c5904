"""The prior's strength against a numerical maximum of the evidence, and optimism against leaving pairs out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.special
from sklearn.linear_model import LogisticRegression
from slow_parameters import slow

from robust_rlhf_jax.rewards.config import RobustFit
from robust_rlhf_jax.rewards.coordinates import unit_free
from robust_rlhf_jax.rewards.posterior_fit import (
    first_fit,
    information,
    optimism,
    refit,
    secant_information,
)
from robust_rlhf_jax.rewards.prior_strength import LEAST_MARGIN

from .worlds import K, maximum_likelihood, normal_pairs, rows_of, sparse_pairs

again = jax.jit(lambda pairs, weights, last: refit(pairs, weights, last, RobustFit()))


def settled(pairs, weights, times=40):
    fit = first_fit(pairs)
    for _ in range(times):
        fit = again(pairs, weights, fit)
    return fit


def evidence(log_strength, y, penalty):
    """Log marginal likelihood of λ in Laplace's approximation by Newton's method in NumPy, and the log prior of λ."""
    precision, t = np.exp(log_strength) * penalty, np.zeros(y.shape[1])
    for _ in range(50):
        miss = scipy.special.expit(-(y @ t))
        bend = (y.T * (miss * (1 - miss))) @ y + np.diag(precision)
        t = t + np.linalg.solve(bend, miss @ y - precision * t)
    value = scipy.special.log_expit(y @ t).sum() - 0.5 * precision @ t**2
    expected = len(penalty) / np.exp(np.mean(np.log(penalty)))
    value += 0.5 * RobustFit().prior_axes * (log_strength - np.exp(log_strength) / expected)
    return value + 0.5 * np.log(precision).sum() - 0.5 * np.linalg.slogdet(bend)[1]


@pytest.mark.parametrize("draw", [normal_pairs, sparse_pairs])
@pytest.mark.parametrize("n", [slow(60), 300])
def test_the_strength_maximises_the_evidence(draw, n, x64):
    """The fixed point leaves out how the curvature changes with λ: near the maximum, in value and in place."""
    x, labels = draw(0, n)
    pairs = unit_free(jnp.asarray(x), jnp.asarray(labels))
    fit = settled(pairs, jnp.ones(n))
    y, penalty = np.asarray(pairs.rows), np.asarray(pairs.penalty)
    best = scipy.optimize.minimize_scalar(
        lambda s: -evidence(s, y, penalty), bounds=(-6, 8), method="bounded"
    )
    assert evidence(np.log(float(fit.strength)), y, penalty) > -best.fun - 0.1
    assert abs(np.log(float(fit.strength)) - best.x) < 0.7


def test_the_fit_is_ridge_regression_in_scaled_columns(x64):
    """scikit-learn's with the same penalty; close to maximum likelihood where pairs are many."""
    x, labels = normal_pairs(0)
    pairs = unit_free(jnp.asarray(x), jnp.asarray(labels))
    fit = settled(pairs, jnp.ones(len(x)))
    size = np.sqrt(np.asarray(pairs.penalty))
    model = LogisticRegression(C=1 / float(fit.strength), fit_intercept=False, tol=1e-10, max_iter=1000)
    ridge = model.fit(labels[:, None] * np.asarray(pairs.rows) / size, labels).coef_[0] / size
    np.testing.assert_allclose(fit.t, ridge, rtol=1e-4)
    np.testing.assert_allclose(pairs.to_theta @ fit.t, maximum_likelihood(x, labels), rtol=0.04)


@pytest.mark.slow
def test_labels_that_a_reward_separates_have_a_bounded_length():
    x, _ = normal_pairs(0)
    pairs = unit_free(jnp.asarray(x, jnp.float32), jnp.sign(jnp.asarray(x[:, 0], jnp.float32)))
    fit = settled(pairs, jnp.ones(len(x)))
    np.testing.assert_allclose(fit.strength, K / RobustFit().widest_margin ** 2, rtol=1e-4)
    assert np.isfinite(fit.t).all()


@pytest.mark.slow
def test_labels_by_a_coin_leave_next_to_nothing():
    x, _ = normal_pairs(0)
    labels = np.where(np.arange(len(x)) % 2, 1.0, -1.0)
    x[1::2] = x[::2]
    fit = settled(unit_free(jnp.asarray(x, jnp.float32), jnp.asarray(labels, jnp.float32)), jnp.ones(len(x)))
    assert np.linalg.norm(fit.t) < 0.01
    assert fit.strength <= K / LEAST_MARGIN**2


@pytest.mark.slow
@pytest.mark.parametrize(("n", "tolerance"), [(80, 0.15), (400, 0.03)])
def test_optimism_is_that_of_leaving_each_pair_out(n, tolerance, x64):
    """Every pair left out in turn and the rest fitted anew, at the same prior: one Newton step comes near that."""
    x, labels = normal_pairs(1, n)
    pairs = unit_free(jnp.asarray(x), jnp.asarray(labels))
    weights = jnp.asarray(np.random.default_rng(0).uniform(0.5, 1.0, n))
    fit = settled(pairs, weights)
    seen = jax.nn.log_sigmoid(pairs.margins(fit.t))
    unseen = [
        jax.nn.log_sigmoid(jnp.dot(pairs.rows[i], again(pairs, weights.at[i].set(0.0), fit).t))
        for i in range(n)
    ]
    np.testing.assert_allclose(
        optimism(pairs, weights, fit), weights @ (seen - jnp.stack(unseen)), rtol=tolerance
    )


@pytest.mark.slow
def test_what_pairs_know_in_numpy(x64):
    rng = np.random.default_rng(0)
    z, weights, t = rng.normal(size=(50, 3)), rng.uniform(size=50), np.array([1.0, -2.0, 0.5])
    pairs, m = rows_of(z, dtype=jnp.float64), z @ t
    chance = scipy.special.expit(m)
    exact = (z.T * (weights * chance * (1 - chance))) @ z
    secant = (z.T * (weights * np.tanh(m / 2) / (2 * m))) @ z
    np.testing.assert_allclose(information(pairs, jnp.asarray(weights), jnp.asarray(m)), exact, rtol=1e-10)
    np.testing.assert_allclose(
        secant_information(pairs, jnp.asarray(weights), jnp.asarray(m)), secant, rtol=1e-10
    )
