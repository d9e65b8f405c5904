"""Attacks on differences do what they claim, against NumPy."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax import changed_pairs, sample_preferences
from robust_rlhf_jax.lab.attacks import leverage_points, mimicry, scale_features
from robust_rlhf_jax.mdp import LinearMDP


@pytest.fixture(scope="module")
def world(make_mdp):
    mdp = make_mdp()
    return mdp, sample_preferences(jax.random.key(0), mdp, 200)


def span_basis(table):
    rows = np.asarray(table, np.float64).reshape(-1, table.shape[-1])
    _, sizes, right = np.linalg.svd(rows - rows[0], full_matrices=False)
    return right[sizes > 1e-5 * sizes[0]]


def steps(data, rows):
    """x of these pairs, one row per step [M, H, p], in float64."""
    observed = np.asarray(data.observed_reward_features, np.float64)[rows]
    return observed[:, 1] - observed[:, 0]


def corrupted(attack, data, mdp, epsilon=0.2):
    other = jax.jit(attack)(jax.random.key(1), data, epsilon, mdp)
    return other, np.asarray(changed_pairs(data, other))


def assert_largest_and_contrary(other, bad, mdp):
    """As long as norms allow, inside the span, and the label says the opposite of θ★."""
    x = steps(other, bad)
    norms = np.linalg.norm(np.asarray(other.observed_reward_features, np.float64)[bad], axis=-1)
    np.testing.assert_allclose(norms.max(axis=(1, 2)), 1.0, rtol=1e-5)
    basis = span_basis(mdp.reward_table)
    np.testing.assert_allclose(x @ basis.T @ basis, x, atol=1e-4)
    margins = np.einsum("nhp,hp->n", x, np.asarray(mdp.theta, np.float64))
    assert (np.asarray(other.labels)[bad] * margins < 0).all()


def test_scaled_pairs_keep_their_direction(world):
    mdp, data = world
    other, bad = corrupted(scale_features, data, mdp)
    assert_largest_and_contrary(other, bad, mdp)
    before, after = (steps(d, bad).reshape(bad.sum(), -1) for d in (data, other))
    cosine = np.sum(before * after, axis=1) / np.linalg.norm(before, axis=1) / np.linalg.norm(after, axis=1)
    np.testing.assert_allclose(cosine, 1.0, atol=1e-5)
    assert (np.linalg.norm(after, axis=1) > np.linalg.norm(before, axis=1)).all()


def test_pairs_without_a_difference_are_not_scaled(world):
    mdp, data = world
    same = jnp.where(jnp.arange(200)[:, None, None, None] < 100, data.features[:, :1], data.features)
    _, bad = corrupted(scale_features, dataclasses.replace(data, features=same), mdp, 0.45)
    np.testing.assert_array_equal(np.flatnonzero(bad) >= 100, True)
    assert bad.sum() == 90


def test_leverage_points_lie_in_the_least_covered_direction(world):
    mdp, data = world
    other, bad = corrupted(leverage_points, data, mdp)
    assert_largest_and_contrary(other, bad, mdp)
    x = steps(data, slice(None)).reshape(200, -1)
    planted = steps(other, bad).reshape(bad.sum(), -1)
    np.testing.assert_array_equal(planted, np.broadcast_to(planted[0], planted.shape))
    values, vectors = np.linalg.eigh(x.T @ x / 200)
    identifiable = values > 1e-5 * values[-1]
    assert identifiable.sum() == mdp.horizon * (mdp.dim - 1)
    least = vectors[:, identifiable][:, 0]
    np.testing.assert_allclose(abs(planted[0] @ least), np.linalg.norm(planted[0]), rtol=1e-3)


@pytest.mark.parametrize("attack", [scale_features, leverage_points])
def test_reward_features_of_their_own_with_a_shared_theta(attack, make_mdp):
    """Then those are replaced, x sums over steps, and transitions stay."""
    rng = np.random.default_rng(4)
    base = make_mdp()
    table = jnp.asarray(rng.uniform(-0.5, 0.5, size=(6, 3, 2)), jnp.float32)
    theta = jnp.broadcast_to(jnp.asarray(rng.normal(size=2), jnp.float32), (3, 2))
    mdp = LinearMDP(base.features, base.transition_measures, theta, base.initial_distribution, table)
    data = dataclasses.replace(sample_preferences(jax.random.key(0), mdp, 100), stationary=True)
    other, bad = corrupted(attack, data, mdp)
    assert bad.sum() == 20
    np.testing.assert_array_equal(other.features, data.features)
    assert_largest_and_contrary(other, bad, mdp)


def test_mimicry_cannot_be_told_by_its_features(make_mdp):
    """Mean and second moments of the planted x match the clean ones; labels contradict θ★ without exception."""
    mdp = make_mdp()
    data = sample_preferences(jax.random.key(0), mdp, 20_000)
    other, bad = corrupted(mimicry, data, mdp, 0.3)
    clean, planted = steps(data, slice(None)).reshape(20_000, -1), steps(other, bad).reshape(bad.sum(), -1)
    assert bad.sum() == 6000
    margins = planted @ np.asarray(mdp.theta, np.float64).ravel()
    assert (np.asarray(other.labels)[bad] * margins <= 1e-6).all()
    moments = lambda x: np.concatenate([x, (x[:, :, None] * x[:, None]).reshape(len(x), -1)], axis=1)  # noqa: E731
    error = moments(clean).std(axis=0) / np.sqrt(6000)
    assert (abs(moments(planted).mean(axis=0) - moments(clean).mean(axis=0)) <= 5 * error + 1e-9).all()
    # Each is a pair of the clean data, states, actions and features alike.
    rows = lambda d, keep: np.concatenate(  # noqa: E731
        [np.asarray(f)[keep].reshape(keep.sum(), -1) for f in (d.states, d.actions, d.features)], axis=1
    )
    known = {row.tobytes() for row in rows(data, np.ones(20_000, bool))}
    assert all(row.tobytes() in known for row in rows(other, bad))
