"""The dispersion of recurring comparisons, beside loops in NumPy and beside chance."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit

from robust_rlhf_jax import Pairs, fit_reward
from robust_rlhf_jax.rewards import fit_differences
from robust_rlhf_jax.rewards.lack_of_fit import LackOfFit, lack_of_fit

jitted = jax.jit(lack_of_fit, static_argnums=3)


def drawn(seed, comparisons=60, each=20, miss=0.0, corrupt=0):
    """(margins, comparisons): labels of comparisons whose logits are off by `miss`; `corrupt` of them always lie."""
    rng = np.random.default_rng(seed)
    logits, off = rng.normal(size=comparisons), miss * rng.normal(size=comparisons)
    number = np.repeat(np.arange(comparisons), each)
    wins = rng.random(len(number)) < expit(logits + off)[number]
    wins = np.where(number < corrupt, logits[number] < 0, wins)
    return np.where(wins, logits[number], -logits[number]), number


def of(margins, number, left_out=0.2, informative=None):
    given = np.ones(len(margins)) if informative is None else informative
    found = jitted(jnp.asarray(margins), jnp.asarray(number, jnp.int32), jnp.asarray(given), left_out)
    return float(found.dispersion)


def by_loops(margins, number, left_out):
    found = []
    for c in np.unique(number):
        m = margins[number == c]
        p = expit(-np.abs(m))
        found.append((len(m), np.sum((m < 0) - p) ** 2, np.sum(p * (1 - p))))
    n, missed, known = map(np.asarray, zip(*found, strict=True))
    ratio = np.where(n > 1, missed / known, -np.inf)
    gone, kept = 0, np.ones(len(n), bool)
    for c in np.argsort(-ratio):
        if n[c] < 2 or gone + n[c] > left_out * n.sum():
            break
        gone, kept[c] = gone + n[c], False
    return max(missed[kept].sum() / known[kept].sum(), 1.0)


@pytest.mark.parametrize("left_out", [0.0, 0.1, 0.2])
@pytest.mark.parametrize("miss", [0.0, 2.0])
def test_comparison_by_comparison(x64, left_out, miss):
    margins, number = drawn(1, miss=miss)
    singles = np.random.default_rng(2).normal(size=100)
    margins, number = np.append(margins, singles), np.append(number, 60 + np.arange(100))
    np.testing.assert_allclose(of(margins, number, left_out), by_loops(margins, number, left_out), rtol=1e-9)


def test_chance_is_no_lack_of_fit():
    np.testing.assert_array_equal([of(*drawn(seed)) for seed in range(40)], 1.0)
    assert np.mean([of(*drawn(seed), left_out=0.0) for seed in range(40)]) < 1.1


def test_a_missed_quality_is_one_and_corrupt_comparisons_are_none():
    missed = np.array([of(*drawn(seed, miss=1.5)) for seed in range(10)])
    corrupt = np.array([of(*drawn(seed, corrupt=9)) for seed in range(10)])
    assert np.min(missed) > 1.5
    np.testing.assert_array_equal(corrupt, 1.0)
    assert of(*drawn(0, corrupt=9), left_out=0.0) > 5.0


def test_only_those_are_alike_who_are_accused_of_it():
    found = LackOfFit(jnp.asarray(3.0), jnp.arange(10) < 5)
    lies = jnp.asarray([[0.5] * 5 + [0.0] * 5, [0.0] * 5 + [0.9] * 5, [0.2] * 10, [0.0] * 10])
    np.testing.assert_allclose(found.of(lies), [3.0, 1.0, 2.0, 1.0], rtol=1e-5)


def test_order_and_pairs_of_equal_options_do_not_matter():
    margins, number = drawn(3, miss=1.0)
    turn = np.random.default_rng(0).permutation(len(margins))
    np.testing.assert_allclose(of(margins[turn], number[turn]), of(margins, number), rtol=1e-5)
    more = np.append(margins, np.zeros(300)), np.append(number, np.full(300, 3))
    given = np.append(np.ones(len(margins)), np.zeros(300))
    np.testing.assert_allclose(of(*more, informative=given), of(margins, number), rtol=1e-5)


def test_without_recurring_pairs_there_is_none():
    margins = drawn(0)[0]
    assert of(np.abs(margins), np.arange(len(margins))) == 1.0
    assert of(np.full(50, 100.0), np.zeros(50, int)) == 1.0


def items(seed, n=1000, grouped=False):
    """Honest choices between ten options with a quality that no feature tells, and perhaps raters."""
    rng = np.random.default_rng(seed)
    features, quality = rng.normal(size=(10, 3)), rng.normal(size=10)
    a = rng.integers(10, size=n)
    b = (a + rng.integers(1, 10, n)) % 10
    utility = features @ [2.0, 1.5, 1.0] + 2.0 * quality
    wins = (rng.random(n) < expit(utility[a] - utility[b]))[:, None]
    first, second = features[a], features[b]
    chosen, rejected = np.where(wins, first, second), np.where(wins, second, first)
    return Pairs(chosen, rejected, raters=rng.integers(0, 40, n) if grouped else None)


@pytest.mark.parametrize("grouped", [False, True])
def test_honest_choices_between_few_options_are_left_alone(grouped):
    """Less than half of the pairs leaves that leave if nobody knows which of them compare the same options."""
    out, unaware = [], []
    for seed in range(8):
        pairs = items(seed, grouped=grouped)
        out.append(float(fit_reward(pairs).epsilon))
        x = jnp.asarray(pairs.preferred_differences(), jnp.float32)
        unaware.append(float(fit_differences(x, jnp.ones(len(x)), jnp.float32(0.2)).epsilon))
    assert np.mean(unaware) > 0.05
    assert np.mean(out) < 0.5 * np.mean(unaware)


def test_a_crowd_of_one_planted_pair_is_still_found():
    rng = np.random.default_rng(0)
    options = rng.normal(size=(12, 3))
    a, b = rng.integers(0, 12, (2, 2000))
    x = options[a] - options[b]
    x *= np.where(rng.random(2000) < expit(x @ [2.0, 1.5, 1.0]), 1, -1)[:, None]
    planted = np.arange(2000) < 200
    x[planted] = [-3.0, -1.0, -1.0]
    model = fit_reward(Pairs(x, np.zeros_like(x)))
    assert np.asarray(model.weights)[planted].max() < 0.1
    assert np.asarray(model.weights)[~planted].mean() > 0.97
