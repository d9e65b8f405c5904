"""Trust by rater against SciPy on the same objective."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from rated_labels import CONTRARY, RADIUS, sample

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.raters.rivals.tritrust import tritrust


def fitted(x, labels, who, n_raters, **given):
    return tritrust(
        jnp.asarray(x), jnp.asarray(labels), 0.1, jnp.asarray(who), n_raters, radius=RADIUS, **given
    )


def objective(theta, trust, x, labels, who, spread):
    """To be minimised."""
    margins = trust[who] * labels * (x @ theta)
    return np.sum(np.logaddexp(0, -margins)) + np.sum((trust - 1) ** 2) / (2 * spread**2)


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.5, 1.0])
def test_it_is_scipys_maximum_of_both(spread, x64):
    x, labels, who = sample()
    found = fitted(x, labels, who, 6, spread=spread)
    expected = scipy.optimize.minimize(
        lambda p: objective(p[:2], p[2:], x, labels, who, spread),
        [0.0, 0.0, *[1.0] * 6],
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 5000},
    )
    mean = np.mean(expected.x[2:][who])
    assert found.status == Status.CONVERGED
    np.testing.assert_allclose(found.theta, mean * expected.x[:2], atol=1e-4)
    np.testing.assert_allclose(found.reliability, expected.x[2:] / mean, atol=1e-4)


@pytest.mark.slow
def test_the_mean_of_trust_over_pairs_is_one_and_positive(x64):
    x, labels, who = sample(1)
    found = fitted(x, labels, who, 6)
    np.testing.assert_allclose(np.mean(np.asarray(found.reliability)[who]), 1.0)
    # All labels reversed are the same raters with the opposite reward.
    mirrored = fitted(x, -labels, who, 6)
    np.testing.assert_allclose(mirrored.theta, -found.theta, atol=1e-5)
    np.testing.assert_allclose(mirrored.reliability, found.reliability, atol=1e-5)


@pytest.mark.slow
def test_a_contrary_rater_is_flipped(x64):
    x, labels, who = sample(1, each=60)
    found = fitted(x, labels, who, 6)
    assert np.argmin(found.reliability) == CONTRARY
    assert found.reliability[CONTRARY] < 0
    np.testing.assert_array_equal(np.asarray(found.weights)[who == CONTRARY], 0.0)


def test_without_spread_it_is_maximum_likelihood(x64):
    x, labels, who = sample(2)
    found = fitted(x, labels, who, 6, spread=1e-6)
    value = lambda t: np.sum(np.logaddexp(0, -labels * (x @ t)))  # noqa: E731
    np.testing.assert_allclose(found.theta, scipy.optimize.minimize(value, [0.0, 0.0]).x, atol=1e-4)


def test_a_spread_of_nothing():
    with pytest.raises(ValueError, match=r"spread=0\.0 must be positive and finite\."):
        fitted(*sample(), 6, spread=0.0)
