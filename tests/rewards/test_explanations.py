"""Every explanation keeps its promises: weights in [0, 1], at most 2ε left out, the first trusts all pairs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from robust_rlhf_jax.rewards.coordinates import unit_free
from robust_rlhf_jax.rewards.doubt import coverage, doubted_directions
from robust_rlhf_jax.rewards.explanations import explain, first_fits
from robust_rlhf_jax.rewards.proposals import doubted_rows

from .worlds import THETA, N, normal_pairs, planted, rare_pairs


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
