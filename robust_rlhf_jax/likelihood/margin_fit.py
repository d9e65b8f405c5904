"""Minimise a mean of margin losses over a ball: damped Newton, the ball exact, on the span of the rows."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from robust_rlhf_jax._iterate import Status, iterate
from robust_rlhf_jax.kernels.ball import ball_residual, newton_point, project_ball
from robust_rlhf_jax.kernels.halving import longest_step
from robust_rlhf_jax.kernels.linalg import matmul, weighted_gram, weighted_sum
from robust_rlhf_jax.kernels.logistic import margins_of
from robust_rlhf_jax.kernels.rounding import rounding_of
from robust_rlhf_jax.moments.scaled_span import scaled_span

from .logistic_regression import NEWTON_LIMIT
from .margin_losses import MarginLoss

MAX_STEPS = 200
MAX_HALVINGS = 20


class MarginProblem(eqx.Module):
    """min over ‖θ‖ ≤ radius of Σ_n w_n ρ(o_nθᵀx_n)/Σ_n w_n, started at `start`.

    `projector` [k, k] maps to the span of the rows, where θ stays; `column_size` [k]: root mean square entries, the
    scale of the gradient's rounding. `margin_problem` makes both.
    """

    loss: MarginLoss
    x: Float[Array, "n k"]
    labels: Float[Array, " n"]
    weights: Float[Array, " n"]
    radius: Float[Array, ""]
    projector: Float[Array, "k k"]
    column_size: Float[Array, " k"]
    start: Float[Array, " k"]

    def at(self, theta: Float[Array, " k"]):
        """(θ, margins [n], value, gradient [k])."""
        margins = margins_of(theta, self.x, self.labels)
        share = self.weights / jnp.sum(self.weights)
        gradient = weighted_sum(share * self.labels * self.loss.slope(margins), self.x)
        return theta, margins, matmul(share, self.loss.value(margins)), matmul(self.projector, gradient)

    def curvature(self, theta: Float[Array, " k"], margins: Float[Array, " n"]) -> Float[Array, "k k"]:
        return weighted_gram(self.x, self.weights * self.loss.curvature(margins) / jnp.sum(self.weights))


def margin_problem(
    loss: MarginLoss, x: Float[Array, "n k"], labels: Float[Array, " n"], radius: float | Float[Array, ""]
) -> MarginProblem:
    """The problem with every pair counted once, started at θ = 0, in the precision of x.

    **Raises:** ValueError for more than `NEWTON_LIMIT` columns: the solver forms a curvature matrix.
    """
    if x.shape[1] > NEWTON_LIMIT:
        raise ValueError(
            f"x has {x.shape[1]} columns; this estimator forms a curvature matrix of at most {NEWTON_LIMIT}: "
            "project x on fewer directions."
        )
    ones, zero = jnp.ones(len(x), x.dtype), jnp.zeros(x.shape[1], x.dtype)
    span = scaled_span(x, ones)
    radius = jnp.asarray(radius, x.dtype)
    projector = span.projector()
    return MarginProblem(loss, x, labels.astype(x.dtype), ones, radius, projector, span.column_size, zero)


class MarginState(eqx.Module):
    """θ, the margins, value and gradient there, the norm of the projected gradient, and the last fall of the value."""

    theta: Float[Array, " k"]
    margins: Float[Array, " n"]
    value: Float[Array, ""]
    gradient: Float[Array, " k"]
    stationarity: Float[Array, ""]
    fall: Float[Array, ""]


class MarginNewton(eqx.Module):
    """Newton's method with the quadratic model solved on the ball (`kernels.ball.newton_point`) and halved steps."""

    def init(self, problem: MarginProblem, *, key: PRNGKeyArray | None) -> MarginState:
        start = project_ball(matmul(problem.projector, problem.start), problem.radius)
        return _state(problem, problem.at(start), jnp.asarray(jnp.inf, problem.x.dtype))

    def step(self, problem: MarginProblem, state: MarginState, *, key: PRNGKeyArray | None) -> MarginState:
        curvature = problem.curvature(state.theta, state.margins)
        target = newton_point(state.theta, -state.gradient, curvature, problem.radius)
        at = _backtrack(problem, state, matmul(problem.projector, target - state.theta))
        return _state(problem, at, state.value - at[2])

    def terminate(self, problem: MarginProblem, state: MarginState) -> Int[Array, ""]:
        floor = 32 * jnp.finfo(problem.x.dtype).eps * problem.x.shape[1] ** 0.5
        done = (state.stationarity <= floor) | (state.fall <= rounding_of(state.value))
        return jnp.where(done, Status.CONVERGED.array(), Status.RUNNING.array())


def _state(problem: MarginProblem, at: Any, fall: Float[Array, ""]) -> MarginState:
    theta, margins, value, gradient = at
    norm = jnp.linalg.norm(ball_residual(theta, -gradient, problem.radius) / problem.column_size)
    return MarginState(theta, margins, value, gradient, norm, fall)


def _backtrack(problem: MarginProblem, state: MarginState, move: Float[Array, " k"]):
    """`problem.at` the longest of θ + move, θ + move/2, … that falls as the slope promises; θ if none does."""
    slope, slack = matmul(state.gradient, move), rounding_of(state.value)

    def falls(scale, at):
        return at[2] <= state.value + 1e-4 * scale * slope + slack

    def at(scale):
        return problem.at(state.theta + scale * move)

    halvings, _, there = longest_step(at, falls, MAX_HALVINGS, move.dtype)
    here = (state.theta, state.margins, state.value, state.gradient)
    return jax.tree.map(lambda old, new: jnp.where(halvings >= MAX_HALVINGS, old, new), here, there)


class MarginFit(NamedTuple):
    """`theta` [k]; `margins` [n] there; `value`: the mean loss; `stationarity`: norm of the projected gradient;
    `steps`; `status`.
    """

    theta: Float[Array, " k"]
    margins: Float[Array, " n"]
    value: Float[Array, ""]
    stationarity: Float[Array, ""]
    steps: Int[Array, ""]
    status: Int[Array, ""]


def fit_margin_loss(problem: MarginProblem, max_steps: int = MAX_STEPS) -> MarginFit:
    """Solve a `MarginProblem`; for a loss that isn't convex, a stationary point that is no worse than the start."""
    end = iterate(MarginNewton(), problem, max_steps=max_steps)
    s = end.state
    return MarginFit(s.theta, s.margins, s.value, s.stationarity, end.step, end.status)
