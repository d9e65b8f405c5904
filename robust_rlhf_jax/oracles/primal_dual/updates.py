"""Descent–ascent on the planning game: the published update, and an optimistic one (paper: Algorithm 7).

Both players' step sizes come with the problem: `oracle.py` sets them (`_steps`, `theory_steps`).
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.kernels.ball import project_ball
from robust_rlhf_jax.kernels.linalg import einsum, matmul
from robust_rlhf_jax.kernels.primal_dual import (
    GameMoments,
    ascent_gradient,
    descent_gradient,
    policy_tables,
)

from .data import (
    Game,
    SampleWeights,
    clip_residuals,
    filter_gradients,
    game_moments,
    split_gradients,
    starting_weights,
)

FIRST_STEP = 0.1
# An optimistic step is at most this share of the local ‖Δz‖/‖Δ∇‖ (below ½: Malitsky & Tam 2020), and grows slowly.
LIPSCHITZ_SHARE, GROWTH = 0.4, 1.05
# A warm start remembers the last policy as this many iterations' worth of its average w.
REMEMBERED = 50


class WarmSaddle(NamedTuple):
    """What one reward's game leaves for the next: point, step size, the policy's Σw, the sample weights."""

    at: Float[Array, "2 H d"]
    step_size: Float[Array, ""]
    summed_w: Float[Array, "H d"]
    weights: SampleWeights


def cold_start(game: Game) -> WarmSaddle:
    """w = β = 0, the uniform policy, the covariate filter's weights."""
    zero = jnp.zeros((2, game.horizon, game.table.shape[-1]), game.table.dtype)
    return WarmSaddle(zero, jnp.asarray(FIRST_STEP, zero.dtype), zero[0], starting_weights(game))


class SaddleProblem(eqx.Module):
    """The game at a reward: θ [H, p] scaled to rewards of at most 1.

    `radius_w` of each ‖w_h‖, `radius_beta` of ‖β‖; `policy_step` α of the cumulative softmax; `step_size` η, or
    0 for one that adapts (optimistic only); `balance` (1, η_β/η_w): each player's step in multiples of η; `averaging`
    p: iterate t counts about tᵖ times; `start`: where to begin.
    """

    game: Game
    theta: Float[Array, "H p"]
    radius_w: Float[Array, ""]
    radius_beta: Float[Array, ""]
    policy_step: Float[Array, ""]
    step_size: Float[Array, ""]
    balance: Float[Array, " 2"]
    averaging: Float[Array, ""]
    start: WarmSaddle


class SaddlePoint(NamedTuple):
    """(w, β) and the gradients ∇w L, −∇β L there, stacked [2, H, d]: both players descend."""

    at: Float[Array, "2 H d"]
    slope: Float[Array, "2 H d"]


class SaddleState(eqx.Module):
    """Where the players stand.

    `now`, `before`: the last two points; `step_size` η of the last step; `summed_w` [H, d]: Σ_i w^i; `logits` [T, H, d]
    of every policy played so far; `means`: averages so far of points and gradients; `weights` of the samples; `gaps`,
    `residuals` [rounds]: duality gap and flow residual of the averages after each round; `count`: iterations made.
    """

    now: SaddlePoint
    before: SaddlePoint
    step_size: Float[Array, ""]
    summed_w: Float[Array, "H d"]
    logits: Float[Array, "T H d"]
    means: SaddlePoint
    weights: SampleWeights
    gaps: Float[Array, " rounds"]
    residuals: Float[Array, " rounds"]
    count: Int[Array, ""]


class DescentAscent(eqx.Module):
    """One step of the driver is a round: filter the samples' gradients, then `refresh` iterations on their moments.

    Optimistic: z⁺ = Proj(z − η_t g_t − η_{t−1}(g_t − g_{t−1})) (Popov 1980; Malitsky & Tam 2020), and the policy
    plays softmax of α φᵀ(Σ_{i<t} w^i + w^t). Published: z⁺ = Proj(z − ηg), softmax of α φᵀΣ_{i≤t} w^i. With
    `group_size` > 0 every iteration has samples of its own (paper: 2HT groups) and filters those.
    """

    rounds: int = eqx.field(static=True)
    refresh: int = eqx.field(static=True)
    optimistic: bool = eqx.field(static=True)
    group_size: int = eqx.field(static=True)
    robust_means: str = eqx.field(static=True)
    filter_steps: int = eqx.field(static=True)

    def init(self, problem: SaddleProblem, *, key: PRNGKeyArray | None) -> SaddleState:
        warm = problem.start
        zero = jnp.zeros_like(warm.at)
        point = SaddlePoint(warm.at, zero)
        unknown = jnp.full(self.rounds, jnp.inf, zero.dtype)
        return SaddleState(
            now=point,
            before=point,
            step_size=jnp.where(problem.step_size > 0, problem.step_size, warm.step_size),
            summed_w=warm.summed_w,
            logits=jnp.zeros((self.rounds * self.refresh, *zero.shape[1:]), zero.dtype),
            means=SaddlePoint(zero, zero),
            weights=warm.weights,
            gaps=unknown,
            residuals=unknown,
            count=jnp.zeros((), jnp.int32),
        )

    def step(self, problem: SaddleProblem, state: SaddleState, *, key: PRNGKeyArray | None) -> SaddleState:
        weights = state.weights if self.group_size else self._refiltered(problem, state)
        moments = game_moments(problem.game, weights)
        # The old gradient belongs to the old moments: start as if the point had stood still.
        here = SaddlePoint(state.now.at, self._slope(problem, moments, state)[0])
        state = eqx.tree_at(lambda s: (s.now, s.before, s.weights), state, (here, here, weights))

        def iteration(_, s):
            return self._iterate(problem, moments, s)

        state = jax.lax.fori_loop(0, self.refresh, iteration, state)
        gap, residual = convergence(problem, moments, state.means)
        index = state.count // self.refresh - 1
        both = (state.gaps.at[index].set(gap), state.residuals.at[index].set(residual))
        return eqx.tree_at(lambda s: (s.gaps, s.residuals), state, both)

    def terminate(self, problem: SaddleProblem, state: SaddleState) -> Int[Array, ""]:
        # An unbounded player may run off to infinity before there is a NaN.
        lost = ~jnp.all(jnp.isfinite(state.now.at))
        return jnp.where(lost, Status.NONFINITE.array(), Status.RUNNING.array())

    def _logits(self, problem: SaddleProblem, state: SaddleState):
        ahead = state.now.at[0] if self.optimistic else 0.0
        return problem.policy_step * (state.summed_w + ahead)

    def _slope(self, problem: SaddleProblem, moments: GameMoments, state: SaddleState):
        """(gradients of both players at the current point, the policy's logits)."""
        game, (w, beta) = problem.game, state.now.at
        logits = self._logits(problem, state)
        tables = policy_tables(game.table, logits, w)
        if self.group_size:
            down, up = split_gradients(game, state.count, self.group_size, problem.theta, w, beta, tables)
        else:
            down = descent_gradient(moments, beta, tables.feature)
            up = ascent_gradient(moments, problem.theta, w, tables.value)
        return jnp.stack([down, -up]), logits

    def _refiltered(self, problem: SaddleProblem, state: SaddleState):
        game, (w, beta) = problem.game, state.now.at
        tables = policy_tables(game.table, self._logits(problem, state), w)
        if self.robust_means == "residual":
            return clip_residuals(game, problem.theta, tables)
        return filter_gradients(game, state.weights, problem.theta, w, beta, tables, self.filter_steps)

    def _iterate(self, problem: SaddleProblem, moments: GameMoments, state: SaddleState) -> SaddleState:
        slope, logits = self._slope(problem, moments, state)
        now, before = SaddlePoint(state.now.at, slope), state.before
        rate = self._rate(problem, state, now)
        move = rate * slope
        if self.optimistic:
            move = move + state.step_size * (slope - before.slope)
        target = now.at - problem.balance[:, None, None] * move
        w = jax.vmap(lambda w_h: project_ball(w_h, problem.radius_w))(target[0])
        beta = project_ball(target[1].reshape(-1), problem.radius_beta).reshape(w.shape)
        share = (problem.averaging + 1.0) / (state.count + 1.0 + problem.averaging)
        means = jax.tree.map(lambda m, x: m + share * (x - m), state.means, SaddlePoint(now.at, slope))
        return SaddleState(
            now=SaddlePoint(jnp.stack([w, beta]), slope),
            before=now,
            step_size=rate,
            summed_w=state.summed_w + now.at[0],
            logits=state.logits.at[state.count].set(logits),
            means=means,
            weights=state.weights,
            gaps=state.gaps,
            residuals=state.residuals,
            count=state.count + 1,
        )

    def _rate(self, problem: SaddleProblem, state: SaddleState, now: SaddlePoint):
        """η as given, or grown by `GROWTH` but no more than the local Lipschitz constant allows."""
        if not self.optimistic or self.group_size:
            return state.step_size
        moved = jnp.linalg.norm(now.at - state.before.at)
        bent = jnp.linalg.norm(now.slope - state.before.slope)
        known = (moved > 0) & (bent > 0)
        limit = LIPSCHITZ_SHARE * moved / jnp.where(known, bent, 1.0)
        adapted = jnp.where(known, jnp.minimum(GROWTH * state.step_size, limit), state.step_size)
        return jnp.where(problem.step_size > 0, state.step_size, adapted)


def convergence(problem: SaddleProblem, moments: GameMoments, means: SaddlePoint):
    """(duality gap, flow residual) of the averages.

    gap = max over β, π of L(β, π; w̄) − min over w of the average over t of L(β_t, π_t; w), both over their balls:
    ρᵀmax_a φᵀw̄_1 + ‖∇β‖·radius − [Σ_h⟨θ_h, R_hᵀβ̄_h⟩ − radius_w·Σ_h‖mean ∇w_h‖], the policy being greedy for w̄.
    residual = ‖mean ∇w‖₂: how far the averages are from a flow.
    """
    game, (w, beta) = problem.game, means.at
    worth = einsum("sad,hd->hsa", game.table, w)
    value = jnp.max(worth, axis=-1)
    upper = matmul(moments.initial, value[0])
    upper += problem.radius_beta * jnp.linalg.norm(ascent_gradient(moments, problem.theta, w, value))
    earned = einsum("hd,hdp,hp->", beta, moments.reward, problem.theta)
    lower = earned - problem.radius_w * jnp.sum(jnp.linalg.norm(means.slope[0], axis=-1))
    return upper - lower, jnp.linalg.norm(means.slope[0])


def leave_behind(state: SaddleState) -> WarmSaddle:
    """The warm start that this game gives the next."""
    remembered = jnp.minimum(state.count, REMEMBERED) * state.means.at[0]
    return WarmSaddle(state.now.at, state.step_size, remembered, state.weights)
