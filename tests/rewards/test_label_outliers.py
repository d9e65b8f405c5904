"""Labels that surprise: the eigenvalue is SciPy's, honest labels stay, confident flips go."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.special

from robust_rlhf_jax.rewards import label_outliers
from robust_rlhf_jax.rewards.coordinates import unit_free

from .worlds import THETA, N, maximum_likelihood, normal_pairs, plain_fit, rare_pairs, sparse_pairs


@jax.jit
def clean(x, labels, weights, budget, start):
    """From θ = `start`, or the plain fit where it is NaN."""
    pairs = unit_free(x, labels)
    own = jnp.linalg.solve(pairs.to_theta, start)
    t = jnp.where(jnp.isnan(start), plain_fit(pairs).t, own)
    return label_outliers.without_label_outliers(pairs, weights, t, budget), pairs, t


def cleaned(x, labels, budget, weights=None, start=None, dtype=jnp.float32):
    weights = np.ones(len(x)) if weights is None else weights
    start = np.full(x.shape[1], np.nan) if start is None else start
    return clean(*(jnp.asarray(a, dtype) for a in (x, labels, weights, budget, start)))


def top_eigenvalue(z, labels, weights, t):
    """Of (J, F): J = Σ w r²zzᵀ, F = Σ w P(1 − P)zzᵀ and the prior's precision, 1/100."""
    chance = scipy.special.expit(labels * (z @ t))
    wrong = (z.T * (weights * (1 - chance) ** 2)) @ z
    known = (z.T * (weights * chance * (1 - chance))) @ z + 0.01 * np.eye(z.shape[1])
    return scipy.linalg.eigh(wrong, known, eigvals_only=True)[-1]


@pytest.mark.parametrize("draw", [normal_pairs, rare_pairs, sparse_pairs])
@pytest.mark.parametrize(("wide", "tolerance"), [(False, 1e-4), (True, 1e-9)])
def test_the_excess_is_the_top_generalised_eigenvalue(draw, wide, tolerance):
    """With no budget nothing goes: at the truth, at wrong rewards, with weights."""
    with jax.enable_x64(wide):
        for seed, start in ((0, THETA), (1, -THETA), (2, 3 * THETA), (3, None)):
            x, labels = draw(seed)
            weights = np.random.default_rng(seed).uniform(size=N)
            found, pairs, t = cleaned(x, labels, 0.0, weights, start, jnp.float64 if wide else jnp.float32)
            expected = top_eigenvalue(*(np.asarray(a, float) for a in (pairs.z, labels, weights, t)))
            np.testing.assert_allclose(found.excess, expected, rtol=tolerance)
            np.testing.assert_array_equal(found.weights, weights.astype(found.weights.dtype))


@pytest.mark.parametrize("draw", [normal_pairs, sparse_pairs])
def test_honest_labels_stay(draw):
    for seed in range(20):
        found, _, t = cleaned(*draw(seed), 0.4 * N)
        np.testing.assert_array_equal(found.weights, 1.0)
        # Fitted anew, with the weak prior of every part.
        np.testing.assert_allclose(found.t, t, rtol=2e-3, atol=1e-3)
        # 1, give or take what `rank`/N leaves to chance.
        assert 0.7 < found.excess < 1.1 + 3 * np.sqrt(6 / N)


def test_confident_lies_go():
    """The 5 % of the labels about which the truth is surest, reversed: most are found, and few others go."""
    for seed in range(4):
        x, labels = normal_pairs(seed)
        surest = np.argsort(-labels * (x @ THETA))[: N // 20]
        labels[surest] *= -1
        found, pairs, _ = cleaned(x, labels, 0.1 * N, start=THETA)
        kept = np.asarray(found.weights)
        assert kept[surest].mean() < 0.5
        assert np.delete(kept, surest).mean() > 0.98
        theta, plain = np.asarray(pairs.to_theta @ found.t), maximum_likelihood(x, labels)
        assert np.linalg.norm(theta - THETA) < 0.7 * np.linalg.norm(plain - THETA)
        assert found.excess <= 1.1 + 3 * np.sqrt(6 / N) + 1e-6


@pytest.mark.parametrize("budget", [0.0, 7.0, 50.0])
def test_no_more_than_the_budget_goes(budget):
    x, labels = normal_pairs(0)
    found, *_ = cleaned(x, labels, budget, start=-3 * THETA)
    assert N - float(jnp.sum(found.weights)) <= budget + 1.0
    assert budget > 0 or found.excess > 2
