"""Sever's rounds against the same rounds in NumPy and SciPy, and what they find."""

import jax.numpy as jnp
import numpy as np
import pytest
from likelihood.logistic_reference import slsqp

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.rewards.rivals.sever import sever

RADIUS = 4.0


def sample(seed=0, n=200):
    """A tenth of the pairs replaced by long differences labelled against θ★."""
    rng = np.random.default_rng(seed)
    x, theta = rng.uniform(-1, 1, size=(n, 3)), np.array([1.5, -1.0, 0.5])
    labels = np.where(x @ theta + rng.logistic(size=n) > 0, 1.0, -1.0)
    planted = np.arange(n) % 10 == 0
    x[planted] = -3.0 * theta / np.linalg.norm(theta) + 0.05 * rng.normal(size=(planted.sum(), 3))
    labels[planted] = 1.0
    return x, labels, theta, planted


@pytest.mark.slow
def test_rounds_equal_a_reference(x64):
    x, labels, _, _ = sample()
    kept = np.ones(len(x), bool)
    for _ in range(4):
        theta = slsqp(x[kept], labels[kept], np.ones(kept.sum()), RADIUS)
        gradients = (labels / (1 + np.exp(labels * (x @ theta))))[:, None] * x
        centred = gradients - gradients[kept].mean(axis=0)
        direction = np.linalg.svd(centred[kept], full_matrices=False)[2][0]
        scores = np.where(kept, (centred @ direction) ** 2, -np.inf)
        kept[np.argsort(-scores)[: round(0.05 * len(x))]] = False
    fit = sever(jnp.asarray(x), jnp.asarray(labels), 0.1, radius=RADIUS)
    np.testing.assert_allclose(fit.weights, kept, atol=1e-9)
    np.testing.assert_allclose(
        fit.theta, slsqp(x[kept], labels[kept], np.ones(kept.sum()), RADIUS), atol=1e-4
    )
    assert fit.status == Status.CONVERGED
    loss = np.logaddexp(0.0, -labels * (x @ np.asarray(fit.theta)))
    np.testing.assert_allclose(fit.suspicion, loss + ~kept * loss.max(), rtol=1e-6)


@pytest.mark.slow
def test_no_more_pairs_go_than_there_are(x64):
    """Six rounds of a fifth."""
    x, labels, _, _ = sample()
    fit = sever(jnp.asarray(x), jnp.asarray(labels), 0.4, radius=RADIUS, rounds=6)
    np.testing.assert_array_equal(fit.weights, 0.0)


@pytest.mark.slow
def test_planted_pairs_go_and_are_the_most_suspicious(x64):
    x, labels, theta, planted = sample(1)
    fit = sever(jnp.asarray(x), jnp.asarray(labels), 0.1, radius=RADIUS)
    assert np.asarray(fit.weights)[planted].max() < 1e-6
    suspicion = np.asarray(fit.suspicion)
    assert suspicion[planted].min() > suspicion[~planted].max()
    assert theta @ fit.theta > 0.9 * np.linalg.norm(theta) * np.linalg.norm(fit.theta)


def test_options_are_given_by_name():
    with pytest.raises(TypeError):
        sever(*map(jnp.asarray, sample()[:2]), 0.1, RADIUS)
