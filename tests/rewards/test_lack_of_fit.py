"""The dispersion of recurring comparisons, beside loops in NumPy and beside chance."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit

from robust_rlhf_jax import Pairs, fit_reward
from robust_rlhf_jax.preferences import as_labelled
from robust_rlhf_jax.rewards import fit_differences
from robust_rlhf_jax.rewards.lack_of_fit import Comparisons, dispersion, lack_of_fit

jitted = jax.jit(dispersion, static_argnums=3)


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
    comparisons = Comparisons(jnp.asarray(number, jnp.int32), jnp.asarray(given))
    return float(jitted(jnp.asarray(margins), jnp.zeros(len(margins)), comparisons, left_out))


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


def test_corruption_that_is_known_explains_it():
    margins, number = drawn(1, corrupt=9)
    comparisons = Comparisons(jnp.asarray(number, jnp.int32), jnp.ones(len(number)))
    known = float(
        jitted(jnp.asarray(margins), jnp.where(jnp.asarray(number) < 9, 0.999, 0.0), comparisons, 0.0)
    )
    assert known < 1.3
    assert of(margins, number, left_out=0.0) > 5.0


def test_an_explanation_pays_for_what_recurs_among_those_that_it_accuses_and_leaves_unexplained():
    margins, number = drawn(0, miss=1.5)
    n, half = len(margins), number < 30
    margins = jnp.asarray(margins)
    lies = jnp.asarray(np.stack([half, ~half, np.ones(n)]), jnp.float32)
    singles = jnp.asarray(np.where(half, number, 60 + np.arange(n)), jnp.int32)
    judged = SimpleNamespace(margins=jnp.stack([margins] * 3), rates=0.0 * lies, lies=lies)
    comparisons = Comparisons(singles, jnp.ones(n))
    missed = float(dispersion(margins, 0.0 * margins, comparisons, 0.2))
    own = float(dispersion(margins, 0.0 * margins, comparisons))
    found = lack_of_fit(judged, margins, comparisons, 0.2)
    np.testing.assert_allclose(
        found[:3], [min(missed, own), 1.0, 1.0 + (missed - 1.0) * np.mean(half)], rtol=1e-4
    )
    assert 1.0 < missed < own


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


@pytest.fixture(scope="module")
def left_out_unaware():
    """The mean share of pairs that fits leave out which do not know what recurs."""
    given = [jnp.asarray(items(seed).preferred_differences(), jnp.float32) for seed in range(4)]
    return np.mean([fit_differences(x, jnp.ones(len(x)), jnp.float32(0.2)).epsilon for x in given])


@pytest.mark.parametrize("grouped", [False, True])
def test_honest_choices_between_few_options_are_left_alone(grouped, left_out_unaware):
    """Less than half of the pairs leaves that leave if nobody knows which of them compare the same options."""
    out = [float(fit_reward(items(seed, grouped=grouped)).epsilon) for seed in range(4)]
    assert left_out_unaware > 0.05
    assert np.mean(out) < 0.5 * left_out_unaware


def test_under_jit_and_with_other_numbers_the_fit_is_the_same():
    rng = np.random.default_rng(0)
    pairs = items(3, n=700)
    x, number = pairs.preferred_differences().astype(np.float32), np.asarray(as_labelled(pairs).comparisons)
    x[:70] *= -1
    labels = np.ones(len(x), np.float32)
    eager = fit_differences(x, labels, jnp.float32(0.2), comparisons=number)
    others = rng.permutation(len(x))[number].astype(np.int32)
    for found in (
        jax.jit(fit_differences)(x, labels, jnp.float32(0.2), comparisons=number),
        fit_differences(x, labels, jnp.float32(0.2), comparisons=others),
        fit_differences(x * np.float32(-1), -labels, jnp.float32(0.2), comparisons=number),
    ):
        np.testing.assert_allclose(found.theta, eager.theta, rtol=2e-3, atol=1e-4)
        np.testing.assert_allclose(found.weights, eager.weights, atol=2e-3)


@pytest.mark.parametrize("share", [0.1, 0.2])
def test_a_crowd_of_one_planted_pair_is_still_found(share):
    rng = np.random.default_rng(0)
    options = rng.integers(1, 6, (4000, 3)).astype(float)
    x = options[:2000] - options[2000:]
    x *= np.where(rng.random(2000) < expit(x @ [0.8, 0.6, 0.4]), 1, -1)[:, None]
    planted = np.arange(2000) < share * 2000
    x[planted] = [-4.0, -2.0, -2.0]
    model = fit_reward(Pairs(x, np.zeros_like(x)))
    assert np.asarray(model.weights)[planted].max() < 0.1
    assert np.asarray(model.weights)[~planted].mean() > 0.97
