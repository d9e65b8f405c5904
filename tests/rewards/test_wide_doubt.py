"""Doubted directions of wide pairs by iteration against all eigenvectors, where they are few and where they are not."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.rewards import RobustFit
from robust_rlhf_jax.rewards.doubt import doubted_directions, span_basis
from robust_rlhf_jax.rewards.wide_doubt import _basis_of_some, _few_directions, doubted_span

from .wide_worlds import N, unit_free_pairs

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
