"""Influence against refits without each pair, and what trusted validation pairs find."""

import jax.numpy as jnp
import numpy as np
import pytest
from likelihood.logistic_reference import gradient, mean_likelihood, slsqp
from noisy_labels import RADIUS, sample

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.rewards.rivals.influence_pruning import harm, influence_pruning

FAR = 50.0


@pytest.mark.slow
def test_harm_is_what_the_refit_with_less_of_a_pair_gains(x64):
    """SciPy's refits with a pair that counts .95, beside the validation likelihood with all."""
    (x, labels), others = sample(), sample(1, n=80)
    every = np.ones(120)
    theta = slsqp(x, labels, every, FAR)
    before = mean_likelihood(theta, *others, np.ones(80))
    upward = gradient(theta, *others, np.ones(80))
    harms = np.asarray(harm(*map(jnp.asarray, (theta, x, labels, every, upward))))
    for n in np.argsort(harms)[[0, 1, 60, -2, -1]]:
        less = slsqp(x, labels, every - 0.05 * (np.arange(120) == n), FAR)
        gain = (mean_likelihood(less, *others, np.ones(80)) - before) / 0.05
        np.testing.assert_allclose(harms[n], gain, rtol=0.05, atol=2e-5)


@pytest.mark.slow
def test_halves_validate_each_other(x64):
    """The pairs that go, and the fit, by NumPy and SciPy."""
    x, labels = sample()
    harms = np.zeros(120)
    for side in (0, 1):
        own, other = np.arange(120) % 2 == side, np.arange(120) % 2 != side
        theta = slsqp(x[own], labels[own], np.ones(60), FAR)
        wrong = 1 / (1 + np.exp(labels * (x @ theta)))
        gradients = -(labels * wrong)[:, None] * x
        hessian = (x[own].T * (wrong * (1 - wrong))[own]) @ x[own] / 60
        harms[own] = gradients[own] @ np.linalg.solve(hessian, gradients[other].mean(axis=0)) / 60
    # Removal of n moves the loss by gᵀH⁻¹∇ℓ_n/n.
    kept = np.ones(120, bool)
    kept[np.argsort(harms)[:12]] = False
    fit = influence_pruning(jnp.asarray(x), jnp.asarray(labels), 0.1, radius=FAR)
    assert fit.status == Status.CONVERGED
    np.testing.assert_allclose(fit.weights, kept, atol=1e-6)
    np.testing.assert_allclose(fit.theta, slsqp(x[kept], labels[kept], np.ones(108), FAR), atol=1e-4)


@pytest.mark.slow
def test_trusted_pairs_find_planted_ones(x64):
    """A tenth of the pairs are planted: honest validation pairs point at nearly all of them, the file's own do not."""
    x, labels = sample(flipped=0.0)
    planted = np.arange(120) % 10 == 0
    x[planted], labels[planted] = [-1.5, 1.0], 1.0
    trusted = tuple(map(jnp.asarray, sample(5, flipped=0.0)))
    given = jnp.asarray(x), jnp.asarray(labels), 0.1
    found = influence_pruning(*given, radius=FAR, validation=trusted)
    assert np.mean(np.asarray(found.weights)[planted] == 0) > 0.9
    alone = influence_pruning(*given, radius=FAR)
    truth = np.array([2.0, -1.0])
    cosine = lambda t: t @ truth / np.linalg.norm(t) / np.linalg.norm(truth)  # noqa: E731
    assert cosine(np.asarray(found.theta)) > cosine(np.asarray(alone.theta))


@pytest.mark.slow
def test_no_more_goes_than_does_harm(x64):
    """At ε = .49 pairs whose removal would raise the loss stay."""
    x, labels = map(jnp.asarray, sample())
    fit = influence_pruning(x, labels, 0.49, radius=RADIUS)
    assert 0.51 * 120 <= np.sum(fit.weights) < 120


def test_validation_pairs_of_another_width():
    x, labels = map(jnp.asarray, sample())
    with pytest.raises(ValueError, match=r"differences \(120, 1\) and 120 labels: give \[m, 2\] and m\."):
        influence_pruning(x, labels, 0.1, radius=RADIUS, validation=(x[:, :1], labels))


@pytest.mark.slow
def test_a_single_pair_stays():
    fit = influence_pruning(jnp.ones((1, 2)), jnp.ones(1), 0.1, radius=RADIUS)
    assert fit.status == Status.SEPARABLE
    np.testing.assert_array_equal(fit.weights, 1.0)
