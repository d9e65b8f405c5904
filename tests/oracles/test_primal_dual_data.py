"""What the primal–dual oracle makes of the data: which steps count, and group means of gradients."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from primal_dual_games import SHORT, prepare, solve

from robust_rlhf_jax.kernels.primal_dual import PolicyTables, policy_tables
from robust_rlhf_jax.oracles.primal_dual.data import (
    clip_residuals,
    filter_gradients,
    split_gradients,
    starting_weights,
)


def test_steps_to_where_nobody_else_goes_count_less_whatever_the_reward(world):
    """Twenty samples of 4000 say that they came to a state of great value; rewards are linear and leave no residual."""
    mdp, data = world
    game = prepare(SHORT, data, jnp.float32(0.1))
    states = jnp.where(game.states == 5, 0, game.states).at[1:, :20].set(5)
    game = eqx.tree_at(lambda g: g.states, game, states)
    value = jnp.zeros((3, 6)).at[:, 5].set(100.0)
    tables = PolicyTables(
        jnp.full((3, 6, 3), 1 / 3), value, jnp.mean(game.table, axis=1)[None].repeat(3, axis=0)
    )
    plain, other = (jax.jit(clip_residuals)(game, factor * mdp.theta, tables) for factor in (0.0, 50.0))
    share = np.asarray(plain.ascent / game.base)
    assert share[:2, :20].max() < 0.2
    assert share[:2, 20:].mean() > 0.9
    np.testing.assert_array_equal(share[2], 1.0)  # nothing follows the last step
    np.testing.assert_allclose(other.ascent, plain.ascent, atol=2e-3)
    np.testing.assert_array_equal(plain.flow, plain.ascent)
    np.testing.assert_array_equal(plain.arrival[1:], plain.ascent[:-1])


def test_a_flow_counts_only_where_both_of_its_steps_are_sound(world):
    """Samples whose second step the covariates' filter took: their third step's flow is gone, its ascent is not."""
    mdp, data = world
    game = prepare(SHORT, data, jnp.float32(0.0))
    game = eqx.tree_at(lambda g: g.base, game, game.base.at[1, :10].set(0.0))
    w, beta = jnp.asarray(np.random.default_rng(0).normal(size=(2, 3, 4)), jnp.float32)
    found = jax.jit(filter_gradients, static_argnums=6)(
        game, starting_weights(game), mdp.theta, w, beta, policy_tables(game.table, w, w), 2
    )
    np.testing.assert_array_equal(found.ascent, game.base)
    expected = np.asarray(game.base).copy()
    expected[2, :10] = 0.0
    np.testing.assert_array_equal(found.flow, expected)
    np.testing.assert_array_equal(found.arrival, expected)


def test_gradients_of_a_group_are_means_over_its_samples(world):
    """φ(r + v(s') − wᵀφ), and what flows in at s less φφᵀβ, sample by sample in NumPy; 1 flows in at the first step."""
    mdp, data = world
    size, step = 40, 2
    game = prepare(SHORT, data, jnp.float32(0.0))
    rng = np.random.default_rng(0)
    w, beta = rng.normal(size=(2, 3, 4))
    value, feature = rng.normal(size=(3, 6)), rng.normal(size=(3, 6, 4))
    tables = PolicyTables(jnp.full((3, 6, 3), 1 / 3), jnp.asarray(value), jnp.asarray(feature))
    down, up = jax.jit(lambda *a: split_gradients(game, step, size, *a, tables))(
        mdp.theta, jnp.asarray(w, jnp.float32), jnp.asarray(beta, jnp.float32)
    )
    phi, states, order = (np.asarray(part) for part in (game.phi, game.states, game.order))
    reward = np.einsum("hnp,hp->hn", game.reward_phi, mdp.theta)
    groups = order[: size * 18].reshape(3, 3, 2, size)[step]
    for h in range(3):
        n = groups[h, 0]
        following = value[h + 1][states[h + 1, n]] if h < 2 else 0.0
        expected = np.mean(phi[h, n] * (reward[h, n] + following - phi[h, n] @ w[h])[:, None], axis=0)
        np.testing.assert_allclose(up[h], expected, rtol=1e-3, atol=1e-4)
        n = groups[h, 1]
        carried = phi[h - 1, n] @ beta[h - 1] if h else np.ones(size)
        rows = feature[h][states[h, n]] * carried[:, None] - phi[h, n] * (phi[h, n] @ beta[h])[:, None]
        np.testing.assert_allclose(down[h], np.mean(rows, axis=0), rtol=1e-3, atol=1e-3)


def test_no_rounds_of_the_filter_leave_plain_means(world):
    """At ε = 0, where nothing is to be clipped either."""
    mdp, data = world
    oracle = dataclasses.replace(SHORT, robust_means="spectral", filter_steps=0)
    prepared = prepare(SHORT, data, jnp.float32(0.0))
    plain, found = (solve(o, prepared, mdp.theta) for o in (SHORT, oracle))
    np.testing.assert_allclose(found.subgradient, plain.subgradient, atol=1e-4)
