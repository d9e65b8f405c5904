"""The players of the primal–dual game: their steps, their balls, the gap between them."""

import dataclasses
import inspect
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from primal_dual_games import SHORT, prepare, solve

from robust_rlhf_jax import Status
from robust_rlhf_jax._iterate import iterate
from robust_rlhf_jax.kernels.primal_dual import descent_gradient, policy_tables
from robust_rlhf_jax.oracles import PrimalDual
from robust_rlhf_jax.oracles.primal_dual.data import (
    clip_residuals,
    filter_gradients,
    game_moments,
    starting_weights,
)
from robust_rlhf_jax.oracles.primal_dual.updates import (
    FIRST_STEP,
    GROWTH,
    LIPSCHITZ_SHARE,
    REMEMBERED,
    DescentAscent,
    SaddlePoint,
    cold_start,
    convergence,
    leave_behind,
)


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_the_gap_that_is_reported_is_that_of_the_last_round(world):
    mdp, data = world
    found = solve(SHORT, prepare(SHORT, data, jnp.float32(0.0)), mdp.theta).details
    assert found["gaps"].shape == found["residuals"].shape == (2,)
    assert found["duality_gap"] == found["gaps"][-1] < found["gaps"][0]
    assert found["flow_residual"] == found["residuals"][-1] < found["residuals"][0]


def lagrangian(moments, theta, beta, logits, w, table):
    """L(β, π; w) for moments whose two halves agree."""
    earned = jnp.einsum("hd,hdp,hp->", beta, moments.reward, theta)
    return earned + jnp.sum(w * descent_gradient(moments, beta, policy_tables(table, logits, w).feature))


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


def in_ball(point, radius):
    length = np.linalg.norm(point)
    return point if length <= radius else point * radius / length


class NumPyGame:
    """The iteration of `DescentAscent` in NumPy and float64, on clean samples that all count alike."""

    def __init__(self, game, problem, optimistic):
        self.phi, self.table, self.rewards = (
            np.asarray(part, np.float64) for part in (game.phi, game.table, game.reward_phi)
        )
        self.states, self.theta, self.problem = np.asarray(game.states), np.asarray(problem.theta), problem
        self.optimistic, self.given = optimistic, float(problem.step_size)
        self.at, self.summed, self.logits, self.count = np.zeros((2, 3, 4)), np.zeros((3, 4)), [], 0
        self.rate = self.given or FIRST_STEP
        self.mean_at, self.mean_slope = np.zeros((2, 3, 4)), np.zeros((2, 3, 4))

    def slope(self):
        w, beta = self.at
        logits = float(self.problem.policy_step) * (self.summed + (w if self.optimistic else 0.0))
        weights = np.exp(np.einsum("sad,hd->hsa", self.table, logits))
        policy = weights / weights.sum(axis=-1, keepdims=True)
        feature = np.einsum("hsa,sad->hsd", policy, self.table)
        down, up = np.zeros((3, 4)), np.zeros((3, 4))
        for h in range(3):
            phi, following = self.phi[h], np.zeros(4000)
            if h < 2:
                following = (feature[h + 1] @ w[h + 1])[self.states[h + 1]]
            target = self.rewards[h] @ self.theta[h] + following - phi @ w[h]
            up[h] = np.mean(phi * target[:, None], axis=0)
            carried = self.phi[h - 1] @ beta[h - 1] if h else np.ones(4000)
            rows = feature[h][self.states[h]] * carried[:, None] - phi * (phi @ beta[h])[:, None]
            down[h] = np.mean(rows, axis=0)
        return np.stack([down, -up]), logits

    def round(self, iterations):
        before = self.at, self.slope()[0]
        for _ in range(iterations):
            slope, logits = self.slope()
            rate = self.next_rate(self.at - before[0], slope - before[1])
            move = rate * slope + (self.rate * (slope - before[1]) if self.optimistic else 0.0)
            share = (float(self.problem.averaging) + 1) / (self.count + 1 + float(self.problem.averaging))
            self.mean_at += share * (self.at - self.mean_at)
            self.mean_slope += share * (slope - self.mean_slope)
            self.logits.append(logits)
            self.summed += self.at[0]
            before, self.rate, self.count = (self.at, slope), rate, self.count + 1
            w, beta = self.at - np.asarray(self.problem.balance)[:, None, None] * move
            w = np.stack([in_ball(row, float(self.problem.radius_w)) for row in w])
            self.at = np.stack([w, in_ball(beta, float(self.problem.radius_beta))])

    def next_rate(self, moved, bent):
        if self.given or not (moved.any() and bent.any()):
            return self.rate
        return min(GROWTH * self.rate, LIPSCHITZ_SHARE * np.linalg.norm(moved) / np.linalg.norm(bent))


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"averaging": 0.0, "coverage": 0.5},
        {"optimistic": False},
        {"step_size": 0.2, "occupancy_step": 0.3},
    ],
    ids=["adaptive", "uniform average in a small ball", "published", "given steps"],
)
def test_against_the_game_in_numpy(settings, world):
    mdp, data = world
    oracle = PrimalDual(steps=12, refresh=4, **settings)
    game = prepare(oracle, data, jnp.float32(0.0))
    problem, _ = oracle._problem(game, mdp.theta, oracle.start(game))
    solver = DescentAscent(3, 4, oracle.optimistic, 0, "residual", 8)
    state = iterate(solver, problem, max_steps=3).state
    expected = NumPyGame(game, problem, oracle.optimistic)
    for _ in range(3):
        expected.round(4)
    assert state.count == 12
    close = {"rtol": 2e-3, "atol": 2e-4}
    np.testing.assert_allclose(state.step_size, expected.rate, rtol=2e-3)
    np.testing.assert_allclose(state.now.at, expected.at, **close)
    np.testing.assert_allclose(state.logits, expected.logits, **close)
    np.testing.assert_allclose(state.summed_w, expected.summed, **close)
    np.testing.assert_allclose(state.means.at, expected.mean_at, **close)
    np.testing.assert_allclose(state.means.slope, expected.mean_slope, **close)
    moments = game_moments(game, state.weights)
    np.testing.assert_allclose(
        (state.gaps[2], state.residuals[2]), convergence(problem, moments, state.means), rtol=1e-4
    )


def rate_after(optimistic, given, step, moved, bent, group_size=0):
    """η of the next step where the last one was `step`."""
    before = SaddlePoint(jnp.zeros((2, 1, 1)), jnp.zeros((2, 1, 1)))
    now = SaddlePoint(before.at.at[0].set(moved), before.slope.at[1].set(bent))
    state = SimpleNamespace(step_size=jnp.float32(step), before=before)
    solver = DescentAscent(1, 1, optimistic, group_size, "residual", 8)
    return float(solver._rate(SimpleNamespace(step_size=jnp.float32(given)), state, now))


def test_a_step_grows_slowly_and_no_further_than_the_slopes_allow():
    assert rate_after(True, 0.0, 0.2, moved=3.0, bent=1e-3) == pytest.approx(0.2 * GROWTH)
    assert rate_after(True, 0.0, 0.2, moved=3.0, bent=60.0) == pytest.approx(LIPSCHITZ_SHARE * 3.0 / 60.0)


@pytest.mark.parametrize(("moved", "bent"), [(0.0, 0.0), (3.0, 0.0), (0.0, 60.0)])
def test_a_step_stays_where_nothing_is_known_of_the_slopes(moved, bent):
    assert rate_after(True, 0.0, 0.2, moved, bent) == pytest.approx(0.2)


def test_a_given_step_stays():
    assert rate_after(True, 0.2, 0.2, moved=3.0, bent=60.0) == pytest.approx(0.2)
    assert rate_after(False, 0.2, 0.2, moved=3.0, bent=60.0) == pytest.approx(0.2)
    assert rate_after(True, 0.2, 0.2, moved=3.0, bent=60.0, group_size=5) == pytest.approx(0.2)


@pytest.mark.parametrize(("entry", "status"), [(1e30, Status.RUNNING), (np.inf, Status.NONFINITE)])
def test_a_player_at_infinity_ends_the_game(entry, status):
    at = jnp.zeros((2, 3, 4)).at[1, 2, 3].set(entry)
    state = SimpleNamespace(now=SaddlePoint(at, jnp.zeros_like(at)))
    assert DescentAscent(1, 1, True, 0, "residual", 8).terminate(None, state) == status


@pytest.mark.parametrize("count", [REMEMBERED - 1, REMEMBERED + 1])
def test_a_warm_start_remembers_the_last_policy_for_a_while(count):
    """`REMEMBERED` times the mean w; after fewer iterations as many times."""
    now, means = np.random.default_rng(0).normal(size=(2, 2, 3, 4))
    state = SimpleNamespace(
        now=SaddlePoint(now, now), means=SaddlePoint(means, means), count=count, step_size=0.3, weights="kept"
    )
    left = leave_behind(state)
    np.testing.assert_allclose(left.summed_w, min(count, REMEMBERED) * means[0], rtol=1e-6)
    np.testing.assert_array_equal(left.at, now)
    assert (left.step_size, left.weights) == (0.3, "kept")


@pytest.mark.slow
def test_a_cold_start_knows_nothing(world):
    _, data = world
    game = prepare(SHORT, data, jnp.float32(0.1))
    cold = cold_start(game)
    np.testing.assert_array_equal(cold.at, np.zeros((2, 3, 4)))
    np.testing.assert_array_equal(cold.summed_w, np.zeros((3, 4)))
    np.testing.assert_allclose(cold.step_size, FIRST_STEP)
    np.testing.assert_array_equal(cold.weights.ascent, game.base)


@pytest.mark.slow
@pytest.mark.parametrize("robust_means", ["residual", "spectral"])
def test_weights_are_renewed_as_asked(robust_means, world):
    """At the players' point: by clipping residuals, or by filtering gradients on from the last weights."""
    mdp, data = world
    game = dataclasses.replace(prepare(SHORT, data, jnp.float32(0.1)), epsilon=jnp.float32(0.4))
    problem, _ = SHORT._problem(game, mdp.theta, SHORT.start(game))
    solver = DescentAscent(2, 20, True, 0, robust_means, 3)
    state = solver.init(problem, key=None)
    w, beta, summed = np.random.default_rng(0).normal(size=(3, 3, 4)).astype(np.float32)
    now = SaddlePoint(jnp.stack([w, beta]), state.now.slope)
    state = dataclasses.replace(state, now=now, summed_w=jnp.asarray(summed))
    tables = policy_tables(game.table, problem.policy_step * (summed + w), w)
    found = jax.jit(solver._refiltered)(problem, state)
    if robust_means == "residual":
        expected = jax.jit(clip_residuals)(game, problem.theta, tables)
    else:
        expected = jax.jit(filter_gradients, static_argnums=6)(
            game, state.weights, problem.theta, w, beta, tables, 3
        )
    for part, wanted in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(part, wanted, rtol=1e-2, atol=1e-2)
    assert (np.asarray(found.ascent) < 0.99 * np.asarray(game.base)).any()


@pytest.mark.parametrize("method", [DescentAscent.init, DescentAscent.step])
def test_the_key_of_a_solver_goes_by_name(method):
    assert inspect.signature(method).parameters["key"].kind is inspect.Parameter.KEYWORD_ONLY
