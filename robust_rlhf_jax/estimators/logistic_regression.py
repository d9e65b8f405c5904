"""Maximum likelihood for weighted logistic labels over a ball: damped Newton, exact constraint."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.iterate import Status, iterate
from robust_rlhf_jax.kernels.ball import ball_stationarity, newton_point, project_ball
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.kernels.logistic import curvature_at, margins_of, value_gradient_at

MAX_NEWTON_STEPS = 40
MAX_HALVINGS = 12
# A step that shrinks the gradient to less than this share earns its curvature another step.
REUSE_BELOW = 0.3
# Where it leaves this many rows a parameter, every STRIDE-th row gives the curvature to within √(k·STRIDE/n).
STRIDE, SAMPLED_ROWS = 10, 100
KEEP, SAMPLE, RENEW = range(3)


class LogisticProblem(eqx.Module):
    """max over ‖θ‖ ≤ radius of Σ_n w_n log σ(o_nθᵀx_n)/Σ_n w_n, started at `start`.

    `projector` [k, k] maps to the span of the data: steps stay inside it, so that rounding never moves θ along a
    direction about which the data say nothing. `known_curvature` [k, k]: the curvature of a similar problem to
    begin with, or None. `row_size`: root mean square length of a row, the scale of the gradient's rounding.
    `start_margins` [n]: o_nθᵀx_n at a `start` that lies in the ball and the span already, or None.
    """

    x: Float[Array, "n k"]
    labels: Float[Array, " n"]
    weights: Float[Array, " n"]
    radius: Float[Array, ""]
    projector: Float[Array, "k k"]
    start: Float[Array, " k"]
    known_curvature: Float[Array, "k k"] | None = None
    row_size: Float[Array, ""] | float = 1.0
    start_margins: Float[Array, " n"] | None = None


class NewtonState(eqx.Module):
    """θ, the margins, value and gradient there, the curvature of the last model, and how the last step went.

    `stationarity`: norm of the projected gradient; `upkeep`: what the next step does about the curvature (keep it,
    take it from a sample of the rows, or from all); `gain`: last increase of the value.
    """

    theta: Float[Array, " k"]
    margins: Float[Array, " n"]
    value: Float[Array, ""]
    gradient: Float[Array, " k"]
    stationarity: Float[Array, ""]
    curvature: Float[Array, "k k"]
    upkeep: Int[Array, ""]
    gain: Float[Array, ""]


class BallNewton(eqx.Module):
    """Newton's method on the concave log-likelihood; the quadratic model is solved on the ball exactly.

    The curvature, by far the dearest part, is kept for as long as it earns its keep (Shamanskii 1967), and taken
    from a sample of the rows before it is taken from all (Erdogdu & Montanari 2015). The segment from θ to the
    model's maximiser lies in the ball, so halving the step keeps feasibility.
    """

    def init(self, problem: LogisticProblem, *, key) -> NewtonState:
        k = problem.x.shape[1]
        known = problem.known_curvature
        infinity = jnp.asarray(jnp.inf, problem.x.dtype)
        kept = jnp.zeros((k, k), problem.x.dtype) if known is None else known
        start, margins = problem.start, problem.start_margins
        if margins is None:
            start = project_ball(matmul(problem.projector, start), problem.radius)
            margins = margins_of(start, problem.x, problem.labels)
        value, gradient = value_gradient_at(margins, problem.x, problem.labels, problem.weights)
        at = (start, margins, value, gradient)
        upkeep = KEEP if known is not None else _cheapest(problem)
        return self._state(problem, at, kept, jnp.asarray(upkeep, jnp.int32), infinity)

    def step(self, problem: LogisticProblem, state: NewtonState, *, key) -> NewtonState:
        c = jax.lax.switch(
            state.upkeep,
            [
                lambda: state.curvature,
                lambda: _sampled_curvature(problem, state.margins),
                lambda: curvature_at(state.margins, problem.x, problem.weights),
            ],
        )
        target = newton_point(state.theta, state.gradient, c, problem.radius)
        move = matmul(problem.projector, target - state.theta)
        scale, at = _backtrack(problem, state, move)
        new = self._state(problem, at, c, jnp.asarray(KEEP, jnp.int32), at[2] - state.value)
        # The gain of a Newton step bounds what is left; that of a step with another curvature does not unless
        # the gradient agrees, and its failure only says that the curvature is too old or too rough.
        conclusive = (state.upkeep == RENEW) | (new.stationarity <= 4 * _gradient_floor(problem))
        new = eqx.tree_at(lambda s: s.gain, new, jnp.where(conclusive, new.gain, jnp.inf))
        slow = (new.stationarity > REUSE_BELOW * state.stationarity) | (scale < 1)
        better = jnp.where(state.upkeep == KEEP, _cheapest(problem), RENEW)
        return eqx.tree_at(lambda s: s.upkeep, new, jnp.where(slow, better, KEEP).astype(jnp.int32))

    def terminate(self, problem: LogisticProblem, state: NewtonState) -> Int[Array, ""]:
        done = state.stationarity <= _gradient_floor(problem)
        stalled = state.gain <= _rounding(state.value)
        return jnp.where(done | stalled, Status.CONVERGED.array(), Status.RUNNING.array())

    def extract(self, problem: LogisticProblem, state: NewtonState) -> Float[Array, " k"]:
        return state.theta

    def _state(self, problem, at, c, upkeep, gain):
        theta, margins, value, gradient = at
        norm = ball_stationarity(theta, matmul(problem.projector, gradient), problem.radius)
        return NewtonState(theta, margins, value, gradient, norm, c, upkeep, gain)


def sample_suffices(x) -> bool:
    """Whether every STRIDE-th row of x [n, k] estimates a second moment well."""
    n, k = x.shape
    return n >= SAMPLED_ROWS * STRIDE * k


def _cheapest(problem: LogisticProblem) -> int:
    return SAMPLE if sample_suffices(problem.x) else RENEW


def _sampled_curvature(problem: LogisticProblem, margins):
    part = slice(None, None, STRIDE)
    return curvature_at(margins[part], problem.x[part], problem.weights[part])


def _backtrack(problem: LogisticProblem, state: NewtonState, move):
    """(step length, (θ, margins, value, gradient) there): halve until the value rises as the slope promises.

    0 and the old point if it never does. The gradient comes with every trial, since the first trial is almost
    always the last.
    """
    slope = jnp.dot(state.gradient, move)

    def at(scale):
        theta = state.theta + scale * move
        margins = margins_of(theta, problem.x, problem.labels)
        return theta, margins, *value_gradient_at(margins, problem.x, problem.labels, problem.weights)

    def too_long(carry):
        halvings, scale, (_, _, value, _) = carry
        enough = value >= state.value + 1e-4 * scale * slope - _rounding(state.value)
        return ~enough & (halvings < MAX_HALVINGS)

    def halve(carry):
        halvings, scale, _ = carry
        return halvings + 1, 0.5 * scale, at(0.5 * scale)

    one = jnp.ones((), problem.x.dtype)
    halvings, scale, there = jax.lax.while_loop(too_long, halve, (0, one, at(one)))
    failed = halvings >= MAX_HALVINGS
    here = (state.theta, state.margins, state.value, state.gradient)
    stay = jax.tree.map(lambda old, new: jnp.where(failed, old, new), here, there)
    return jnp.where(failed, 0.0, scale), stay


def _gradient_floor(problem: LogisticProblem):
    """Projected-gradient norm that counts as zero: 32 rounding errors of a mean of rows of x."""
    return 32 * jnp.finfo(problem.x.dtype).eps * problem.row_size


def _rounding(value):
    """What a mean of log-likelihoods can resolve in its own precision."""
    return 4 * jnp.finfo(value.dtype).eps * (1.0 + jnp.abs(value))


class LogisticFit(NamedTuple):
    """`theta` [k]; `value`: mean log-likelihood; `stationarity`: projected-gradient norm; `steps`: Newton steps;
    `curvature` [k, k] of the last model; `margins` [n] at θ; `status`.
    """

    theta: Float[Array, " k"]
    value: Float[Array, ""]
    stationarity: Float[Array, ""]
    steps: Int[Array, ""]
    curvature: Float[Array, "k k"]
    margins: Float[Array, " n"]
    status: Int[Array, ""]


def fit_logistic(problem: LogisticProblem, max_steps: int = MAX_NEWTON_STEPS) -> LogisticFit:
    """Solve a `LogisticProblem` by `BallNewton`."""
    end = iterate(BallNewton(), problem, key=jax.random.key(0), max_steps=max_steps)
    state = end.state
    return LogisticFit(
        state.theta,
        state.value,
        state.stationarity,
        end.step,
        state.curvature,
        state.margins,
        end.status,
    )
