"""Likelihoods of recurring comparisons, beside loops in SciPy and beside chance."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import betabinom, binom

from robust_rlhf_jax import Pairs, fit_reward
from robust_rlhf_jax.preferences import as_labelled
from robust_rlhf_jax.rewards import fit_differences
from robust_rlhf_jax.rewards.decision import Judged
from robust_rlhf_jax.rewards.lack_of_fit import (
    CORRELATIONS,
    Comparisons,
    alike_labels,
    honest_length,
    likeness,
)

jitted = jax.jit(likeness, static_argnums=3)


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
    size, against, chance = [], [], []
    for c in np.unique(number):
        m = margins[number == c]
        size, against, chance = (
            [*size, len(m)],
            [*against, np.sum(m < 0)],
            [*chance, np.mean(expit(-np.abs(m)))],
        )
    n, k, p = map(np.asarray, (size, against, chance))
    surprise = np.where(n > 1, (k - n * p) ** 2 / (n * p * (1 - p)), -np.inf)
    gone, kept = 0, np.ones(len(n), bool)
    for c in np.argsort(-surprise):
        if n[c] < 2 or gone + n[c] > left_out * n.sum():
            break
        gone, kept[c] = gone + n[c], False
    best, value = 0.0, 0.0
    for rho in CORRELATIONS:
        a, b = p * (1 - rho) / rho, (1 - p) * (1 - rho) / rho
        gain = betabinom.logpmf(k, n, a, b) - binom.logpmf(k, n, p)
        if gain[kept].sum() > best:
            best, value = gain[kept].sum(), gain.sum()
    return value


@pytest.mark.parametrize("left_out", [0.0, 0.1, 0.2])
@pytest.mark.parametrize("miss", [0.0, 2.0])
def test_comparison_by_comparison(x64, left_out, miss):
    margins, number = drawn(1, miss=miss)
    singles = np.random.default_rng(2).normal(size=100)
    margins, number = np.append(margins, singles), np.append(number, 60 + np.arange(100))
    np.testing.assert_allclose(
        of(margins, number, left_out), by_loops(margins, number, left_out), rtol=1e-6, atol=1e-6
    )


def test_in_single_precision():
    """Comparisons of up to 50,000 pairs to a hundredth of a nat per thousand pairs."""
    rng = np.random.default_rng(0)
    number = np.repeat(np.arange(5), [2, 50, 1000, 10_000, 50_000])
    margins = np.float32(rng.normal(size=5))[number] * rng.choice([-1, 1], len(number)).astype(np.float32)
    np.testing.assert_allclose(
        of(margins, number, 0.0), by_loops(margins.astype(float), number, 0.0), atol=0.6
    )


def test_chance_is_no_missed_quality():
    found = np.array([of(*drawn(seed)) for seed in range(40)])
    all_of_them = np.array([of(*drawn(seed), left_out=0.0) for seed in range(40)])
    assert np.mean(found == 0) > 0.9
    assert np.max(all_of_them) < 7.0
    assert np.mean(all_of_them) < 1.0


def test_a_missed_quality_is_one_and_corrupt_comparisons_are_none():
    missed = np.array([of(*drawn(seed, miss=1.5)) for seed in range(10)])
    corrupt = np.array([of(*drawn(seed, corrupt=9)) for seed in range(10)])
    assert np.min(missed) > 30.0
    np.testing.assert_array_equal(corrupt, 0.0)
    assert of(*drawn(0, corrupt=9), left_out=0.0) > 50.0


def test_corruption_that_is_known_explains_it():
    margins, number = drawn(1, corrupt=9)
    comparisons = Comparisons(jnp.asarray(number, jnp.int32), jnp.ones(len(number)))
    rates = jnp.where(jnp.asarray(number) < 9, 0.999, 0.0)
    assert float(jitted(jnp.asarray(margins), rates, comparisons, 0.0)) < 3.0
    assert of(margins, number, left_out=0.0) > 50.0


def test_only_what_recurs_among_the_accused_is_excused():
    margins, number = drawn(0, miss=1.5)
    n, half = len(margins), number < 30
    margins = jnp.asarray(margins)
    lies = jnp.asarray(np.stack([half, ~half, np.ones(n), np.zeros(n)]), jnp.float32)
    singles = jnp.asarray(np.where(half, number, 60 + np.arange(n)), jnp.int32)
    judged = Judged(*[None] * len(Judged._fields))._replace(
        dispersed=jnp.arange(4.0),
        margins=jnp.stack([margins] * 4),
        rates=0.0 * lies,
        lies=lies,
    )
    comparisons = Comparisons(singles, jnp.ones(n))
    # Twice as long as given to it: the best length without corruption is one half.
    found = alike_labels(judged, 2.0 * judged.margins, comparisons, 0.2)
    np.testing.assert_allclose(found.recurs, [1.0, 0.0, np.mean(half), 1.0], atol=1e-5)
    length = float(honest_length(2.0 * margins, jnp.ones(n)))
    missed = float(jitted(2.0 * length * margins, 0.0 * margins, comparisons, 0.2))
    np.testing.assert_allclose(found.honest, missed, rtol=1e-5)
    gained = float(jitted(margins, 0.0 * margins, comparisons, 0.0))
    np.testing.assert_allclose(found.corrupted, judged.dispersed + gained, rtol=1e-5)
    assert missed > 10.0


def test_the_best_length_without_corruption():
    rng = np.random.default_rng(0)
    margins = rng.normal(size=4000)
    margins = np.where(rng.random(4000) < expit(margins), margins, -margins)
    for times in (1.0, 2.0, 4.0):
        assert float(honest_length(jnp.asarray(times * margins), jnp.ones(4000))) == pytest.approx(1 / times)
    informative = jnp.asarray(np.arange(8000) < 4000, jnp.float32)
    more = jnp.asarray(np.append(2.0 * margins, np.full(4000, -50.0)))
    assert float(honest_length(more, informative)) == pytest.approx(0.5)


def test_order_and_pairs_of_equal_options_do_not_matter():
    margins, number = drawn(3, miss=1.0)
    turn = np.random.default_rng(0).permutation(len(margins))
    np.testing.assert_allclose(of(margins[turn], number[turn]), of(margins, number), rtol=1e-5)
    more = np.append(margins, np.zeros(300)), np.append(number, np.full(300, 3))
    given = np.append(np.ones(len(margins)), np.zeros(300))
    np.testing.assert_allclose(of(*more, informative=given), of(margins, number), rtol=1e-5)


def test_without_recurring_pairs_there_is_none():
    margins = drawn(0)[0]
    assert of(np.abs(margins), np.arange(len(margins))) == 0.0
    assert of(np.full(50, 100.0), np.zeros(50, int)) < 1e-3


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


def rings(seed, n=4000, models=25):
    """Honest votes on models of which A may beat B, B C, and C A, and some are voted on much more than others."""
    rng = np.random.default_rng(seed)
    quality, popularity = rng.standard_normal(models), rng.dirichlet(np.full(models, 0.5))
    beats = 0.7 * rng.standard_normal((models, models))
    one, other = rng.choice(models, (2, n), p=popularity)
    other = np.where(one == other, (other + 1) % models, other)
    wins = rng.random(n) < expit(quality[one] - quality[other] + (beats - beats.T)[one, other])
    return (np.eye(models)[one] - np.eye(models)[other]) * np.where(wins, 1.0, -1.0)[:, None]


def test_honest_votes_that_form_rings_are_left_alone():
    lost, unaware = [], []
    for seed in (2, 8, 9, 11):
        x = rings(seed)
        lost.append(float(fit_reward(Pairs.of_differences(x, np.ones(len(x)))).epsilon))
        x = jnp.asarray(x, jnp.float32)
        unaware.append(float(fit_differences(x, jnp.ones(len(x)), jnp.float32(0.2)).epsilon))
    assert max(lost) == 0.0
    assert min(unaware) > 0.03


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
