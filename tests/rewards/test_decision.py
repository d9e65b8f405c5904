"""How explanations are weighed, which are admissible, and when there is corruption."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from robust_rlhf_jax.rewards.config import RobustFit
from robust_rlhf_jax.rewards.contamination import NoiseByMargin
from robust_rlhf_jax.rewards.decision import (
    AlikeLabels,
    Judged,
    apart,
    bootstrap_weights,
    decide,
    disagreement,
    standing,
)
from robust_rlhf_jax.rewards.slips import Slips

N = 400
weigh = jax.jit(bootstrap_weights)


@jax.jit
def decided(judged, epsilon, overdispersion=1.0):
    return decide(judged, epsilon, overdispersion, RobustFit())


def likelihoods(leads, noise=0.5, seed=0):
    """[E, N]: row 0, and rows that are ahead of it by `leads` nats in all."""
    rng = np.random.default_rng(seed)
    base = -np.abs(rng.normal(size=N))
    shift = rng.normal(size=(len(leads), N)) * noise
    shift -= shift.mean(axis=1, keepdims=True)
    return np.concatenate([base[None], base + shift + np.asarray(leads)[:, None] / N])


@pytest.mark.parametrize("leads", [[0.0, 0.0], [3.0, -4.0], [30.0, 10.0], [400.0, 0.0]])
def test_weights_are_the_mean_of_softmaxes_over_the_bayesian_bootstrap(leads):
    """Dirichlet weights of the pairs (Rubin 1981), drawn in NumPy."""
    rows = likelihoods(leads)
    rng = np.random.default_rng(1)
    draws = rng.dirichlet(np.ones(N), 4000) @ rows.T * N
    expected = scipy.special.softmax(draws, axis=1).mean(axis=0)
    found = weigh(jnp.asarray(rows, jnp.float32), jnp.ones(3, bool), 1.0, jnp.eye(3, dtype=bool), jnp.ones(N))
    # Five standard errors of a mean of 256 draws in [0, 1].
    np.testing.assert_allclose(found, expected, atol=0.15)


def test_overdispersed_labels_decide_less():
    rows = jnp.asarray(likelihoods([20.0]), jnp.float32)
    alone, crowd = (
        float(weigh(rows, jnp.ones(2, bool), times, jnp.eye(2, dtype=bool), jnp.ones(N))[1])
        for times in (1.0, 20.0)
    )
    assert alone > crowd + 0.1


def test_what_several_candidates_find_counts_once():
    """Rows 1 and 2 are the same explanation: together they weigh what row 1 weighs alone."""
    rows = likelihoods([20.0, 18.0])
    twice = np.concatenate([rows[:2], rows[1:]])
    same = np.eye(4, dtype=bool)
    same[1, 2] = same[2, 1] = True
    alone = weigh(jnp.asarray(rows, jnp.float32), jnp.ones(3, bool), 1.0, jnp.eye(3, dtype=bool), jnp.ones(N))
    found = weigh(jnp.asarray(twice, jnp.float32), jnp.ones(4, bool), 1.0, jnp.asarray(same), jnp.ones(N))
    np.testing.assert_allclose(found[1] + found[2], alone[1], atol=0.1)
    # What is not eligible is no copy.
    eligible = jnp.asarray([True, True, False, True])
    np.testing.assert_allclose(
        weigh(jnp.asarray(twice, jnp.float32), eligible, 1.0, jnp.asarray(same), jnp.ones(N))[
            jnp.asarray([0, 1, 3])
        ],
        alone,
        atol=0.1,
    )


@pytest.mark.parametrize(
    ("prefers", "accuses", "expected"), [(0.2, 0.0, False), (0.0, 0.2, False), (0.02, 0.02, True)]
)
def test_explanations_are_alike_that_prefer_and_accuse_alike(prefers, accuses, expected):
    judged = explained(10.0, 0.1, apart=prefers)
    judged = judged._replace(
        lies=jnp.zeros((2, N)).at[1].set(jnp.where(jnp.arange(N) < accuses * N, 1.0, 0.0))
    )
    np.testing.assert_array_equal(apart(judged) < RobustFit().plausible, np.eye(2, dtype=bool) | expected)


def test_disagreement_is_the_share_of_opposite_signs():
    """In NumPy, pair by pair of rows; pairs that say nothing (margin 0) are disagreed about by nobody."""
    rows = np.random.default_rng(0).normal(size=(4, 50))
    rows[:, :20] = 0.0
    rows[1] = rows[0]
    expected = [[np.mean(one * other < 0) for other in rows] for one in rows]
    np.testing.assert_allclose(disagreement(jnp.asarray(rows), 50), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("pairs", "belief", "likeliest"),
    [
        ([], [0.3, 0.15, 0.35, 0.2], 2),
        ([(0, 3)], [0.5, 0.15, 0.35, 0.5], 0),
        ([(0, 1), (1, 3), (0, 3)], [0.65, 0.65, 0.35, 0.65], 0),
        # Row 1 has most around it, and row 2 most of that: row 3, which differs from it, has no more than its own.
        ([(1, 2), (1, 3)], [0.3, 0.7, 0.5, 0.2], 2),
    ],
)
def test_belief_in_copies_of_one_explanation_is_not_split(pairs, belief, likeliest):
    same = np.eye(4, dtype=bool)
    for i, j in pairs:
        same[i, j] = same[j, i] = True
    probability = jnp.asarray([0.3, 0.15, 0.35, 0.2])
    found = standing(probability, jnp.asarray(same))
    np.testing.assert_allclose(found.belief, belief, atol=1e-6)
    assert int(found.likeliest) == likeliest
    differ = ~same[likeliest]
    assert np.all(found.belief[likeliest] + np.asarray(found.belief)[differ] < 1 + 1e-6)
    order = np.asarray([2, 0, 3, 1])
    again = standing(probability[order], jnp.asarray(same[np.ix_(order, order)]))
    assert order[int(again.likeliest)] == likeliest


def test_what_is_not_eligible_or_not_finite_has_no_weight():
    rows = likelihoods([50.0, 40.0, 30.0])
    rows[2] = np.nan
    found = np.asarray(
        weigh(
            jnp.asarray(rows, jnp.float32),
            jnp.asarray([True, False, True, True]),
            1.0,
            jnp.eye(4, dtype=bool),
            jnp.ones(N),
        )
    )
    np.testing.assert_allclose(found.sum(), 1.0, rtol=1e-5)
    assert found[1] == found[2] == 0
    assert found[3] > 0.5


def explained(lead, needed, apart=0.2, noise=0.1):
    """Two explanations: the plain one, and one `lead` nats ahead of it that disagrees on the share `apart`."""
    rows = jnp.asarray(likelihoods([lead], noise), jnp.float32)
    margins = jnp.ones((2, N)) * jnp.where(jnp.arange(N) < apart * N, jnp.asarray([[1.0], [-1.0]]), 1.0)
    nothing = jnp.zeros((2, N))
    return Judged(
        jnp.ones((2, 3)), margins, rows, jnp.full(2, jnp.sum(rows[0])), jnp.sum(rows, axis=1),
        nothing, nothing,
        *[jnp.asarray([0.0, needed])] * 2, NoiseByMargin(jnp.ones((2, 3)), jnp.zeros((2, 3))), jnp.zeros(2, jnp.int32),
        jnp.ones(N), jnp.zeros(2),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("lead", "needed", "apart", "epsilon", "corrupt"),
    [
        (40.0, 0.1, 0.2, 0.1, True),
        (40.0, 0.1, 0.2, 0.05, False),
        (40.0, 0.12, 0.2, 0.1, True),
        (40.0, 0.13, 0.2, 0.1, False),
        (6.0, 0.1, 0.2, 0.1, False),
        (7.9, 0.1, 0.0, 0.1, False),
        (40.0, 0.1, 0.0, 0.1, True),
    ],
    ids=[
        "evidence",
        "more than ε",
        "an estimate",
        "too much",
        "chance",
        "nothing at stake",
        "beyond nonlinearity",
    ],
)
def test_when_there_is_corruption(lead, needed, apart, epsilon, corrupt):
    found = decided(explained(lead, needed, apart), epsilon)
    assert bool(found.corrupt) == corrupt
    np.testing.assert_allclose(found.evidence, [0.0, lead], atol=0.05)
    assert bool(found.admissible[0])
    if lead > 30:
        assert found.free[1] > 0.9


@pytest.mark.parametrize(("needed", "admissible"), [(0.149, True), (0.151, False)])
def test_a_reward_that_needs_more_than_honest_choices_seem_to_is_not_admissible(needed, admissible):
    """ε = .1, and twice the habit of .025 beyond it, however few pairs the reward convicts."""
    judged = explained(40.0, 0.1)._replace(needed=jnp.asarray([0.0, needed]))
    found = decided(judged, 0.1)
    assert bool(found.admissible[1]) == bool(found.corrupt) == admissible


@pytest.mark.parametrize(
    ("plain", "other", "corrupt"), [(0.3, 0.3, False), (0.3, 0.1, True), (0.1, 0.3, True)]
)
def test_epsilon_is_a_ceiling_for_the_plain_fit_too(plain, other, corrupt):
    """A plain fit that convicts more than ε is believed only if every reward does, and then no pair is left out."""
    convicted = jnp.asarray([plain, other])
    judged = explained(40.0, 0.1)._replace(needed=convicted, convicted=convicted)
    ahead = judged._replace(dispersed=judged.dispersed.at[0].add(100.0))
    found = decided(ahead, 0.1)
    assert bool(found.corrupt) == corrupt
    assert bool(found.admissible[0]) == (plain <= 0.1 or other > 0.1)
    assert bool(found.admissible[1]) == (other <= 0.1)


def no_slips():
    """Of two explanations that slips make no likelier."""
    return Slips(jnp.full(2, -jnp.inf), jnp.ones(2), jnp.ones(2))


def test_accuracy_at_stake():
    """P(right) − P(wrong) where they disagree: 2σ(1) − 1 on a fifth of the pairs."""
    found = decided(explained(40.0, 0.1), 0.1)
    np.testing.assert_allclose(found.at_stake, [0.0, 0.2 * (2 * scipy.special.expit(1.0) - 1)], rtol=1e-5)


@pytest.mark.parametrize(
    ("corrupted", "honest", "recurs", "left"),
    [
        (0.0, 0.0, 1.0, 40.0), (0.0, 35.0, 1.0, 5.0), (0.0, 35.0, 0.0, 40.0), (20.0, 35.0, 1.0, 25.0),
        (20.0, 0.0, 1.0, 40.0),
    ],
    ids=["independent", "alike", "what is accused does not recur", "alike among the others, too", "never more"],
)  # fmt: skip
def test_a_quality_that_features_miss_takes_from_the_evidence(corrupted, honest, recurs, left):
    judged = explained(40.0, 0.1)
    nats = judged.dispersed + jnp.asarray([0.0, corrupted])
    given = [jnp.asarray(pair, jnp.float32) for pair in ([honest, 0.0], [1.0, recurs])]
    judged = judged._replace(alike=AlikeLabels(nats, *given, no_slips()))
    found = decided(judged, 0.1)
    np.testing.assert_allclose(found.evidence, [-honest, left], atol=0.05)
    assert bool(found.corrupt) == (left > 7.0)
    # Raters are alike, or comparisons are: not both.
    found = decided(judged, 0.1, 2.0)
    np.testing.assert_allclose(found.evidence[1], min(40.0 / 2, left), atol=0.05)


def test_the_lead_is_one_of_the_explanation_that_is_believed():
    """The plain fit with some corruption is 20 nats ahead, the other one, which is believed, is 50 behind."""
    judged = explained(40.0, 0.1)
    nats = jnp.max(judged.honest) + jnp.asarray([20.0, -50.0])
    judged = judged._replace(alike=AlikeLabels(nats, jnp.zeros(2), jnp.zeros(2), no_slips()))
    found = decided(judged, 0.1)
    np.testing.assert_allclose(found.evidence, [20.0, -50.0], atol=0.05)
    assert found.weights[1] > 0.99
    assert not found.corrupt


@pytest.mark.parametrize(("slipped", "left"), [(-10.0, 40.0), (10.0, 30.0), (35.0, 5.0)])
def test_what_slips_explain_as_well_is_no_evidence(slipped, left):
    """Nats by which the second reward explains honest labels better where some are slips."""
    judged = explained(40.0, 0.1)
    slips = no_slips()._replace(value=judged.honest + jnp.asarray([-20.0, slipped]))
    # Slips and a quality that features miss explain the same labels: the better one counts, not their sum.
    for missed in (0.0, 20.0):
        given = [jnp.asarray(pair, jnp.float32) for pair in ([missed, 0.0], [1.0, 1.0])]
        found = decided(judged._replace(alike=AlikeLabels(judged.dispersed, *given, slips)), 0.1)
        np.testing.assert_allclose(found.evidence[1], min(left, 40.0 - missed), atol=0.05)
        assert bool(found.corrupt) == (left > 7.0)
        assert bool(found.slipped) != bool(found.corrupt)
        assert found.slips == 1


def test_nothing_slipped_where_nothing_is_found():
    """Slips alone are no reason for another reward than the plain one."""
    judged = explained(6.0, 0.1)
    slips = no_slips()._replace(value=judged.honest + 50.0)
    judged = judged._replace(alike=AlikeLabels(judged.dispersed, jnp.zeros(2), jnp.ones(2), slips))
    assert not decided(judged, 0.1).slipped
