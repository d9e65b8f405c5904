"""Suspicion is the posterior of a lie, higher in a crowd of contradictions, and never rounds to certainty."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.rewards.coordinates import unit_free
from robust_rlhf_jax.rewards.suspicion import LEAST, SUREST, _lengths, crowd_odds, suspicion_of

from .worlds import rows_of

RNG = np.random.default_rng(1)
X = RNG.normal(size=(1200, 3)).astype(np.float32)
T = np.array([1.0, -1.0, 0.5])
LABELS = np.where(RNG.uniform(size=1200) < 1 / (1 + np.exp(-X @ T)), 1.0, -1.0).astype(np.float32)


def suspicion(x, labels, weights=None, epsilon=0.1):
    pairs = unit_free(jnp.asarray(x), jnp.asarray(labels))
    t = np.linalg.lstsq(np.asarray(pairs.to_theta), T, rcond=None)[0].astype(np.float32)
    weights = jnp.ones(len(x)) if weights is None else weights
    return np.asarray(suspicion_of(pairs, jnp.asarray(t), weights, epsilon))


@pytest.mark.slow
def test_on_honest_labels_it_is_the_posterior_of_a_lie():
    chance = 1 / (1 + np.exp(-LABELS * (X @ T)))
    np.testing.assert_allclose(suspicion(X, LABELS), 0.05 / (0.9 * chance + 0.05), rtol=1e-3)


@pytest.mark.parametrize("epsilon", [0.0, 0.004])
def test_where_nothing_is_amiss_labels_are_ranked_as_at_one_in_a_hundred(epsilon):
    chance = 1 / (1 + np.exp(-LABELS * (X @ T)))
    np.testing.assert_allclose(
        suspicion(X, LABELS, epsilon=epsilon), 0.005 / (0.99 * chance + 0.005), rtol=1e-3
    )


def test_honest_contradictions_are_no_crowd():
    margins = jnp.asarray(LABELS * (X @ T))
    np.testing.assert_array_equal(crowd_odds(margins, jnp.linalg.norm(X, axis=1)), 0)


def test_a_crowd_is_more_suspicious_than_a_surer_contradiction():
    x, labels = X.copy(), LABELS.copy()
    x[:80], labels[:80] = -1.5 * T + 0.05 * RNG.normal(size=(80, 3)), 1.0
    scores = suspicion(x, labels)
    assert scores[:80].min() > np.sort(scores[80:])[-5]
    assert scores.max() < 1


def test_pairs_left_out_are_in_the_upper_half():
    weights = jnp.ones(1200).at[:10].set(0.0)
    scores = suspicion(X, LABELS, weights)
    assert (scores[:10] >= 0.5).all()


@pytest.mark.parametrize(("count", "odds"), [(3, 0.0), (4, 8.0)])
def test_three_sure_contradictions_are_no_crowd_and_four_are(count, odds):
    """More than 3√(v + 1), where next to none are expected."""
    margins = np.linspace(5.0, 9.0, 1600)
    margins[1590 : 1590 + count] *= -1
    found = np.asarray(crowd_odds(jnp.asarray(margins, jnp.float32), jnp.ones(1600)))
    np.testing.assert_array_equal(found, np.where(margins < 0, odds, 0.0))


def test_lengths_are_those_by_the_pairs_that_count(x64):
    """Mahalanobis', in float64: rows far out that were left out have no say in what is far."""
    x = X.astype(float)
    x[:50] *= 8.0
    weights = np.where(np.arange(1200) < 50, 0.0, np.random.default_rng(2).uniform(0.5, 1.0, 1200))
    found = _lengths(unit_free(jnp.asarray(x), jnp.asarray(LABELS, float)), jnp.asarray(weights))
    moment = (x.T * weights) @ x / weights.sum()
    expected = np.sqrt(np.sum(x * np.linalg.solve(moment, x.T).T, axis=1))
    np.testing.assert_allclose(found, expected, rtol=1e-3)


@pytest.mark.slow
def test_beyond_the_surest_a_margin_counts_by_a_thousandth(x64):
    """ε/2 against (1 − ε)σ(−c); no three contradictions are a crowd."""
    margins, epsilon = np.array([-5.5, -6.5, -40.0, 5.5, 7.0, -2000.0]), 0.2
    contradiction = np.minimum(-margins, SUREST) + 1e-3 * np.clip(-margins - SUREST, 0.0, 1e3)
    odds = np.log(0.1 / 0.8) + np.logaddexp(0.0, contradiction)
    pairs = rows_of(np.ones((6, 1)), dtype=jnp.float64)
    pairs = eqx.tree_at(lambda p: p.z, pairs, jnp.asarray(margins)[:, None])
    found = np.asarray(suspicion_of(pairs, jnp.ones(1), jnp.ones(6), epsilon))
    np.testing.assert_allclose(np.log(found) - np.log1p(-found), odds, rtol=1e-7)


@pytest.mark.slow
def test_a_pair_that_counts_in_part_is_as_suspicious_as_its_parts(x64):
    """What counts of it by its label, what was left out in the upper half."""
    margins = np.linspace(-3.0, 3.0, 20)
    pairs, all_count = rows_of(margins[:, None], dtype=jnp.float64), jnp.ones(20)
    in_full = np.asarray(suspicion_of(pairs, jnp.ones(1), all_count, 0.1))
    weights = np.linspace(0.0, 1.0, 20)
    found = suspicion_of(pairs, jnp.ones(1), jnp.asarray(weights), 0.1)
    np.testing.assert_allclose(found, weights * in_full + (1 - weights) * (0.5 + 0.5 * in_full), rtol=1e-12)


@pytest.mark.slow
def test_an_axis_that_no_row_shows_has_no_part_in_lengths(x64):
    rng = np.random.default_rng(3)
    z = rng.normal(size=(500, 3))
    flat = np.concatenate([z[:, :2], np.zeros((500, 1)), z[:, 2:]], axis=1)
    here, there = (_lengths(rows_of(rows, dtype=jnp.float64), jnp.ones(500)) for rows in (z, flat))
    np.testing.assert_allclose(there, here, rtol=1e-12)
    moment = z.T @ z / 500 + LEAST * np.eye(3)
    np.testing.assert_allclose(here, np.sqrt(np.sum(z * np.linalg.solve(moment, z.T).T, axis=1)), rtol=1e-10)


def test_cells_and_odds_are_those_of_the_definition():
    """In NumPy, cell by cell."""
    bins, rng = 8, np.random.default_rng(4)
    margins, lengths = rng.normal(1.0, 1.5, 1600), rng.uniform(0.5, 2.0, 1600)
    margins[:60], lengths[:60] = rng.uniform(-2.2, -2.0, 60), 1.0
    sure = np.abs(margins)
    ranks = [np.argsort(np.argsort(values)) for values in (sure, sure / lengths)]
    rows, columns = (rank * bins // 1600 for rank in ranks)
    expected = np.zeros(1600)
    for row in range(bins):
        for column in range(bins):
            inside = (rows == row) & (columns == column)
            chance = 1 / (1 + np.exp(sure[inside]))
            lies = inside & (margins < 0)
            surplus = lies.sum() - chance.sum()
            share = surplus / max(lies.sum(), 1)
            if surplus > 3 * np.sqrt(np.sum(chance * (1 - chance)) + 1) and share > 0.5:
                share = min(share, 0.99)
                expected[lies] = min(2 * np.log(share / (1 - share)), 8.0)
    assert (expected > 0).sum() > 20
    found = crowd_odds(jnp.asarray(margins, jnp.float32), jnp.asarray(lengths, jnp.float32))
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)
