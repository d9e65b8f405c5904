"""Maximum likelihood for weighted logistic labels over a ball: damped Newton, exact constraint."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from robust_rlhf_jax.iterate import Status, iterate
from robust_rlhf_jax.kernels.ball import ball_stationarity, newton_point
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.kernels.logistic import curvature, mean_log_likelihood, value_gradient

MAX_NEWTON_STEPS = 40
MAX_HALVINGS = 12
# A step that shrinks the gradient to less than this share earns its curvature another step.
REUSE_BELOW = 0.25


class LogisticProblem(eqx.Module):
    """max over ‖θ‖ ≤ radius of Σ_n w_n log σ(o_nθᵀx_n)/Σ_n w_n, started at `start`.

    `projector` [k, k] maps to the span of the data: steps stay inside it, so that rounding never moves θ along a
    direction about which the data say nothing. `known_curvature` [k, k]: the curvature of a similar problem to
    begin with, or None.
    """

    x: Float[Array, "n k"]
    labels: Float[Array, " n"]
    weights: Float[Array, " n"]
    radius: Float[Array, ""]
    projector: Float[Array, "k k"]
    start: Float[Array, " k"]
    known_curvature: Float[Array, "k k"] | None = None


class NewtonState(eqx.Module):
    """θ, the value and gradient there, the curvature of the last model, and how the last step went.

    `stationarity`: norm of the projected gradient; `stale`: whether the next step must compute the curvature
    afresh; `gain`: last increase of the value.
    """

    theta: Float[Array, " k"]
    value: Float[Array, ""]
    gradient: Float[Array, " k"]
    stationarity: Float[Array, ""]
    curvature: Float[Array, "k k"]
    stale: Bool[Array, ""]
    gain: Float[Array, ""]


class BallNewton(eqx.Module):
    """Newton's method on the concave log-likelihood; the quadratic model is solved on the ball exactly.

    The curvature, by far the dearest part, is kept for as long as it earns its keep (Shamanskii 1967). The
    segment from θ to the model's maximiser lies in the ball, so halving the step keeps feasibility.
    """

    def init(self, problem: LogisticProblem, *, key) -> NewtonState:
        k = problem.x.shape[1]
        known = problem.known_curvature
        infinity = jnp.asarray(jnp.inf, problem.x.dtype)
        kept = jnp.zeros((k, k), problem.x.dtype) if known is None else known
        return self._at(problem, problem.start, kept, jnp.asarray(known is None), infinity)

    def step(self, problem: LogisticProblem, state: NewtonState, *, key) -> NewtonState:
        c = jax.lax.cond(
            state.stale,
            lambda: curvature(state.theta, problem.x, problem.labels, problem.weights),
            lambda: state.curvature,
        )
        target = newton_point(state.theta, state.gradient, c, problem.radius)
        move = matmul(problem.projector, target - state.theta)
        scale, value = _backtrack(problem, state, move)
        # A failed step with an old curvature says nothing about the optimum: compute it and try again.
        gain = jnp.where((scale == 0) & ~state.stale, jnp.inf, value - state.value)
        new = self._at(problem, state.theta + scale * move, c, jnp.asarray(False), gain)
        slow = (new.stationarity > REUSE_BELOW * state.stationarity) | (scale < 1)
        return eqx.tree_at(lambda s: s.stale, new, slow)

    def terminate(self, problem: LogisticProblem, state: NewtonState) -> Int[Array, ""]:
        done = state.stationarity <= gradient_tolerance(problem)
        stalled = state.gain <= _rounding(state.value)  # a Newton step's gain bounds what is left
        return jnp.where(done | stalled, Status.CONVERGED.array(), Status.RUNNING.array())

    def extract(self, problem: LogisticProblem, state: NewtonState) -> Float[Array, " k"]:
        return state.theta

    def _at(self, problem, theta, c, stale, gain):
        value, gradient = value_gradient(theta, problem.x, problem.labels, problem.weights)
        norm = ball_stationarity(theta, matmul(problem.projector, gradient), problem.radius)
        return NewtonState(theta, value, gradient, norm, c, stale, gain)


def _backtrack(problem: LogisticProblem, state: NewtonState, move):
    """(step length, value there): halve until the value rises as the slope promises; 0 if it never does."""
    slope = jnp.dot(state.gradient, move)

    def value_at(scale):
        theta = state.theta + scale * move
        return mean_log_likelihood(theta, problem.x, problem.labels, problem.weights)

    def too_long(carry):
        halvings, scale, value = carry
        enough = value >= state.value + 1e-4 * scale * slope - _rounding(state.value)
        return ~enough & (halvings < MAX_HALVINGS)

    def halve(carry):
        halvings, scale, _ = carry
        return halvings + 1, 0.5 * scale, value_at(0.5 * scale)

    one = jnp.ones((), problem.x.dtype)
    halvings, scale, value = jax.lax.while_loop(too_long, halve, (0, one, value_at(one)))
    failed = halvings >= MAX_HALVINGS
    return jnp.where(failed, 0.0, scale), jnp.where(failed, state.value, value)


def _rounding(value):
    """What a mean of log-likelihoods can resolve in its own precision."""
    return 4 * jnp.finfo(value.dtype).eps * (1.0 + jnp.abs(value))


def gradient_tolerance(problem: LogisticProblem) -> Float[Array, ""]:
    """Projected-gradient norm that counts as zero: 32 rounding errors of a mean of rows of x."""
    size = jnp.sqrt(jnp.dot(problem.weights, jnp.sum(problem.x**2, axis=1)) / jnp.sum(problem.weights))
    return 32 * jnp.finfo(problem.x.dtype).eps * size


class LogisticFit(NamedTuple):
    """`theta` [k]; `value`: mean log-likelihood; `stationarity`: projected-gradient norm; `steps`: Newton steps;
    `curvature` [k, k] of the last model; `status`.
    """

    theta: Float[Array, " k"]
    value: Float[Array, ""]
    stationarity: Float[Array, ""]
    steps: Int[Array, ""]
    curvature: Float[Array, "k k"]
    status: Int[Array, ""]


def fit_logistic(problem: LogisticProblem, max_steps: int = MAX_NEWTON_STEPS) -> LogisticFit:
    """Solve a `LogisticProblem` by `BallNewton`."""
    end = iterate(BallNewton(), problem, key=jax.random.key(0), max_steps=max_steps)
    state = end.state
    return LogisticFit(state.theta, state.value, state.stationarity, end.step, state.curvature, end.status)
