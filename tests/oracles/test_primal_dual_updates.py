"""The players of the primal–dual game: their steps, their balls, the gap between them."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from primal_dual_games import SHORT, prepare, solve

from robust_rlhf_jax import Status
from robust_rlhf_jax._iterate import iterate
from robust_rlhf_jax.kernels.primal_dual import descent_gradient, lagrangian, policy_tables
from robust_rlhf_jax.oracles import PrimalDual
from robust_rlhf_jax.oracles.primal_dual.data import (
    game_moments,
    starting_weights,
)
from robust_rlhf_jax.oracles.primal_dual.updates import DescentAscent, SaddlePoint, convergence


@pytest.mark.parametrize("averaging", [0.0, 3.0])
def test_a_mixture_weighs_its_members_as_the_average_does(world, averaging):
    """Iterate t joins the mean of those before it with the share (p + 1)/(t + p)."""
    mdp, data = world
    oracle = dataclasses.replace(SHORT, averaging=averaging)
    found = solve(oracle, prepare(oracle, data, jnp.float32(0.0)), mdp.theta)
    expected = np.zeros(40)
    for t in range(1, 41):
        share = (averaging + 1) / (t + averaging)
        expected *= 1 - share
        expected[t - 1] += share
    np.testing.assert_allclose(found.policy.weights, expected, rtol=1e-3, atol=1e-6)


def test_an_unbounded_player_that_diverges_says_so_and_stays_alone(world):
    mdp, data = world
    prepared = prepare(SHORT, data, jnp.float32(0.0))

    def lane(step_size):
        return PrimalDual(steps=400, refresh=20, coverage=jnp.inf, step_size=step_size).solve(
            prepared, mdp.theta
        )

    found = jax.jit(jax.vmap(lane))(jnp.asarray([0.1, 1e30]))
    alone = jax.jit(lane)(jnp.float32(0.1))
    assert found.status[1] == Status.NONFINITE
    assert found.status[0] == alone.status != Status.NONFINITE
    np.testing.assert_allclose(found.subgradient[0], alone.subgradient, atol=1e-4)


@pytest.mark.parametrize("optimistic", [False, True])
def test_each_player_has_its_own_step(world, optimistic):
    """From the first point z⁰ = 0, whose gradients are known: w¹ = −η_w∇w L, β¹ = η_β∇β L."""
    mdp, data = world
    oracle = PrimalDual(
        steps=2, refresh=1, optimistic=optimistic, step_size=0.03, occupancy_step=0.2, coverage=1e6
    )
    prepared = prepare(oracle, data, jnp.float32(0.0))
    problem, _ = oracle._problem(prepared, mdp.theta, oracle.start(prepared))
    solver = DescentAscent(2, 1, optimistic, 0, "residual", 8)
    state = iterate(solver, problem, key=jax.random.key(0), max_steps=1).state
    slope = np.asarray(state.before.slope)
    np.testing.assert_allclose(state.now.at[0], -0.03 * slope[0], rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(state.now.at[1], -0.2 * slope[1], rtol=1e-5, atol=1e-8)
    assert np.abs(slope[1]).max() > 0.01


def test_players_stay_in_their_balls(world):
    """‖w_h‖ ≤ 2H√d and ‖β‖ ≤ √coverage, where steps that are far too long end."""
    mdp, data = world
    oracle = PrimalDual(steps=4, refresh=1, step_size=1e6, coverage=9.0)
    prepared = prepare(oracle, data, jnp.float32(0.0))
    problem, _ = oracle._problem(prepared, mdp.theta, oracle.start(prepared))
    solver = DescentAscent(4, 1, True, 0, "residual", 8)
    w, beta = iterate(solver, problem, key=jax.random.key(0), max_steps=4).state.now.at
    np.testing.assert_allclose(np.linalg.norm(w, axis=1), 2 * mdp.horizon * mdp.dim**0.5, rtol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(beta), 3.0, rtol=1e-5)


def test_the_gap_that_is_reported_is_that_of_the_last_round(world):
    mdp, data = world
    found = solve(SHORT, prepare(SHORT, data, jnp.float32(0.0)), mdp.theta).details
    assert found["gaps"].shape == found["residuals"].shape == (2,)
    assert found["duality_gap"] == found["gaps"][-1] < found["gaps"][0]
    assert found["flow_residual"] == found["residuals"][-1] < found["residuals"][0]


@pytest.mark.slow
def test_the_gap_is_between_what_either_player_could_reach(world):
    """L where β and π answer w, less L where w answers them, and no other answer in the balls is better."""
    mdp, data = world
    game = prepare(SHORT, data, jnp.float32(0.0))
    problem, _ = dataclasses.replace(SHORT, coverage=4.0)._problem(game, mdp.theta, SHORT.start(game))
    moments, rng = game_moments(game, starting_weights(game)), np.random.default_rng(0)
    w, beta, logits = (jnp.asarray(part, jnp.float32) for part in rng.normal(size=(3, 3, 4)))
    slope = descent_gradient(moments, beta, policy_tables(game.table, logits, w).feature)
    means = SaddlePoint(jnp.stack([w, beta]), jnp.stack([slope, jnp.zeros_like(slope)]))
    gap, residual = convergence(problem, moments, means)
    np.testing.assert_allclose(residual, np.linalg.norm(slope), rtol=1e-5)

    def value(beta, logits, w):
        return float(lagrangian(moments, problem.theta, beta, logits, w, game.table))

    def toward(direction, length, axis):
        return direction * length / jnp.linalg.norm(direction, axis=axis, keepdims=axis is not None)

    greedy = 1e4 * w
    rising = jax.grad(lagrangian, argnums=2)(moments, problem.theta, beta, greedy, w, game.table)
    upper = value(toward(rising, 2.0, None), greedy, w)
    lower = value(beta, logits, -toward(slope, 2 * 3 * 4**0.5, 1))
    np.testing.assert_allclose(gap, upper - lower, rtol=1e-4)
    for _ in range(20):
        others = (jnp.asarray(part, jnp.float32) for part in rng.normal(size=(3, 3, 4)))
        b, policy, v = others
        assert value(toward(b, 2.0, None), policy, w) <= upper + 1e-3
        assert value(beta, logits, toward(v, 12.0, 1)) >= lower - 1e-3
