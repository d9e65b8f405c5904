"""Every explanation keeps its promises: weights in [0, 1], at most 2ε left out, the first trusts all pairs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import scipy.special

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.rewards import explanations, proposals
from robust_rlhf_jax.rewards.coordinates import unit_free
from robust_rlhf_jax.rewards.doubt import coverage, doubted_directions, unit_rows
from robust_rlhf_jax.rewards.examination import Examined
from robust_rlhf_jax.rewards.explanations import explain, first_fits
from robust_rlhf_jax.rewards.proposals import believed_rows, doubted_rows
from robust_rlhf_jax.rewards.weighted_fit import PRIOR

from .worlds import THETA, N, normal_pairs, planted, rare_pairs, rows_of


@jax.jit
def explained(x, labels, epsilon):
    pairs = unit_free(x, labels)
    rows = doubted_rows(pairs, epsilon)
    starts, plain = first_fits(pairs, rows)
    claims = explain(pairs, rows, starts, epsilon)
    return claims, plain.t, claims.t @ pairs.to_theta.T


def worlds():
    yield *normal_pairs(0), 0.1
    yield *rare_pairs(0), 0.2
    yield *planted(*normal_pairs(0), 0.1, 3.0)[:2], 0.1


def test_promises():
    for world in worlds():
        claims, plain, _ = explained(*(jnp.asarray(a, jnp.float32) for a in world))
        epsilon, weights = world[2], np.asarray(claims.weights)
        assert claims.t.shape[0] == len(weights) == len(claims.by_evidence)
        np.testing.assert_array_equal(claims.t[0], plain)
        np.testing.assert_array_equal(weights[0], 1.0)
        assert claims.by_evidence[0]
        assert ((weights >= 0) & (weights <= 1 + 1e-6)).all()
        # One step of the search for labels may end within a pair of its budget.
        assert (N - weights.sum(axis=1)).max() <= 2 * epsilon * N + 2
        assert np.isfinite(claims.t).all()
        # Trimmed fits give up ε as a quota.
        quota = weights[~np.asarray(claims.by_evidence)]
        assert len(quota) == 7
        np.testing.assert_allclose(quota.sum(axis=1), (1 - epsilon) * N, rtol=1e-4)


@pytest.mark.slow
def test_twice_epsilon_of_the_pairs_may_be_left_out(monkeypatch):
    """What every examination is told, and what it is started with; with stand-ins for the fits."""
    told = []

    def examine(pairs, proposal, budget, start, overdispersion):
        told.append((float(budget), float(overdispersion)))
        return Examined(proposal, start, budget)

    def some(count):
        return jnp.ones((count, 20)), jnp.full((count, 6), 2.0)

    monkeypatch.setattr(explanations, "examine", examine)
    monkeypatch.setattr(explanations, "_by_margins", lambda *_: (some(3), some(7)))
    pairs, epsilon = rows_of(np.random.default_rng(0).normal(size=(20, 6))), jnp.float32(0.1)
    starts, rows = explanations.Starts(*jnp.ones((3, 6))), proposals.DoubtedRows(None, jnp.zeros((3, 20)))
    claims = explain(pairs, rows, starts, epsilon, 3.0)
    explain(pairs, rows, starts, epsilon)
    np.testing.assert_allclose(told[0], [4.0, 3.0], rtol=1e-6)
    np.testing.assert_allclose(told[-1], [4.0, 1.0], rtol=1e-6)
    np.testing.assert_array_equal(claims.t[:, 0], [1.0] * 6 + [2.0] * 10)
    np.testing.assert_array_equal(claims.weights[:5, 0], [1.0, 1.0, 0.0, 0.0, 0.0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wide", "filter_up_to", "examined", "trimmed"), [(6, 6, 8, 7), (6, 5, 7, 7), (5, 6, 6, 2), (5, 5, 5, 2)]
)
def test_wide_rows_have_fewer_explanations(wide, filter_up_to, examined, trimmed, monkeypatch):
    """Examined are all pairs, those doubted by x (3, or 2), by the filter, and by unsure fits (3, or 2)."""
    for module, name, value in (
        (explanations, "WIDE", wide),
        (proposals, "WIDE", wide),
        (explanations, "FILTER_UP_TO", filter_up_to),
    ):
        monkeypatch.setattr(module, name, value)
    pairs, epsilon = rows_of(np.ones((20, 6))), jnp.float32(0.1)

    def shapes():
        rows = proposals.doubted_rows(pairs, epsilon)
        return explain(pairs, rows, explanations.Starts(*jnp.zeros((3, 6))), epsilon)

    claims = jax.eval_shape(shapes)
    assert claims.t.shape == (1 + examined + trimmed, 6)
    assert claims.weights.shape == (1 + examined + trimmed, 20)


@pytest.mark.slow
def test_first_fits_are_those_to_all_pairs_to_inverse_lengths_and_to_the_shorter_half(x64):
    """One row of zeros, which says nothing."""
    x, labels = normal_pairs(0, 200)
    x[5] = 0.0
    pairs = unit_free(jnp.asarray(x), jnp.asarray(labels))
    starts, plain = jax.jit(lambda p: first_fits(p, doubted_rows(p, jnp.asarray(0.1))))(pairs)
    z = np.asarray(pairs.z)
    length = np.linalg.norm(z, axis=1)
    half = np.argsort(np.argsort(length)) < 100
    inverse = np.insert(length.mean() / np.delete(length, 5), 5, 1.0)
    cases = (
        (starts.plain, np.ones(200), 0.0),
        (starts.bounded, inverse, PRIOR),
        (starts.short, 1.0 * half, PRIOR),
    )
    for found, weights, prior in cases:
        rows, wins = np.concatenate([z, np.eye(6), np.eye(6)]), np.append(labels, np.repeat([1.0, -1.0], 6))
        mass = np.append(weights, np.full(12, prior))
        np.testing.assert_allclose(found, logistic(rows, wins, mass), rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(plain.t, starts.plain)
    assert plain.status == Status.CONVERGED


def logistic(rows, labels, mass):
    """Weighted maximum likelihood by a trust region in float64."""

    def loss(t):
        return -mass @ scipy.special.log_expit(labels * (rows @ t))

    def slope(t):
        return -(mass * labels * scipy.special.expit(-labels * (rows @ t))) @ rows

    def bend(t):
        chance = scipy.special.expit(rows @ t)
        return (rows.T * (mass * chance * (1 - chance))) @ rows

    start = np.zeros(rows.shape[1])
    options = {"gtol": 1e-10}
    return scipy.optimize.minimize(loss, start, jac=slope, hess=bend, method="trust-exact", options=options).x


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.05, 0.3])
def test_trimmed_fits_start_from_five_fits_and_end_at_their_share(epsilon, x64):
    """From unsure fits to 1 − 2ε of the pairs, and from two first fits by way of 1 − ε and of four fifths at most."""
    x, labels, _ = planted(*normal_pairs(0, 200), 0.1, 1.5)
    pairs = unit_free(jnp.asarray(x), jnp.asarray(labels))
    rng = np.random.default_rng(0)
    starts = explanations.Starts(*jnp.asarray(rng.normal(size=(3, 6))))
    believed = jax.jit(believed_rows)
    unsure, trimmed = jax.jit(explanations._by_margins)(pairs, starts, jnp.asarray(epsilon))
    plain, bounded, short = starts
    likely = [
        (t, share)
        for share in (1 - epsilon, min(1 - epsilon, 1 - explanations.AT_FIRST))
        for t in (plain, short)
    ]
    first = [believed(pairs, 1 - 2 * epsilon, t, jnp.asarray(False)) for t in (plain, bounded, short)]
    for i, (weights, t) in enumerate(first):
        np.testing.assert_allclose(unsure[0][i], weights, atol=1e-6)
        np.testing.assert_allclose(unsure[1][i], t, rtol=1e-5, atol=1e-7)
    first += [believed(pairs, share, t, jnp.asarray(True)) for t, share in likely]
    assert len(trimmed[0]) == len(first)
    for i, (_, start) in enumerate(first):
        weights, t = believed(pairs, 1 - epsilon, start, jnp.asarray(True))
        np.testing.assert_allclose(trimmed[0][i], weights, atol=1e-6)
        np.testing.assert_allclose(trimmed[1][i], t, rtol=1e-5, atol=1e-7)


def test_unit_rows_are_of_length_1_whatever_they_were():
    rows = jnp.asarray([[3e-4, 4e-4], [30.0, -40.0], [1.0, 1.0]])
    found = unit_rows(rows, jnp.asarray([True, True, False]))
    np.testing.assert_allclose(found, [[0.6, 0.8], [0.6, -0.8], [0.0, 0.0]], rtol=1e-6)


def test_coverage_is_what_the_kept_pairs_know_of_what_all_know(x64):
    """SciPy's generalised eigenvalues; the left-out pairs alone show a feature, and no pair at all another."""
    x, labels = normal_pairs(0)
    x[50:, 4], x[:, 5] = 0.0, 0.0
    kept = 1.0 * (np.arange(N) >= 50)
    pairs = unit_free(jnp.asarray(x), jnp.asarray(labels))
    margins = pairs.margins(jnp.asarray(np.linspace(-1.0, 1.0, 6)))
    found = jax.jit(coverage)(pairs, jnp.asarray(kept), margins)
    z, m = np.asarray(pairs.z), np.asarray(margins)
    bend, prior = np.tanh(m / 2) / (2 * m), 0.01 * np.eye(6)
    some, every = ((z.T * (bend * w)) @ z + prior for w in (kept, np.ones(N)))
    np.testing.assert_allclose(found.share, scipy.linalg.eigh(some, every, eigvals_only=True), rtol=1e-7)
    assert found.share[0] < 1e-3 < 0.5 < found.share[1]
    rows = np.asarray(found.directions)
    np.testing.assert_allclose(rows @ every @ rows.T, np.eye(6), atol=1e-9)
    np.testing.assert_allclose(rows @ some @ rows.T, np.diag(found.share), atol=1e-9)


@pytest.mark.parametrize(
    ("alone", "out", "doubts"), [(True, 6, 1), (True, 4, 0), (True, 0, 0), (False, 50, 0)]
)
def test_a_feature_is_doubted_where_suspects_alone_show_it_and_some_are_contradicted(alone, out, doubts):
    """Fifty suspects show it, all of the same size: a tenth of them at least must have been left out."""
    x, labels = normal_pairs(0)
    x[:, 4] = np.sign(x[:, 4]) * (np.arange(N) < (50 if alone else 100))
    pairs = unit_free(jnp.asarray(x, jnp.float32), jnp.asarray(labels, jnp.float32))
    suspects, weights = np.arange(N) < 50, 1.0 * (np.arange(N) >= out)
    rows = doubted_directions(pairs, jnp.asarray(1.0 - suspects), jnp.asarray(weights), jnp.zeros(6))
    rows = np.asarray(rows)[np.linalg.norm(rows, axis=1) > 0]
    assert len(rows) == doubts
    for row in rows:
        np.testing.assert_allclose(np.linalg.norm(row), 1.0, rtol=1e-5)
        theta = np.asarray(pairs.to_theta) @ row
        np.testing.assert_allclose(np.abs(theta) / np.linalg.norm(theta), np.eye(6)[4], atol=0.02)


@pytest.mark.parametrize("length", [1.0, 3.0, 20.0])
def test_one_of_them_is_the_truth(length):
    x, labels, bad = planted(*normal_pairs(0), 0.1, length)
    claims, _, theta = explained(*(jnp.asarray(a, jnp.float32) for a in (x, labels, 0.1)))
    right = np.linalg.norm(np.asarray(theta) - THETA, axis=1) < 0.25 * np.linalg.norm(THETA)
    found = np.asarray(claims.weights)[:, bad].mean(axis=1) < 0.1
    assert not right[0]
    assert (right & found).any()
