"""The verdict's parts beside loops, and the verdict on explanations made by hand."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from hypothesis import given
from hypothesis import strategies as st

from robust_rlhf_jax.rewards import selection
from robust_rlhf_jax.rewards.coordinates import unit_free
from robust_rlhf_jax.rewards.explanations import Explanations

from .worlds import THETA, K, N, normal_pairs, planted, rows_of

n, E = 90, 4
neutral_rows = jax.jit(selection._neutral_rows)
needed_corruption = jax.jit(selection.needed_corruption)
judge = eqx.filter_jit(selection.judge)


def ranks(values):
    return np.argsort(np.argsort(values, kind="stable"), kind="stable")


@given(st.integers(0, 2**16), st.sampled_from([0.5, 0.6, 0.9, 1.0]))
def test_neutral_rows_are_those_of_which_the_surest_is_least_sure(seed, share):
    sure = np.stack([ranks(row) for row in np.random.default_rng(seed).normal(size=(E, n))])
    surest = [max(row[i] for row in sure) for i in range(n)]
    limit = np.quantile(surest, share)
    expected = [1.0 if s <= limit else 0.0 for s in surest]
    np.testing.assert_array_equal(neutral_rows(sure, np.float32(share)), expected)
    assert np.mean(expected) >= share - 1 / n


@given(st.integers(0, 2**16), st.floats(0.1, 4.0))
def test_needed_corruption_cell_by_cell(seed, size):
    rng = np.random.default_rng(seed)
    x, labels = rng.normal(size=(n, 3)), rng.choice([-1.0, 1.0], n)
    pairs = jax.jit(unit_free)(*(jnp.asarray(a, jnp.float32) for a in (x, labels)))
    predicted = (size * rng.normal(size=(E, 3)) @ x.T).astype(np.float32)
    places = np.stack([ranks(row) for row in predicted])
    cells = places * 6 // n
    for i, found in enumerate(needed_corruption(pairs, predicted, places)):
        chance = scipy.special.expit(predicted[i].astype(float))
        most = 0.0
        for j in range(E):
            total = 0.0
            for a in range(6):
                for b in range(6):
                    cell = (cells[i] == a) & (cells[j] == b)
                    excess = np.sum((labels[cell] > 0) - chance[cell])
                    spread = np.sqrt(np.sum(chance[cell] * (1 - chance[cell])))
                    total += max(abs(excess) - spread, 0.0)
            most = max(most, total / n)
        np.testing.assert_allclose(found, most, rtol=1e-4, atol=1e-5)


def numpy_judgement(z, labels, t, weights, by_evidence, far, epsilon):
    """The docstrings of `selection` in float64; the corruption needed is that of `needed_corruption`."""
    predicted = t @ z.T
    margins, pairs_in_all = labels * predicted, len(labels)
    surest = np.max([ranks(np.abs(row)) for row in predicted], axis=0)
    share = min(1 - 2 * epsilon, selection.NEUTRAL)
    neutral = surest <= np.sort(surest)[int(np.floor(share * (pairs_in_all - 1)))]
    chance = [scipy.special.expit(scale * margins) for scale in selection.SCALES]
    fair = np.stack([np.log((1 - epsilon) * p + epsilon / 2) for p in chance])[:, :, neutral]
    best = fair[np.argmax(fair.mean(axis=2), axis=0), np.arange(len(t))]
    error = np.std(best - best[0], axis=1) / np.sqrt(neutral.sum())
    places = np.stack([ranks(row) for row in predicted])
    needed = np.asarray(needed_corruption(rows_of(z, labels, jnp.float64), jnp.asarray(predicted), places))
    scores = best.mean(axis=1) - selection.PRICE * needed
    most = selection.ADMISSIBLE * epsilon + selection.SLACK
    admissible = (needed <= max(most, 1.05 * needed.min() + 0.005)) & (1 - weights.mean(axis=1) <= most)
    against = predicted[0] * predicted < 0
    lost = np.where(against, np.abs(2 * scipy.special.expit(predicted) - 1), 0.0)
    at_stake = np.sum(weights * lost, axis=1) / weights.sum(axis=1)
    gone = 1 - weights
    absurd = gone @ far > selection.ABSURD * gone.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        lead = np.where(scores == scores[0], 0.0, (scores - scores[0]) / error)
    better = (lead > selection.AHEAD) & (at_stake > selection.MATERIAL) | (lead > selection.CERTAIN) & absurd
    eligible = admissible & (better if admissible[0] else np.arange(len(t)) > 0)
    standing = np.where(eligible, scores, -np.inf)
    chosen = np.flatnonzero(standing >= standing.max() - selection.ALIKE)[0] if eligible.any() else 0
    near = admissible & by_evidence & (scores >= scores[chosen] - selection.CERTAIN * error)
    return chosen, near | (np.arange(len(t)) == chosen), scores, needed, admissible, at_stake, lead


@pytest.mark.slow
def test_the_verdict_is_that_of_the_definition(x64):
    """On mixtures of honest pairs, planted pairs and flips, by rewards between the truth and what the liars say."""
    seen = set()
    for seed in range(60):
        rng = np.random.default_rng(seed)
        epsilon = rng.choice([0.02, 0.05, 0.1, 0.2])
        z, labels, bad = planted(
            *normal_pairs(seed, 400), rng.choice([0.0, 0.05, 0.2]), rng.choice([0.5, 2.0])
        )
        labels[rng.uniform(size=400) < rng.choice([0.0, 0.1])] *= -1
        t = rng.choice([0.3, 1.0, 1.5], (E, 1)) * THETA + rng.choice([0.0, 0.2, 1.0], (E, 1)) * rng.normal(
            size=(E, K)
        )
        t[rng.integers(E)] = 0.0 if seed % 4 == 0 else THETA
        weights = np.stack([np.ones(400), 1.0 - bad, *(rng.uniform(size=(2, 400)) < 1 - epsilon)])
        by_evidence, far = (
            rng.uniform(size=E) < 0.7,
            rng.uniform(size=400) < rng.choice([0.0, 0.04, 0.06, 0.2]),
        )
        pairs = eqx.tree_at(lambda p: p.far, rows_of(z, labels, jnp.float64), jnp.asarray(far))
        claims = Explanations(*map(jnp.asarray, (t, weights, by_evidence)), jnp.zeros((K, K)))
        found = judge(pairs, claims, jnp.asarray(epsilon))
        expected = numpy_judgement(z, labels, t, weights, by_evidence, far, epsilon)
        assert found.chosen == expected[0]
        np.testing.assert_array_equal(found.plausible, expected[1])
        np.testing.assert_array_equal(found.admissible, expected[4])
        for name, value in zip(
            ("scores", "needed", "at_stake", "lead"), (*expected[2:4], *expected[5:]), strict=True
        ):
            np.testing.assert_allclose(getattr(found, name), value, rtol=1e-8, atol=1e-10)
        seen.add((int(found.chosen), bool(found.admissible[0]), int(found.plausible.sum())))
    assert {chosen for chosen, _, _ in seen} == set(range(E))
    assert {plain for _, plain, _ in seen} == {True, False}
    assert {count for *_, count in seen} >= {1, 2, 3}


def verdict(x, labels, thetas, weights, by_evidence, epsilon):
    pairs = jax.jit(unit_free)(*(jnp.asarray(a, jnp.float32) for a in (x, labels)))
    t = np.linalg.solve(np.asarray(pairs.to_theta, float), np.asarray(thetas, float).T).T
    claims = Explanations(
        jnp.asarray(t, jnp.float32),
        jnp.asarray(weights, jnp.float32),
        jnp.asarray(by_evidence),
        jnp.zeros((K, K)),
    )
    return judge(pairs, claims, jnp.asarray(epsilon, jnp.float32))


def test_an_equal_does_not_unseat_the_plain_one():
    x, labels = normal_pairs(0)
    found = verdict(x, labels, [THETA] * 3, np.ones((3, N)), [True] * 3, 0.1)
    assert found.chosen == 0
    np.testing.assert_allclose(found.at_stake, 0.0)
    np.testing.assert_allclose(found.scores, found.scores[0], rtol=1e-5)
    assert found.plausible.all()


def test_what_must_hold_too_much_for_corrupt_is_not_admissible():
    """−θ★ needs nearly all pairs to be lies; 0 needs fewer, and has nothing to say."""
    x, labels = normal_pairs(0)
    found = verdict(x, labels, [THETA, -THETA, np.zeros(K)], np.ones((3, N)), [True] * 3, 0.1)
    assert found.chosen == 0
    assert found.admissible.tolist() == [True, False, False]
    assert found.needed[1] > found.needed[2] > found.needed[0]
    assert found.at_stake[1] > 0.3


def test_the_truth_beats_a_fit_that_liars_bought():
    """Planted pairs turn the first explanation round; the second leaves them out."""
    x, labels, bad = planted(*normal_pairs(0), 0.2, 3.0)
    weights = np.stack([np.ones(N), 1.0 - bad])
    found = verdict(x, labels, [-0.3 * THETA, THETA], weights, [True, True], 0.2)
    assert found.chosen == 1
    assert found.admissible[1]
    np.testing.assert_allclose(found.needed[1], 0.2, atol=0.03)


def test_who_leaves_out_more_than_the_ceiling_is_not_heard():
    x, labels, bad = planted(*normal_pairs(0), 0.2, 3.0)
    weights = np.stack([np.ones(N), 1.0 - bad])
    found = verdict(x, labels, [-0.3 * THETA, THETA], weights, [True, True], 0.05)
    assert not found.admissible[1]
    assert found.chosen == 0


@pytest.mark.parametrize("evidence", [True, False])
def test_a_quota_is_no_evidence(evidence):
    """A fit that gave up pairs unasked is plausible only where it is chosen."""
    x, labels = normal_pairs(0)
    found = verdict(x, labels, [THETA, THETA], np.ones((2, N)), [True, evidence], 0.1)
    assert found.plausible.tolist() == [True, evidence]


def test_what_the_data_refute_is_not_plausible():
    """A reward that is nearly the believed one stays plausible; one whose labels speak against it does not."""
    x, labels = normal_pairs(0)
    orthogonal = np.roll(THETA, 1) * np.where(np.arange(K) % 2, 1.0, -1.0)
    close = THETA + 0.01 * orthogonal
    found = verdict(x, labels, [THETA, close, 0.3 * THETA + orthogonal], np.ones((3, N)), [True] * 3, 0.45)
    assert found.chosen == 0
    lower = float(found.scores[0] - found.scores[2])
    assert 0.02 < lower < 1.0
    assert found.plausible.tolist() == [True, True, False]


@pytest.mark.parametrize(("left_out", "chosen"), [("ordinary", 0), ("absurd", 1)])
def test_with_nothing_at_stake_certainty_decides_only_against_absurd_rows(left_out, chosen):
    """The plain fit is a little off the truth: it loses likelihood for certain, but hardly a decision."""
    x, labels = normal_pairs(0, 4 * N)
    x[:5] *= 1e6
    off = THETA + 0.15 * np.roll(THETA, 1) * np.where(np.arange(K) % 2, 1.0, -1.0)
    weights = np.ones((2, 4 * N))
    weights[1, {"absurd": slice(5), "ordinary": slice(5, 10)}[left_out]] = 0.0
    found = verdict(x, labels, [off, THETA], weights, [True] * 2, 0.1)
    assert found.admissible.all()
    assert found.lead[1] > 2
    assert found.at_stake[1] < 0.01
    assert found.chosen == chosen


def test_a_lead_is_in_standard_errors():
    """The same pairs four times over: the error of a difference in score halves."""
    x, labels = normal_pairs(0)
    off = THETA + 0.4 * np.roll(THETA, 1) * np.where(np.arange(K) % 2, 1.0, -1.0)

    def error(times):
        found = verdict(
            np.tile(x, (times, 1)),
            np.tile(labels, times),
            [off, THETA],
            np.ones((2, times * N)),
            [True] * 2,
            0.1,
        )
        return (found.scores[1] - found.scores[0]) / found.lead[1]

    assert 0 < error(1) < 0.1
    np.testing.assert_allclose(error(1), 2.0 * error(4), rtol=0.05)
