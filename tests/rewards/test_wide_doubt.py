"""Doubted directions of wide pairs by iteration against all eigenvectors, where they are few and where they are not."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.kernels.logistic import secant_curvature
from robust_rlhf_jax.rewards import RobustFit
from robust_rlhf_jax.rewards.doubt import FLOOR, doubted_directions, of_middling_length, span_basis
from robust_rlhf_jax.rewards.wide_doubt import (
    TOO_LITTLE,
    _basis_of_some,
    _contradicted_beyond,
    _few_directions,
    doubted_span,
)

from .wide_worlds import K, N, unit_free_pairs, whitened

COVERED = RobustFit().covered
PLANTED = N // 10
few = jax.jit(lambda pairs, *given: _few_directions(pairs, *given, COVERED))
dense = jax.jit(lambda pairs, *given: doubted_directions(pairs, *given, COVERED))
spanned = jax.jit(lambda pairs, *given: doubted_span(pairs, *given[:3], COVERED, given[3]))


@pytest.fixture(scope="module")
def pairs():
    return unit_free_pairs(planted=PLANTED)


def accused(pairs, bad, others=1.0):
    """(proposal, weights, t): `bad` rows are suspects and contradicted, the rest keeps weight `others`."""
    weights = jnp.where(bad, 0.0, others).astype(jnp.float32)
    t = jnp.asarray(np.random.default_rng(5).normal(size=pairs.rows.shape[1]) / 12.0, jnp.float32)
    return weights, weights, t


def projector(rows):
    return np.asarray(rows).T @ np.asarray(rows)


@pytest.mark.parametrize("others", [1.0, 0.7])
def test_the_direction_of_planted_pairs(pairs, others):
    given = accused(pairs, np.arange(N) < PLANTED, others)
    found, exact = few(pairs, *given), dense(pairs, *given)
    assert found.sure
    assert np.sum(np.linalg.norm(exact, axis=1) > 0) == 1
    np.testing.assert_allclose(projector(found.rows), projector(exact), atol=0.01)


@pytest.mark.slow
def test_many_directions_are_not_found_by_few(pairs):
    """Columns that are not 0 in twelve pairs alone, and those are accused."""
    rows = pairs.rows.at[:, :12].set(0.0).at[jnp.arange(100, 112), jnp.arange(12)].set(20.0)
    pairs = eqx.tree_at(lambda p: p.rows, pairs, rows)
    given = accused(pairs, (np.arange(N) >= 100) & (np.arange(N) < 112))
    assert not few(pairs, *given).sure
    basis = spanned(pairs, *(part[None] for part in given), jnp.asarray(False))
    exact = span_basis(dense(pairs, *given))
    assert np.sum(np.linalg.norm(exact, axis=1) > 0) >= 12
    np.testing.assert_allclose(projector(basis), projector(exact), atol=1e-3)


@pytest.mark.slow
def test_the_span_of_several_explanations(pairs):
    """One with a direction, one that accuses nobody, one that is not finite."""
    one = accused(pairs, np.arange(N) < PLANTED)
    nobody = accused(pairs, np.zeros(N, bool))
    lost = (one[0], one[1], one[2] * jnp.nan)
    table = [jnp.stack(parts) for parts in zip(one, nobody, lost, strict=True)]
    basis = np.asarray(spanned(pairs, *(part[:2] for part in table), jnp.asarray(False)))
    np.testing.assert_allclose(projector(basis), projector(dense(pairs, *one)), atol=0.01)
    assert not spanned(pairs, *(part[:2] for part in table), jnp.asarray(True)).any()
    assert basis.shape == (pairs.rows.shape[1], pairs.rows.shape[1])
    found = jax.jit(jax.vmap(lambda *given: _few_directions(pairs, *given, COVERED)))(*table)
    assert list(np.asarray(found.sure)) == [True, True, False]
    np.testing.assert_allclose(projector(found.rows[0]), projector(dense(pairs, *one)), atol=0.01)


@pytest.fixture(scope="module")
def few_pairs():
    """Fewer rows than axes, so that every suspect has a direction of its own; twelve are planted at one place."""
    rng = np.random.default_rng(8)
    x, labels = rng.normal(size=(K - 10, K)), np.where(rng.uniform(size=K - 10) < 0.5, 1.0, -1.0)
    x[:12], labels[:12] = x[0], 1.0
    return whitened(jnp.asarray(x, jnp.float32), jnp.asarray(labels, jnp.float32))


@pytest.mark.slow
def test_what_contradicted_pairs_know_beyond_some_directions(few_pairs):
    """Nothing beyond the one direction that they have, all of their trace beyond none."""
    bad = np.arange(few_pairs.n_pairs) < 12
    _, weights, t = accused(few_pairs, bad)
    y = np.asarray(of_middling_length(few_pairs).rows, np.float64)
    known = np.asarray(secant_curvature(few_pairs.margins(t)), np.float64)
    of_all = (y.T * known) @ y + FLOOR * np.eye(y.shape[1])
    direction = np.linalg.solve(of_all, y[0])
    direction /= np.sqrt(direction @ of_all @ direction)
    exact = np.trace(np.linalg.solve(of_all, (y.T * (known * bad)) @ y))
    beyond = jax.jit(lambda found: _contradicted_beyond(few_pairs, found, weights, t))
    assert float(beyond(jnp.asarray(direction[None], jnp.float32))) < 1e-3
    # Along one direction, the mean of sixteen squares.
    assert abs(float(beyond(jnp.zeros((1, len(t))))) / exact - 1.0) < 5 * np.sqrt(2.0 / 16)


@pytest.mark.slow
def test_other_suspects_that_nobody_contradicts_are_no_matter(few_pairs):
    """They have more directions than are sought at once; what is contradicted lies along one of those found."""
    bad, n = np.arange(few_pairs.n_pairs) < 12, few_pairs.n_pairs
    proposal = jnp.asarray(np.where(bad, 0.0, np.where(np.arange(n) < 60, 0.03, 1.0)), jnp.float32)
    _, weights, t = accused(few_pairs, bad)
    found = few(few_pairs, proposal, weights, t)
    assert not found.sure
    left = _contradicted_beyond(few_pairs, found.found, weights, t)
    assert left < TOO_LITTLE * COVERED
    basis = spanned(few_pairs, proposal[None], weights[None], t[None], jnp.asarray(False))
    exact = dense(few_pairs, proposal, weights, t)
    assert np.sum(np.linalg.norm(exact, axis=1) > 0) == 1
    np.testing.assert_allclose(projector(basis), projector(exact), atol=0.02)


@pytest.mark.parametrize("count", [0, 3, 10, 11, 40])
def test_the_basis_of_rows_most_of_which_are_zero(count):
    """r/4 = 10 rows that are not 0, or fewer, are taken alone."""
    rng = np.random.default_rng(count)
    rows = np.zeros((90, 40), np.float32)
    some = rng.normal(size=(count, 40))
    rows[rng.permutation(90)[:count]] = some / np.maximum(np.linalg.norm(some, axis=1, keepdims=True), 1e-9)
    rows[:, 0] *= -1.0
    found = jax.jit(_basis_of_some)(rows)
    assert found.shape == (40, 40)
    np.testing.assert_allclose(projector(found), projector(span_basis(rows)), atol=1e-4)
