"""Without being told: no evidence on honest choices, the share of corrupt pairs under attack, what could hide."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.special

from robust_rlhf_jax import Pairs, estimate_epsilon, fit_reward, load_rail_choices
from robust_rlhf_jax.preferences import preferences_from_options
from robust_rlhf_jax.rewards import EpsilonEstimate, Streaming
from robust_rlhf_jax.rewards.config import CEILING, RobustFit
from robust_rlhf_jax.rewards.contamination import NoiseByMargin
from robust_rlhf_jax.rewards.decision import Decision, Judged
from robust_rlhf_jax.rewards.interval import ALLOWED_FALL, FLIPS, interval_of, most_flips
from robust_rlhf_jax.sources import ArraySource

THETA = np.array([1.0, -0.8, 0.5])


def choices(n=1500, flipped=0.0, planted=0.0):
    rng = np.random.default_rng(5)
    x = rng.standard_t(5, size=(n, 3)) * 1.5
    labels = np.where(rng.uniform(size=n) < 1 / (1 + np.exp(-x @ THETA)), 1.0, -1.0)
    lies, copies = int(flipped * n), int(planted * n)
    labels[:lies] *= -1
    x[n - copies :], labels[n - copies :] = -12 * THETA + 0.2 * rng.normal(size=(copies, 3)), 1.0
    return preferences_from_options(np.zeros_like(x), x, labels)


def test_the_shares_that_are_tried_rise_and_stay_below_a_half():
    assert list(FLIPS) == sorted(set(FLIPS))
    assert FLIPS[0] == 0.0
    assert FLIPS[-1] < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("data", [choices(), load_rail_choices()], ids=["linear", "rail"])
def test_honest_choices_give_no_evidence(data):
    found = estimate_epsilon(data)
    assert not bool(found.evidence)
    assert float(found.estimate) == float(found.lower) == 0.0
    assert float(found.upper) < 0.2
    assert found.message.startswith("No evidence of corruption; up to ")


@pytest.mark.slow
def test_planted_rows_are_counted():
    found = estimate_epsilon(choices(planted=0.1))
    assert bool(found.evidence)
    assert float(found.estimate) == pytest.approx(0.1, abs=0.03)
    assert float(found.lower) <= 0.1 <= float(found.upper)
    assert found.message.startswith("About ")


@pytest.mark.slow
def test_flips_at_random_may_hide_and_the_interval_says_so():
    found = estimate_epsilon(choices(flipped=0.1))
    assert float(found.lower) <= 0.1 <= float(found.upper)


@pytest.mark.slow
def test_most_flips_covers_the_share_and_is_tight_where_margins_are_large():
    rng = np.random.default_rng(0)
    m = rng.normal(size=20_000) * 6
    agree = rng.uniform(size=m.size) < 1 / (1 + np.exp(-m))
    for share in (0.0, 0.05, 0.2):
        flips = rng.uniform(size=m.size) < share
        most = float(most_flips(jnp.asarray(np.where(agree ^ flips, m, -m), jnp.float32)))
        assert share <= most < share + 0.03
    small = 0.5 * rng.normal(size=2000)
    agree = rng.uniform(size=small.size) < 1 / (1 + np.exp(-small))
    assert float(most_flips(jnp.asarray(np.where(agree, small, -small), jnp.float32))) > 0.15


def test_most_flips_is_where_the_profile_has_fallen_by_1_92():
    """SciPy's profile over the scale at any share, and its root; between two shares that are tried a line is drawn."""
    rng = np.random.default_rng(1)
    m = rng.normal(size=4000) * 4
    m = np.where(rng.uniform(size=m.size) < 0.93 / (1 + np.exp(-m)) + 0.035, m, -m)

    def profile(share):
        def lost(log_scale):
            return -np.sum(np.log((1 - 2 * share) * scipy.special.expit(np.exp(log_scale) * m) + share))

        return -scipy.optimize.minimize_scalar(lost, bounds=(-3, 3), method="bounded").fun

    top = scipy.optimize.minimize_scalar(lambda q: -profile(q), bounds=(0.0, 0.4), method="bounded")
    for times in (1.0, 3.0):
        root = scipy.optimize.brentq(lambda q, t=times: profile(q) + top.fun + 1.92 * t, top.x, 0.45)
        found = float(most_flips(jnp.asarray(m, jnp.float32), times))
        np.testing.assert_allclose(found, root, atol=0.002)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "times", "spread", "scale", "flipped"),
    [
        (300, 1.0, 4.0, 1.0, 0.05),
        (300, 1.0, 0.1, 30.0, 0.05),
        (300, 1.0, 20.0, 0.2, 0.05),
        (4000, 2.0, 4.0, 1.0, 0.05),
        (4000, 2.0, 4.0, 1.0, 0.3),
        (4000, 2.0, 2.0, 5.0, 0.35),
    ],
)
def test_most_flips_is_where_the_line_between_the_shares_that_are_tried_crosses(
    n, times, spread, scale, flipped, x64
):
    """SciPy's profile over the scale, up to e³ and down to e⁻³, in float64; of labels that another scale has drawn."""
    rng = np.random.default_rng(n)
    m = rng.normal(size=n) * spread
    m = np.where(rng.uniform(size=n) < (1 - 2 * flipped) * scipy.special.expit(scale * m) + flipped, m, -m)

    def profile(share):
        def lost(log_scale):
            return -np.sum(np.log((1 - 2 * share) * scipy.special.expit(np.exp(log_scale) * m) + share))

        options = {"xatol": 1e-9}
        return -scipy.optimize.minimize_scalar(lost, bounds=(-3, 3), method="bounded", options=options).fun

    values = np.array([profile(share) for share in FLIPS])
    limit = values.max() - ALLOWED_FALL * times
    last = np.flatnonzero(values >= limit)[-1]
    expected = np.interp(limit, values[last : last + 2][::-1], FLIPS[last : last + 2][::-1])
    np.testing.assert_allclose(most_flips(jnp.asarray(m), times), expected, rtol=1e-3)


def test_without_raters_labels_are_not_overdispersed():
    margins = jnp.asarray(np.random.default_rng(0).normal(3.0, 4.0, 4000), jnp.float32)
    assert most_flips(margins) == most_flips(margins, 1.0) < most_flips(margins, 2.0)


def test_labels_without_margins_allow_every_share_that_is_tried():
    np.testing.assert_allclose(most_flips(jnp.zeros(50)), FLIPS[-1], rtol=1e-6)


# (needed, weights given ε, weights whatever ε, evidence in nats, estimate where corruption is believed): [lower, upper]
# for ε = .2 and 1,280 pairs. Evidence counts from 7 + .02 · 1,280 = 32.6 nats on; honest choices explain .025.
INTERVALS = {
    "nothing": (([0.0, 0.0], [1, 0], [1, 0], [0, 0], None), (0.0, 0.0)),
    "a suspicion": (([0.0, 0.06], [0.9, 0.1], [0.9, 0.1], [0, 5], None), (0.0, 0.06)),
    "one that is not plausible": (([0.0, 0.06], [0.99, 0.01], [1, 0], [0, 5], None), (0.0, 0.0)),
    "more than the ceiling": (([0.0, 0.4], [0.9, 0.1], [0.9, 0.1], [0, 5], None), (0.0, 0.2)),
    "evidence that ε does not admit": (([0.0, 0.35], [1, 0], [0, 1], [0, 300], None), (0.325, 0.325)),
    "chance": (([0.0, 0.35], [1, 0], [0, 1], [0, 32], None), (0.0, 0.0)),
    "belief": (([0.0, 0.11], [0, 1], [0, 1], [0, 300], 0.1), (0.085, 0.2)),
    "belief in few": (([0.0, 0.02], [0, 1], [0, 1], [0, 300], 0.02), (0.0, 0.2)),
    "two explanations": (([0.15, 0.11], [0.5, 0.5], [0.5, 0.5], [290, 300], 0.13), (0.085, 0.2)),
    "less was left out": (([0.0, 0.15], [0, 1], [0, 1], [0, 300], 0.1), (0.1, 0.2)),
}


@pytest.mark.parametrize("case", INTERVALS)
def test_what_is_certain_and_what_is_possible(case):
    (needed, weights, free, evidence, share), expected = INTERVALS[case]
    n = 1280
    nothing = jnp.zeros((2, n))
    judged = Judged(
        jnp.ones((2, 3)), jnp.full((2, n), 20.0), nothing, *[jnp.zeros(2)] * 2, nothing, nothing,
        *[jnp.asarray(needed)] * 2, NoiseByMargin(jnp.ones((2, 3)), jnp.zeros((2, 3))), jnp.zeros(2, jnp.int32),
        jnp.ones(n), jnp.zeros(2),
    )  # fmt: skip
    found = Decision(
        jnp.asarray(share is not None),
        jnp.asarray(False),
        jnp.asarray(0),
        *(jnp.asarray(part, jnp.float32) for part in (weights, free)),
        jnp.ones(2, bool),
        jnp.asarray(evidence, jnp.float32),
        jnp.zeros(2),
        jnp.zeros((2, 2)),
    )
    estimate = jnp.asarray(share or 0.0)
    interval = interval_of(judged, found, estimate, jnp.asarray(0.2), 1.0, jnp.asarray(3), RobustFit())
    np.testing.assert_allclose(interval, expected, atol=4e-3)


def test_the_message_gives_percents():
    shares = [jnp.asarray(share, jnp.float32) for share in (0.105, 0.05, 0.2)]
    assert EpsilonEstimate(*shares, jnp.asarray(True)).message == (
        "About 10.5 % of the pairs are corrupt; between 5.0 and 20.0 % may be."
    )
    assert "up to 20.0 %" in EpsilonEstimate(*shares, jnp.asarray(False)).message


def test_groups_are_given_by_name():
    with pytest.raises(TypeError):
        estimate_epsilon(choices(n=50), np.zeros(50, int))


@pytest.mark.slow
def test_the_message_is_for_the_host():
    with pytest.raises(ValueError, match="outside of jit"):
        jax.eval_shape(lambda: estimate_epsilon(choices(n=50)).message)


@pytest.mark.slow
@pytest.mark.parametrize("memory", ["1GB", 1_800_000])
def test_a_source_is_estimated_as_its_pairs_are(memory):
    rng = np.random.default_rng(5)
    x, theta = rng.normal(size=(3_000, 8)), rng.normal(size=8)
    z = (x * np.where(rng.random(3_000) < 1 / (1 + np.exp(-x @ theta)), 1, -1)[:, None]).astype(np.float32)
    z[:300] = -6 * theta + 0.2 * x[:300]
    found = estimate_epsilon(ArraySource(z), streaming=Streaming(memory=memory, sample=1_500))
    expected = estimate_epsilon(Pairs.of_differences(z, np.ones(len(z))))
    assert expected.evidence
    assert found.evidence
    apart = 0.0 if memory == "1GB" else 0.003
    np.testing.assert_allclose(found.estimate, expected.estimate, atol=apart)
    np.testing.assert_allclose(found.lower, expected.lower, atol=apart)
    np.testing.assert_allclose(found.upper, expected.upper, atol=apart)


def test_streaming_of_pairs_in_memory_is_refused():
    with pytest.raises(ValueError, match="streaming is for a PairSource"):
        estimate_epsilon(choices(), streaming=Streaming())


def separable(n, seed=0):
    """Pairs of two features whose labels a reward predicts with room to spare."""
    x, theta = np.random.default_rng(seed).normal(size=(n, 2)), np.array([1.0, -0.5])
    labels = np.where(x @ theta > 0, 1, -1)
    return Pairs.of_differences(x + 0.5 * labels[:, None] * theta, labels)


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 4])
def test_labels_that_some_reward_predicts_whatever_they_say_exclude_no_share(n):
    """Of two pairs both may be corrupt: 0 % would say that none is."""
    found = estimate_epsilon(separable(n))
    assert (float(found.lower), float(found.estimate)) == (0.0, 0.0)
    assert float(found.upper) == pytest.approx(CEILING)
    assert found.message.startswith("No evidence of corruption; up to 20.0 %")


@pytest.mark.slow
def test_a_reward_that_predicts_many_labels_excludes_flips():
    """Where 64 labels agree, 1.92 nats exclude that each is flipped with a chance of 3 %; 4 of them say nothing."""
    found = estimate_epsilon(separable(64))
    assert 1.92 / 64 < float(found.upper) < 2 * 1.92 / 60
    assert "and more if they follow the reward that was found" in found.message


@pytest.mark.slow
def test_a_reward_at_the_bound_that_misses_labels_is_not_said_to_explain_every_label():
    """People are sure of differences that they notice, and guess the others: one label in twenty is missed."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(256, 2)) * rng.choice([1.0, 6.0], size=(256, 1))
    gain = x @ [1.0, -0.5]
    noticed = np.where(np.abs(gain) > 0.3, gain, rng.choice([-1.0, 1.0], 256))
    data = Pairs.of_differences(x, np.where(noticed > 0, 1, -1))
    model, found = fit_reward(data), estimate_epsilon(data)
    assert bool(found.separable)
    assert np.mean(np.asarray(model.reward(data.preferred_differences())) < 0) > 0.03
    for message in (model.message, found.message):
        assert "A reward explains every label" not in message
        assert "a reward explains every label" not in message


@pytest.mark.slow
def test_where_labels_are_separable_the_interval_ends_at_the_epsilon_that_is_told():
    ends = [fit_reward(separable(4), level).interval.tolist() for level in (0.0, 0.05)]
    assert ends == [[0.0, 0.0], [0.0, pytest.approx(0.05)]]
