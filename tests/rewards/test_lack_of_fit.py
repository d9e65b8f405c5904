"""Likelihoods of recurring comparisons, beside loops in SciPy and beside chance."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from scipy.special import expit
from scipy.stats import betabinom, binom
from slow_parameters import slow

from robust_rlhf_jax import Pairs, fit_reward
from robust_rlhf_jax.preferences import as_labelled
from robust_rlhf_jax.rewards import fit_differences
from robust_rlhf_jax.rewards.comparisons import Comparisons
from robust_rlhf_jax.rewards.contamination import SCALES
from robust_rlhf_jax.rewards.decision import Judged
from robust_rlhf_jax.rewards.interval import ALLOWED_FALL
from robust_rlhf_jax.rewards.lack_of_fit import (
    CORRELATIONS,
    alike_labels,
    gained_by_odd_ones,
    honest_likeness,
    likeness,
)
from robust_rlhf_jax.rewards.slips import with_slips

jitted = jax.jit(likeness, static_argnums=3)


def drawn(seed, comparisons=60, each=20, miss=0.0, corrupt=0):
    """(margins, comparisons): labels of comparisons whose logits are off by `miss`; `corrupt` of them always lie."""
    rng = np.random.default_rng(seed)
    logits, off = rng.normal(size=comparisons), miss * rng.normal(size=comparisons)
    number = np.repeat(np.arange(comparisons), each)
    wins = rng.random(len(number)) < expit(logits + off)[number]
    wins = np.where(number < corrupt, logits[number] < 0, wins)
    return np.where(wins, logits[number], -logits[number]), number


def of(margins, number, most_odd=0.2, informative=None):
    given = np.ones(len(margins)) if informative is None else informative
    comparisons = Comparisons(jnp.asarray(number, jnp.int32), jnp.asarray(given))
    return float(jitted(jnp.asarray(margins), jnp.zeros(len(margins)), comparisons, most_odd))


def by_loops(margins, number, most_odd):
    size, against, chance = [], [], []
    for c in np.unique(number):
        m = margins[number == c]
        if len(m) > 1:
            size.append(len(m))
            against.append(np.sum(m < 0))
            chance.append(np.mean(expit(-np.abs(m))))
    n, k, p = map(np.asarray, (size, against, chance))

    def with_odd_ones(log_chances):
        def less(share):
            return -np.sum(np.logaddexp(np.log1p(-share) + log_chances, np.log(share) - np.log(n + 1)))

        if most_odd == 0:
            return np.sum(log_chances)
        return -scipy.optimize.minimize_scalar(less, bounds=(0, most_odd), method="bounded").fun

    independent = binom.logpmf(k, n, p)
    best, value = with_odd_ones(independent) + ALLOWED_FALL, 0.0
    for rho in CORRELATIONS:
        alike = betabinom.logpmf(k, n, p * (1 - rho) / rho, (1 - p) * (1 - rho) / rho)
        if with_odd_ones(alike) > best:
            best, value = with_odd_ones(alike), max(np.sum(alike - independent), 0.0)
    return value


@pytest.mark.parametrize("most_odd", [0.0, slow(0.1), 0.2])
@pytest.mark.parametrize(("miss", "corrupt"), [(0.0, 0), (2.0, 0), (0.0, 9), (1.0, 9)])
def test_comparison_by_comparison(x64, most_odd, miss, corrupt):
    margins, number = drawn(1, miss=miss, corrupt=corrupt)
    singles = np.random.default_rng(2).normal(size=100)
    margins, number = np.append(margins, singles), np.append(number, 60 + np.arange(100))
    np.testing.assert_allclose(
        of(margins, number, most_odd), by_loops(margins, number, most_odd), rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("most", [0.0, slow(0.05), 0.3])
@pytest.mark.parametrize("odd", [0, 3, 40])
def test_the_share_of_odd_ones_is_the_likeliest(x64, most, odd):
    """Log likelihood ratios far beyond what an exponential holds, and none that says anything (0)."""
    odds = np.random.default_rng(0).normal(-5.0, 2.0, 100)
    odds[:odd], odds[50:60] = 900.0, 0.0
    shares = np.linspace(0, most, 20_001)
    with np.errstate(divide="ignore"):
        expected = max(np.sum(np.logaddexp(np.log1p(-s), np.log(s) + odds)) for s in shares)
    np.testing.assert_allclose(
        jax.jit(gained_by_odd_ones)(jnp.asarray(odds), most), expected, rtol=1e-5, atol=1e-3
    )


@pytest.mark.slow
def test_in_single_precision():
    """Comparisons of up to 50,000 pairs to a hundredth of a nat per thousand pairs."""
    rng = np.random.default_rng(0)
    number = np.repeat(np.arange(5), [2, 50, 1000, 10_000, 50_000])
    margins = np.float32(rng.normal(size=5))[number] * rng.choice([-1, 1], len(number)).astype(np.float32)
    np.testing.assert_allclose(
        of(margins, number, 0.0), by_loops(margins.astype(float), number, 0.0), atol=0.6
    )


@pytest.mark.slow
@pytest.mark.parametrize("most_odd", [0.0, 0.2])
def test_chance_is_no_missed_quality(most_odd):
    found = np.array([of(*drawn(seed), most_odd=most_odd) for seed in range(40)])
    assert np.mean(found == 0) > 0.9
    assert np.max(found) < 10.0


def test_a_missed_quality_is_one_and_corrupt_comparisons_are_none():
    missed = np.array([of(*drawn(seed, miss=1.5)) for seed in range(10)])
    corrupt = np.array([of(*drawn(seed, corrupt=9)) for seed in range(10)])
    assert np.min(missed) > 30.0
    np.testing.assert_array_equal(corrupt, 0.0)
    assert of(*drawn(0, corrupt=9), most_odd=0.0) > 50.0


def test_corruption_that_is_known_explains_it():
    margins, number = drawn(1, corrupt=9)
    comparisons = Comparisons(jnp.asarray(number, jnp.int32), jnp.ones(len(number)))
    rates = jnp.where(jnp.asarray(number) < 9, 0.999, 0.0)
    assert float(jitted(jnp.asarray(margins), rates, comparisons, 0.0)) < 3.0
    assert of(margins, number, most_odd=0.0) > 50.0


@pytest.mark.slow
def test_only_what_recurs_among_the_accused_is_excused():
    margins, number = drawn(0, miss=1.5)
    n, half = len(margins), number < 30
    margins = jnp.asarray(margins)
    lies = jnp.asarray(np.stack([half, ~half, np.ones(n), np.zeros(n)]), jnp.float32)
    singles = jnp.asarray(np.where(half, number, 60 + np.arange(n)), jnp.int32)
    honest = jnp.full(4, max(float(jnp.sum(jax.nn.log_sigmoid(scale * margins))) for scale in SCALES) - 3.0)
    judged = Judged(*[None] * len(Judged._fields))._replace(
        honest=honest,
        dispersed=jnp.arange(4.0),
        margins=jnp.stack([margins] * 4),
        rates=0.0 * lies,
        lies=lies,
        comparisons_seen=jnp.asarray([0.0, 0.0, 2.0, 0.0]),
    )
    comparisons = Comparisons(singles, jnp.ones(n))
    found = alike_labels(judged, judged.margins, comparisons, 0.2)
    np.testing.assert_allclose(found.recurs, [1.0, 0.0, np.mean(half), 1.0], atol=1e-5)
    missed = float(honest_likeness(margins, comparisons, 0.2))
    np.testing.assert_allclose(found.honest, missed, rtol=1e-5)
    gained = float(jitted(margins, 0.0 * margins, comparisons, 0.0))
    np.testing.assert_allclose(
        found.corrupted, judged.dispersed - judged.comparisons_seen + found.recurs * gained, rtol=1e-5
    )
    assert missed > 10.0
    # Less the 3 nats that the fit has seen of the pairs.
    each = with_slips(margins, jnp.asarray(half, jnp.float32), jnp.ones(n))
    np.testing.assert_allclose(found.slips.value, each.value - 3.0, rtol=1e-5)


def test_copies_are_as_alike_as_one_label():
    """25 labels 12 times each are about as likely as the 25 alone."""
    rng = np.random.default_rng(0)
    margins = rng.normal(size=25)
    copied, number = np.repeat(margins, 12), np.repeat(np.arange(25), 12)
    independent = np.sum(-np.logaddexp(0, -copied))
    once = np.sum(-np.logaddexp(0, -margins))
    assert once - 3.0 < independent + of(copied, number, most_odd=0.0) < once + 3.0


@pytest.mark.slow
def test_honest_files_of_copies_lose_nobody():
    """With correlations up to a half, four of these six files lost pairs."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x, theta = rng.normal(size=(84, 5)), rng.normal(size=5)
        wins = rng.random(84) < expit(2 * x @ theta / np.linalg.norm(theta))
        x = np.repeat(np.where(wins[:, None], x, -x), 12, axis=0)[:1_000]
        assert fit_reward(Pairs(x, np.zeros_like(x))).epsilon == 0


@pytest.mark.slow
def test_honest_files_of_which_some_rows_are_copies_lose_nobody():
    """While only explanations with corruption gained by labels that are alike, six of these six files lost pairs."""
    for seed in (1, 3, 5, 6, 8, 11):
        rng = np.random.default_rng(seed)
        x, theta = rng.normal(size=(156, 5)), rng.normal(size=5)
        wins = rng.random(156) < expit(2 * x @ theta / np.linalg.norm(theta))
        x = np.repeat(np.where(wins[:, None], x, -x), [1] * 120 + [5] * 36, axis=0)
        assert fit_reward(Pairs(x, np.zeros_like(x))).epsilon == 0


@pytest.mark.slow
@pytest.mark.parametrize("times", [1.0, 2.0, 4.0])
def test_people_without_corruption_are_judged_at_their_best_length(times):
    """However long the margins are that are given; odd comparisons are no likeness of the others."""
    for miss, corrupt in ((1.0, 0), (0.0, 9)):
        margins, number = drawn(5, miss=miss, corrupt=corrupt)
        comparisons = Comparisons(jnp.asarray(number, jnp.int32), jnp.ones(len(number)))
        once, found = (
            float(honest_likeness(jnp.asarray(length * margins), comparisons, 0.2)) for length in (1.0, times)
        )
        np.testing.assert_allclose(found, once, rtol=1e-4, atol=1e-3)
        assert (once > 10.0) == (miss > 0)


@pytest.mark.slow
def test_a_crowd_is_not_excused_by_a_reward_that_it_shortens():
    """A fifth of the pairs in three of 60 comparisons: the best length of all pairs makes the others look alike."""
    margins, number = drawn(4)
    crowd = np.repeat(np.arange(3), 100)
    margins = np.append(margins, -2.0 * np.ones(len(crowd)))
    number = np.append(number, crowd + 60)
    comparisons = Comparisons(jnp.asarray(number, jnp.int32), jnp.ones(len(number)))
    values = [np.sum(-np.logaddexp(0, -factor * margins)) for factor in SCALES]
    short = SCALES[int(np.argmax(values))]
    assert short < 1
    assert of(short * margins, number) > 50.0
    assert float(honest_likeness(jnp.asarray(margins), comparisons, 0.2)) == 0.0


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


@pytest.mark.slow
@pytest.mark.parametrize("grouped", [False, True])
def test_honest_choices_between_few_options_are_left_alone(grouped, left_out_unaware):
    """Less than half of the pairs leaves that leave if nobody knows which of them compare the same options."""
    out = [float(fit_reward(items(seed, grouped=grouped)).epsilon) for seed in range(4)]
    assert left_out_unaware > 0.05
    assert np.mean(out) < 0.5 * left_out_unaware


@pytest.mark.slow
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


@pytest.mark.slow
def test_honest_votes_that_form_rings_are_left_alone():
    lost, unaware = [], []
    for seed in (2, 8, 9, 11):
        x = rings(seed)
        lost.append(float(fit_reward(Pairs.of_differences(x, np.ones(len(x)))).epsilon))
        x = jnp.asarray(x, jnp.float32)
        unaware.append(float(fit_differences(x, jnp.ones(len(x)), jnp.float32(0.2)).epsilon))
    assert max(lost) == 0.0
    assert min(unaware) > 0.03


@pytest.mark.slow
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
