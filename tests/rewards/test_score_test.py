"""`contradicting` beside the formula in NumPy; honest suspects come back, and liars do not."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from robust_rlhf_jax.rewards import examination, score_test
from robust_rlhf_jax.rewards.coordinates import unit_free
from robust_rlhf_jax.rewards.examination import examine
from robust_rlhf_jax.rewards.weighted_fit import PRIOR, information

from .worlds import THETA, K, N, draw_labels, normal_pairs, planted, rare_pairs, rows_of, sparse_pairs


@jax.jit
def contradicting(pairs, kept, suspects, t, left, overdispersion):
    floor = 0.5 * PRIOR * jnp.eye(len(t), dtype=t.dtype)
    factor = jnp.linalg.cholesky(information(pairs, kept, pairs.margins(t)) + floor)
    return score_test.contradicting(pairs, suspects, t, factor, left, overdispersion)


@jax.jit
def readmit(x, labels, proposal, budget):
    """Suspects back or not, without a search for label outliers."""
    pairs = unit_free(x, labels)
    return examine(pairs, proposal, budget, jnp.zeros(x.shape[1], x.dtype), outliers=False), pairs


def contradicted(found):
    return bool(jnp.sum(found.weights) < N - 0.5)


def numpy_contradicting(z, labels, kept, suspects, t, left, overdispersion, rank):
    """(mask, settled) by the docstring of `contradicting`: every sum anew for each part that may go."""
    chance = scipy.special.expit(labels * (z @ t))
    inform = lambda w: (z.T * (w * chance * (1 - chance))) @ z  # noqa: E731
    known, theirs = inform(kept) + 0.01 * np.eye(len(t)), inform(suspects)
    covariance = overdispersion * (theirs + theirs @ np.linalg.inv(known) @ theirs)
    scores = (suspects * (1 - chance) * labels)[:, None] * z
    share = scores @ np.linalg.solve(covariance, scores.sum(axis=0))
    listed = sorted(np.flatnonzero(suspects), key=lambda i: -share[i])
    mass = np.cumsum(suspects[listed])
    part = np.minimum((mass / mass[-1] * 40).astype(int), 39)
    tilt = theirs @ t
    level = np.sqrt(scipy.stats.chi2.ppf(0.999, rank)) + 0.25 * np.sqrt(
        tilt @ np.linalg.solve(covariance, tilt)
    )
    statistics, costs, masks = [], [], []
    for cut in range(41):
        mask = np.zeros(len(z))
        mask[[i for i, p in zip(listed, part, strict=True) if p < cut]] = 1.0
        rest = scores[mask == 0].sum(axis=0)
        statistics.append(rest @ np.linalg.solve(covariance, rest))
        costs.append(suspects @ mask)
        masks.append(mask)
    able = [cut for cut in range(41) if costs[cut] <= left + 1e-3]
    fine = [cut for cut in able if statistics[cut] <= level**2]
    cut = fine[0] if fine else min(able, key=lambda c: statistics[c])
    return masks[cut], bool(fine) or cut == 0


@pytest.mark.parametrize("overdispersion", [1.0, 2.5])
@pytest.mark.parametrize("budget", [200.0, 60.0, 3.0])
def test_the_decision_is_the_formula(budget, overdispersion, x64):
    """Half of the planted pairs among the suspects, in part with fractional weights."""
    outcomes = set()
    for seed in range(4):
        x, labels, bad = planted(*normal_pairs(seed), 0.04, 2.0)
        rng = np.random.default_rng(seed)
        suspects = np.where(rng.uniform(size=N) < 0.1, 1.0, 0.0)
        suspects[bad] = 1.0 if seed < 2 else 0.0
        suspects[200:300] *= rng.uniform(0.1, 1.0, 100)
        pairs = jax.jit(unit_free)(jnp.asarray(x), jnp.asarray(labels))
        z, t = np.asarray(pairs.z), np.linalg.solve(np.asarray(pairs.to_theta), THETA)
        arrays = (1.0 - suspects, suspects, t, budget, overdispersion)
        found = contradicting(pairs, *map(jnp.asarray, arrays))
        mask, settled = numpy_contradicting(z, labels, *arrays, K)
        np.testing.assert_array_equal(found[0], mask)
        assert found[1] == settled
        outcomes.add((mask.any(), settled))
    assert len(outcomes) >= 2, "the examples must tell the cases apart"


def test_all_suspects_go_where_the_last_of_them_still_contradict(x64):
    x, labels, bad = planted(*normal_pairs(0), 0.2, 3.0)
    pairs = jax.jit(unit_free)(jnp.asarray(x), jnp.asarray(labels))
    z, t = np.asarray(pairs.z), np.linalg.solve(np.asarray(pairs.to_theta), THETA)
    arrays = (1.0 - bad, 1.0 * bad, t, 300.0, 1.0)
    mask, _ = numpy_contradicting(z, labels, *arrays, K)
    np.testing.assert_array_equal(mask, bad)
    out, settled = contradicting(pairs, *map(jnp.asarray, arrays))
    np.testing.assert_array_equal(out, bad)
    assert settled


@pytest.mark.parametrize(("left", "gone"), [(10.0, 10), (9.5, 9), (0.0, 0)])
def test_as_many_chunks_go_as_are_left(left, gone, x64):
    """Forty liars, a fortieth of whom is one."""
    x, labels, bad = planted(*normal_pairs(0), 0.04, 3.0)
    pairs = jax.jit(unit_free)(jnp.asarray(x), jnp.asarray(labels))
    t = np.linalg.solve(np.asarray(pairs.to_theta), THETA)
    out, settled = contradicting(pairs, *map(jnp.asarray, (1.0 - bad, 1.0 * bad, t, left, 1.0)))
    assert jnp.sum(out) == gone
    assert settled == (gone == 0)


@pytest.mark.slow
@pytest.mark.parametrize("mass", [1.0, 0.004])
def test_chunks_are_of_equal_mass_whatever_the_mass(mass):
    """Of suspects alone, the largest share first."""
    rng = np.random.default_rng(0)
    share, suspects = rng.normal(size=200), np.where(np.arange(200) < 120, mass, 0.0)
    found = np.asarray(
        score_test._chunks(jnp.asarray(share, jnp.float32), jnp.asarray(suspects, jnp.float32))
    )
    place = np.argsort(np.argsort(-share[:120]))
    assert np.abs(found[:120] - (place + 0.99) * score_test.CHUNKS / 120).max() < 1.01
    assert (np.bincount(found[:120], minlength=score_test.CHUNKS) <= 4).all()


@pytest.mark.slow
def test_where_all_are_suspects_the_last_counts_too():
    """Nine of mass 1 and, of the least share, one of 31."""
    found = score_test._chunks(10.0 - jnp.arange(10.0), jnp.ones(10).at[9].set(31.0))
    np.testing.assert_array_equal(found, [1, 2, 3, 4, 5, 6, 7, 8, 9, score_test.CHUNKS - 1])


@pytest.mark.slow
def test_an_axis_that_no_row_shows_changes_no_decision(x64):
    x, labels, _ = planted(*normal_pairs(0), 0.04, 2.0)
    suspects = np.where(np.arange(N) < 100, 1.0, 0.0)
    decisions = []
    for z in (x, np.insert(x, 3, 0.0, axis=1)):
        pairs = rows_of(z, labels, jnp.float64)
        pairs = eqx.tree_at(lambda p: p.rank, pairs, jnp.asarray(K))
        t = jnp.asarray(THETA if z is x else np.insert(THETA, 3, 0.0))
        given = map(jnp.asarray, (1.0 - suspects, suspects, t, 200.0, 1.0))
        decisions.append(contradicting(pairs, *given))
    assert 0 < np.sum(decisions[0][0]) < 100
    np.testing.assert_array_equal(decisions[0][0], decisions[1][0])
    assert decisions[0][1] == decisions[1][1]


def readmitted_by(decide, monkeypatch, suspects=20):
    """`examine` with a stand-in for the score test: the pairs that stay, of whom the first were suspects."""

    def contradicting(pairs, suspects, t, factor, left, overdispersion):
        assert overdispersion == 1.0
        return decide(suspects)

    monkeypatch.setattr(examination, "contradicting", contradicting)
    proposal = jnp.where(jnp.arange(60) < suspects, 0.0, 1.0)
    rng = np.random.default_rng(0)
    z = rng.normal(size=(60, 2))
    pairs = rows_of(z, draw_labels(rng, z, np.ones(2)))
    return np.asarray(examine(pairs, proposal, jnp.float32(30.0), jnp.zeros(2), outliers=False).weights)


@pytest.mark.slow
def test_suspects_come_back_after_the_last_round(monkeypatch):
    """A test that lets one go in each round, and never ends."""
    kept = readmitted_by(lambda left: (jax.nn.one_hot(jnp.argmax(left), 60), jnp.asarray(False)), monkeypatch)
    np.testing.assert_array_equal(kept, np.arange(60) >= score_test.ROUNDS)


@pytest.mark.slow
def test_a_single_suspect_is_tested_too(monkeypatch):
    for out in (0.0, 1.0):
        kept = readmitted_by(lambda left, out=out: (out * left, jnp.asarray(True)), monkeypatch, suspects=1)
        np.testing.assert_array_equal(kept, np.where(np.arange(60) < 1, 1.0 - out, 1.0))


@pytest.mark.parametrize("draw", [normal_pairs, rare_pairs, sparse_pairs])
def test_honest_suspects_come_back(draw):
    """Long rows, one half, those that show the last feature: 60 tests of chance 1/1000 at most, 5 standard errors."""
    count = 0
    for seed in range(20):
        x, labels = draw(seed)
        rng = np.random.default_rng(seed)
        length = np.linalg.norm(x, axis=1)
        for suspects in (length > np.quantile(length, 0.8), rng.uniform(size=N) < 0.5, np.abs(x[:, 5]) > 0.9):
            arrays = (x, labels, 1.0 - suspects, 0.4 * N)
            found, _ = readmit(*(jnp.asarray(a, jnp.float32) for a in arrays))
            count += contradicted(found)
            if not contradicted(found):
                np.testing.assert_array_equal(found.weights, 1.0)
    assert count <= 60e-3 + 5 * np.sqrt(60e-3)


@given(st.integers(0, 2**16), st.floats(1.5, 30.0))
def test_planted_suspects_stay_out_and_others_return(seed, length):
    x, labels, bad = planted(*normal_pairs(seed % 7), 0.1, length)
    suspects = bad | (np.random.default_rng(seed).uniform(size=N) < 0.05)
    arrays = (x, labels, 1.0 - suspects, 0.2 * N)
    found, _ = readmit(*(jnp.asarray(a, jnp.float32) for a in arrays))
    assert contradicted(found)
    kept = np.asarray(found.weights)
    assert kept[bad].mean() < 0.05
    assert kept[~bad].mean() > 0.99
    np.testing.assert_array_equal(kept[~suspects], 1.0)


def test_no_more_than_the_budget_goes():
    x, labels, bad = planted(*normal_pairs(0), 0.2, 3.0)
    for budget in (0.0, 30.0, 100.0):
        arrays = (x, labels, 1.0 - bad, budget)
        found, _ = readmit(*(jnp.asarray(a, jnp.float32) for a in arrays))
        gone = N - float(jnp.sum(found.weights))
        assert gone <= budget + 0.01
        assert contradicted(found) == (gone > 0.5)


def test_what_suspects_alone_cover_is_never_contradicted():
    """Whatever their labels say of it: here all the opposite of what θ would have them say."""
    x, labels = rare_pairs(0)
    suspects = x[:, 5] != 0
    x[:, :5] *= ~suspects[:, None]
    for sign in (1.0, -1.0):
        labels[suspects] = np.where(np.arange(suspects.sum()) % 4 == 0, -1, 1) * sign * x[suspects, 5]
        arrays = (x, labels, 1.0 - suspects, 0.4 * N)
        found, pairs = readmit(*(jnp.asarray(a, jnp.float32) for a in arrays))
        assert not contradicted(found)
        np.testing.assert_array_equal(found.weights, 1.0)
        theta = np.asarray(pairs.to_theta @ found.t)
        np.testing.assert_allclose(theta[5], sign * np.log(3), rtol=0.1)


def test_nobody_suspected_is_the_plain_fit():
    x, labels = normal_pairs(0)
    found, _ = readmit(*(jnp.asarray(a, jnp.float32) for a in (x, labels, np.ones(N), 100.0)))
    np.testing.assert_array_equal(found.weights, 1.0)
