"""Labels that surprise: the eigenvalue is SciPy's, honest labels stay, confident flips go."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.special

from robust_rlhf_jax.rewards import examination, label_outliers
from robust_rlhf_jax.rewards.coordinates import unit_free
from robust_rlhf_jax.rewards.examination import examine
from robust_rlhf_jax.rewards.weighted_fit import PRIOR, information

from .worlds import (
    THETA,
    K,
    N,
    draw_labels,
    maximum_likelihood,
    normal_pairs,
    plain_fit,
    rare_pairs,
    rows_of,
    sparse_pairs,
)


@jax.jit
def surprise(x, labels, weights, theta):
    pairs = unit_free(x, labels)
    t = jnp.linalg.solve(pairs.to_theta, theta)
    floor = 0.5 * PRIOR * jnp.eye(len(t), dtype=t.dtype)
    factor = jnp.linalg.cholesky(information(pairs, weights, pairs.margins(t)) + floor)
    return label_outliers.label_surprise(pairs, weights, t, factor), pairs, t


@jax.jit
def clean(x, labels, budget):
    """Nobody is suspect at first: labels alone are looked at."""
    pairs = unit_free(x, labels)
    t = plain_fit(pairs).t
    return examine(pairs, jnp.ones_like(labels), budget, t), pairs, t


def cleaned(x, labels, budget):
    return clean(*(jnp.asarray(a, jnp.float32) for a in (x, labels, budget)))


def top_eigenvalue(z, labels, weights, t):
    """Of (J, F): J = Σ w r²zzᵀ, F = Σ w P(1 − P)zzᵀ and the prior's precision, 1/100."""
    chance = scipy.special.expit(labels * (z @ t))
    wrong = (z.T * (weights * (1 - chance) ** 2)) @ z
    known = (z.T * (weights * chance * (1 - chance))) @ z + 0.01 * np.eye(z.shape[1])
    return scipy.linalg.eigh(wrong, known, eigvals_only=True)[-1]


@pytest.mark.parametrize("draw", [normal_pairs, rare_pairs, sparse_pairs])
@pytest.mark.parametrize(("wide", "tolerance"), [(False, 1e-4), (True, 1e-9)])
def test_the_excess_is_the_top_generalised_eigenvalue(draw, wide, tolerance):
    """At the truth, at wrong rewards, with weights; and the shares sum to it."""
    dtype = jnp.float64 if wide else jnp.float32
    with jax.enable_x64(wide):
        for seed, theta in ((0, THETA), (1, -THETA), (2, 3 * THETA)):
            x, labels = draw(seed)
            weights = np.random.default_rng(seed).uniform(size=N)
            found, pairs, t = surprise(*(jnp.asarray(a, dtype) for a in (x, labels, weights, theta)))
            expected = top_eigenvalue(*(np.asarray(a, float) for a in (pairs.z, labels, weights, t)))
            np.testing.assert_allclose(found.excess, expected, rtol=tolerance)
            np.testing.assert_allclose(np.sum(found.shares), expected, rtol=tolerance)


@pytest.mark.slow
def test_wide_rows_take_power_steps(monkeypatch):
    """From below: what twelve steps reach of the eigenvalue."""
    x, labels = normal_pairs(0)
    x[: N // 20] = -3 * THETA  # a direction that stands out
    arrays = [jnp.asarray(a, jnp.float32) for a in (x, labels, np.ones(N), THETA)]
    exact = surprise(*arrays)[0]
    monkeypatch.setattr(label_outliers, "WIDE", 1)
    jax.clear_caches()
    found = surprise(*arrays)[0]
    np.testing.assert_allclose(found.excess, exact.excess, rtol=1e-3)
    np.testing.assert_allclose(found.shares, exact.shares, atol=0.03 * float(jnp.max(exact.shares)))


@pytest.mark.slow
def test_rows_as_wide_as_the_bound_take_no_power_steps(monkeypatch):
    x, labels = normal_pairs(0)
    arrays = [jnp.asarray(a, jnp.float32) for a in (x, labels, np.ones(N), THETA)]
    monkeypatch.setattr(label_outliers, "WIDE", K)
    found, pairs, t = jax.jit(lambda *given: surprise.__wrapped__(*given))(*arrays)
    expected = top_eigenvalue(*(np.asarray(a, float) for a in (pairs.z, labels, np.ones(N), t)))
    np.testing.assert_allclose(found.excess, expected, rtol=1e-4)


@pytest.mark.slow
def test_the_prior_is_known_of_every_axis(x64):
    """Thirty pairs: the excess that is reported is that of the pairs and of the prior."""
    x, labels = normal_pairs(0, 30)
    pairs = unit_free(jnp.asarray(x), jnp.asarray(labels))
    found = jax.jit(examine)(pairs, jnp.ones(30), jnp.asarray(0.0), jnp.zeros(K))
    arrays = (pairs.z, labels, found.weights, found.t)
    np.testing.assert_allclose(found.excess, top_eigenvalue(*map(np.asarray, arrays)), rtol=1e-9)


@pytest.mark.slow
def test_labels_go_in_so_many_steps_at_most(monkeypatch):
    """A search that lets one pair go in each step, and never calms down."""

    def one_more(pairs, weights, *_):
        return weights.at[jnp.argmax(weights)].set(0.0), jnp.asarray(False)

    monkeypatch.setattr(examination, "without_most_surprising", one_more)
    rng = np.random.default_rng(0)
    z = rng.normal(size=(60, 2))
    pairs = rows_of(z, draw_labels(rng, z, np.ones(2)))
    found = examine(pairs, jnp.ones(60), jnp.float32(60.0), jnp.zeros(2))
    np.testing.assert_array_equal(found.weights, np.arange(60) >= label_outliers.STEPS)


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
    """The 2 % of the labels about which the truth is surest, reversed: most are found, and few others go."""
    for seed in range(4):
        x, labels = normal_pairs(seed)
        surest = np.argsort(-labels * (x @ THETA))[: N // 50]
        labels[surest] *= -1
        found, pairs, _ = cleaned(x, labels, 0.1 * N)
        kept = np.asarray(found.weights)
        assert kept[surest].mean() < 0.5
        assert np.delete(kept, surest).mean() > 0.98
        theta, plain = np.asarray(pairs.to_theta @ found.t), maximum_likelihood(x, labels)
        assert np.linalg.norm(theta - THETA) < 0.7 * np.linalg.norm(plain - THETA)
        assert found.excess <= 1.1 + 3 * np.sqrt(6 / N) + 1e-6


@pytest.mark.parametrize(
    ("budget", "left", "gone"), [(60.0, 100.0, 3), (240.0, 100.0, 10), (5.0, 100.0, 1), (240.0, 4.0, 4)]
)
def test_a_twenty_fourth_of_the_budget_goes_at_a_time(budget, left, gone):
    """In whole pairs that make it up, one at least and no more than is left; none once λ is near 1."""
    pairs = unit_free(*(jnp.asarray(part, jnp.float32) for part in normal_pairs(0)))
    shares = np.random.default_rng(0).permutation(N) + 1.0
    for excess, calm in ((3.0, False), (1.05, True)):
        surprise = label_outliers.Surprise(jnp.float32(excess), jnp.asarray(shares, jnp.float32))
        kept, settled = label_outliers.without_most_surprising(
            pairs, jnp.ones(N), surprise, jnp.float32(budget), jnp.float32(left)
        )
        np.testing.assert_array_equal(kept, shares <= N - gone)
        assert settled == calm


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1, 6])
@pytest.mark.parametrize(
    ("off", "left", "calm"),
    [(-1e-3, 9.0, True), (1e-3, 9.0, False), (2.0, 0.6, False), (2.0, 0.5, True), (2.0, 0.2, True)],
)
def test_it_is_calm_up_to_the_level_and_where_nobody_may_go(rank, off, left, calm):
    """λ of 1.1 and three standard errors, √(rank/N) each, at least one axis counted."""
    error = np.sqrt(max(rank, 1) / 100)
    level = 1.0 + label_outliers.TOLERATED + label_outliers.STANDARD_ERRORS * error
    pairs = eqx.tree_at(lambda p: p.rank, rows_of(np.ones((100, 6))), jnp.asarray(rank))
    surprise = label_outliers.Surprise(jnp.float32(level + off), jnp.arange(100.0))
    given = (pairs, jnp.ones(100), surprise, jnp.float32(9.0), jnp.float32(left))
    assert label_outliers.without_most_surprising(*given)[1] == calm


def test_of_pairs_that_count_in_part_a_mass_of_one_goes_at_least():
    surprise = label_outliers.Surprise(jnp.float32(9.0), jnp.arange(1.0, 101.0))
    given = (rows_of(np.ones((100, 6))), jnp.full(100, 0.25), surprise, jnp.float32(5.0), jnp.float32(50.0))
    np.testing.assert_array_equal(
        label_outliers.without_most_surprising(*given)[0], np.where(np.arange(100) < 96, 0.25, 0.0)
    )


@pytest.mark.parametrize(("size", "gone"), [(1e-4, 3), (0.0, 0)])
def test_shares_count_by_their_order_unless_they_are_0(size, gone):
    surprise = label_outliers.Surprise(jnp.float32(9.0), size * jnp.arange(1.0, 101.0))
    given = (rows_of(np.ones((100, 6))), jnp.ones(100), surprise, jnp.float32(60.0), jnp.float32(50.0))
    np.testing.assert_array_equal(
        label_outliers.without_most_surprising(*given)[0], np.arange(100) < 100 - gone
    )


@pytest.mark.parametrize("budget", [0.0, 7.0, 50.0])
def test_no_more_than_the_budget_goes(budget):
    x, labels = normal_pairs(0)
    surest = np.argsort(-labels * (x @ THETA))[: N // 10]
    labels[surest] *= -1
    found, *_ = cleaned(x, labels, budget)
    gone = N - float(jnp.sum(found.weights))
    assert gone <= budget + 1.0
    assert (gone > 0) == (budget > 0)
