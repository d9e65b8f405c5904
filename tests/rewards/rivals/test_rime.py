"""RIME's rounds against the same rounds in NumPy and SciPy."""

import re

import jax.numpy as jnp
import numpy as np
import pytest
from likelihood.logistic_reference import slsqp
from noisy_labels import RADIUS, sample

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.rewards.rivals.rime import rime


def by_hand(x, labels, rounds=30, alpha=0.5, flip_below=1e-3):
    """As the authors' code selects, with ρ and s² of the round's trusted labels, and a fit by SciPy for each pass."""
    n, rho, variance = len(x), 0.0, 1.0
    theta = slsqp(x, labels, np.ones(n), RADIUS)
    for step in range(rounds):
        beta = max(1.0, 3.0 - (3.0 - 1.0) / rounds * step)
        divergence = np.logaddexp(0, -labels * (x @ theta))
        bound = -np.log(rho + 1e-8) + alpha * rho + min(beta * variance, 3.0)
        flipped = divergence > -np.log(flip_below)
        trusted = (divergence < bound) & ~flipped
        rho += 0.1 * (divergence[trusted].max() - rho)
        variance = divergence[trusted].var()
        theta = slsqp(x, np.where(flipped, -labels, labels), (trusted | flipped) * 1.0, RADIUS)
    return theta, trusted, flipped


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"alpha": 1.0, "flip_below": 0.1, "rounds": 12}])
def test_rounds_equal_those_by_hand(options, x64):
    x, labels = sample(flipped=0.2)
    theta, trusted, flipped = by_hand(x, labels, **options)
    assert 0 < flipped.sum() < (~trusted).sum() < 60
    fit = rime(jnp.asarray(x), jnp.asarray(labels), 0.1, radius=RADIUS, **options)
    assert fit.status == Status.CONVERGED
    np.testing.assert_array_equal(fit.weights, trusted)
    np.testing.assert_allclose(fit.theta, theta, atol=1e-4)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"alpha": -1.0}, "alpha=-1.0 must be at least 0 and finite."),
        ({"flip_below": 0.5}, "flip_below=0.5 must be a chance above 0 and below 1/2."),
        ({"rounds": 0}, "rounds=0 must be at least 1."),
    ],
)
def test_bad_hyperparameters(options, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        rime(*map(jnp.asarray, sample()), 0.1, radius=1.0, **options)
