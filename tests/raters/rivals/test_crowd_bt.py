"""Crowd-BT against SciPy on the same objective, and against EM in NumPy on scores of items."""

import re

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from rated_labels import CONTRARY, RADIUS, sample

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.raters.rivals.crowd_bt import crowd_bt


def fitted(x, labels, who, n_raters, **given):
    return crowd_bt(
        jnp.asarray(x), jnp.asarray(labels), 0.1, jnp.asarray(who), n_raters, radius=RADIUS, **given
    )


def objective(theta, eta, x, labels, who, virtual, meant):
    """To be minimised; the Beta(meant + 1, 1) prior of η and one win and one loss of each column."""
    chance = 1 / (1 + np.exp(-labels * (x @ theta)))
    likelihood = np.sum(np.log(eta[who] * chance + (1 - eta[who]) * (1 - chance)))
    node = np.sum(np.logaddexp(0, theta) + np.logaddexp(0, -theta))
    return -likelihood - meant * np.sum(np.log(eta)) + virtual * node


@pytest.mark.slow
@pytest.mark.parametrize(("virtual", "meant"), [(1.0, 9.0), (2.0, 1.0)])
def test_it_is_scipys_maximum_of_both(virtual, meant, x64):
    x, labels, who = sample()
    found = fitted(x, labels, who, 6, virtual=virtual, meant=meant)
    expected = scipy.optimize.minimize(
        lambda p: objective(p[:2], p[2:], x, labels, who, virtual, meant),
        [0.0, 0.0, *[0.9] * 6],
        method="L-BFGS-B",
        bounds=[(None, None)] * 2 + [(1e-6, 1.0 - 1e-12)] * 6,
        options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 5000},
    )
    assert found.status == Status.CONVERGED
    eta = 0.5 * (1 + np.asarray(found.reliability))
    value = objective(np.asarray(found.theta), eta, x, labels, who, virtual, meant)
    np.testing.assert_allclose(value, expected.fun, rtol=1e-6)
    np.testing.assert_allclose(found.theta, expected.x[:2], atol=2e-3)
    np.testing.assert_allclose(eta, expected.x[2:], atol=2e-3)


@pytest.mark.slow
def test_scores_of_items_are_those_of_em_in_numpy(x64):
    """Columns are items, rows e_i − e_j: the model of the paper, with η free."""
    rng = np.random.default_rng(3)
    scores, n = np.array([1.5, 0.5, -0.5, -1.5]), 300
    i, j = rng.integers(0, 4, n), rng.integers(1, 4, n)
    j = (i + j) % 4
    who = rng.integers(0, 4, n).astype(np.int32)
    x = np.eye(4)[i] - np.eye(4)[j]
    labels = np.where(rng.logistic(size=n) < x @ scores, 1.0, -1.0) * np.where(who == CONTRARY, -1, 1)
    theta, eta = np.zeros(4), np.full(4, 0.9)
    for _ in range(300):
        chance = 1 / (1 + np.exp(-labels * (x @ theta)))
        right = eta[who] * chance / (eta[who] * chance + (1 - eta[who]) * (1 - chance))
        eta = np.bincount(who, right) / np.bincount(who)
        for _ in range(3):
            p, q = 1 / (1 + np.exp(-x @ theta)), 1 / (1 + np.exp(-theta))
            target = np.where(labels > 0, right, 1 - right)
            gradient = x.T @ (target - p) + 1 - 2 * q
            bend = (x * (p * (1 - p))[:, None]).T @ x + 2 * np.diag(q * (1 - q))
            theta = theta + np.linalg.solve(bend, gradient)
    found = fitted(x, labels, who, 4, meant=0.0)
    np.testing.assert_allclose(found.theta, theta, atol=1e-4)
    np.testing.assert_allclose(found.reliability, 2 * eta - 1, atol=1e-4)


@pytest.mark.slow
def test_a_contrary_rater_says_what_the_others_do(x64):
    x, labels, who = sample(1, each=60)
    found = fitted(x, labels, who, 6, meant=1.0)
    assert np.argmin(found.reliability) == CONTRARY
    assert found.reliability[CONTRARY] < -0.5
    honest = fitted(x, np.where(who == CONTRARY, -labels, labels), who, 6, meant=1.0)
    np.testing.assert_allclose(found.theta, honest.theta, atol=0.5)


@pytest.mark.slow
def test_without_doubt_it_is_the_likelihood_with_a_virtual_node(x64):
    x, labels, who = sample(2)
    found = fitted(x, labels, who, 6, meant=1e9)
    value = lambda t: objective(t, np.ones(6), x, labels, who, 1.0, 0.0)  # noqa: E731
    np.testing.assert_allclose(found.theta, scipy.optimize.minimize(value, [0.0, 0.0]).x, atol=1e-4)
    np.testing.assert_allclose(found.weights, 1.0, atol=1e-5)


@pytest.mark.slow
def test_a_rater_without_pairs_is_as_the_prior_says(x64):
    x, labels, who = sample(2)
    np.testing.assert_allclose(fitted(x, labels, who, 7, meant=0.5).reliability[6], 1.0)


@pytest.mark.parametrize("options", [{"virtual": -1.0}, {"meant": np.inf}])
def test_bad_hyperparameters(options):
    name, value = next(iter(options.items()))
    with pytest.raises(ValueError, match=re.escape(f"{name}={value} must be at least 0 and finite.")):
        fitted(*sample(), 6, **options)
