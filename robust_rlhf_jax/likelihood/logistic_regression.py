"""Maximum likelihood for weighted logistic labels over a ball: damped Newton, or L-BFGS where k is large."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from robust_rlhf_jax._iterate import Status, iterate
from robust_rlhf_jax.kernels.ball import newton_point
from robust_rlhf_jax.kernels.logistic import curvature_at
from robust_rlhf_jax.kernels.rounding import rounding_of

from .logistic_lbfgs import MAX_LBFGS_STEPS, BallLBFGS
from .logistic_problem import LogisticProblem, backtrack, begin

MAX_NEWTON_STEPS = 40
# Widest problem [k] whose curvature is formed and factored.
NEWTON_LIMIT = 2000
# A step that shrinks the gradient to less than this share earns its curvature another step.
REUSE_BELOW = 0.3
# If this many rows a parameter remain, every STRIDE-th row gives the curvature to within √(k·STRIDE/n).
STRIDE, SAMPLED_ROWS = 10, 100
KEEP, SAMPLE, RENEW = range(3)


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

    The curvature, by far the most expensive part, is kept while it pays (Shamanskii 1967), and taken
    from a sample of the rows before it is taken from all (Erdogdu & Montanari 2015). The segment from θ to the
    model's maximiser lies in the ball, so halving the step keeps feasibility.
    """

    def init(self, problem: LogisticProblem, *, key: PRNGKeyArray | None) -> NewtonState:
        k = problem.x.shape[1]
        known = problem.known_curvature
        infinity = jnp.asarray(jnp.inf, problem.x.dtype)
        kept = jnp.zeros((k, k), problem.x.dtype) if known is None else known
        upkeep = jnp.asarray(KEEP if known is not None else _cheapest(problem), jnp.int32)
        return self._state(problem, begin(problem), kept, upkeep, infinity)

    def step(self, problem: LogisticProblem, state: NewtonState, *, key: PRNGKeyArray | None) -> NewtonState:
        c = jax.lax.switch(
            state.upkeep,
            [
                lambda: state.curvature,
                lambda: _sampled_curvature(problem, state.margins),
                lambda: curvature_at(state.margins, problem.x, problem.weights),
            ],
        )
        target = newton_point(state.theta, state.gradient, c, problem.radius)
        move = problem.in_span(target - state.theta)
        scale, at = backtrack(problem, state, move, rounding_of(state.value))
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
        stalled = state.gain <= rounding_of(state.value)
        return jnp.where(done | stalled, Status.CONVERGED.array(), Status.RUNNING.array())

    def _state(
        self,
        problem: LogisticProblem,
        at: tuple[Float[Array, " k"], Float[Array, " n"], Float[Array, ""], Float[Array, " k"]],
        c: Float[Array, "k k"],
        upkeep: Int[Array, ""],
        gain: Float[Array, ""],
    ):
        theta, margins, value, gradient = at
        norm = problem.stationarity(theta, gradient)
        return NewtonState(theta, margins, value, gradient, norm, c, upkeep, gain)


def sample_suffices(x: Float[Array, "n k"]) -> bool:
    """Whether every STRIDE-th row of x [n, k] estimates a second moment well."""
    n, k = x.shape
    return n >= SAMPLED_ROWS * STRIDE * k


def _cheapest(problem: LogisticProblem) -> int:
    return SAMPLE if sample_suffices(problem.x) else RENEW


def _sampled_curvature(problem: LogisticProblem, margins: Float[Array, " n"]):
    part = slice(None, None, STRIDE)
    return curvature_at(margins[part], problem.x[part], problem.weights[part])


def _gradient_floor(problem: LogisticProblem):
    """Projected-gradient norm that counts as zero: 32 rounding errors of a mean of rows of x."""
    k = problem.x.shape[1]
    size = problem.row_size if problem.column_size is None else k**0.5
    return 32 * jnp.finfo(problem.x.dtype).eps * size


class LogisticFit(NamedTuple):
    """`theta` [k]; `value`: mean log-likelihood; `stationarity`: projected-gradient norm; `steps`: of the solver;
    `curvature` [k, k] of the last model, None from `BallLBFGS`; `margins` [n] at θ; `status`.
    """

    theta: Float[Array, " k"]
    value: Float[Array, ""]
    stationarity: Float[Array, ""]
    steps: Int[Array, ""]
    curvature: Float[Array, "k k"] | None
    margins: Float[Array, " n"]
    status: Int[Array, ""]


def fit_logistic(
    problem: LogisticProblem, max_steps: int | None = None, *, newton_limit: int = NEWTON_LIMIT
) -> LogisticFit:
    """Solve a `LogisticProblem`: by `BallNewton` up to k = newton_limit parameters, by `BallLBFGS` above.

    `max_steps`: None for `MAX_NEWTON_STEPS` or `MAX_LBFGS_STEPS`.

    **Example:**

    >>> import jax.numpy as jnp
    >>> from robust_rlhf_jax.likelihood import LogisticProblem, fit_logistic
    >>> x, labels = jnp.array([[1.0], [1.0], [1.0]]), jnp.array([1.0, 1.0, -1.0])
    >>> problem = LogisticProblem(x, labels, jnp.ones(3), jnp.asarray(5.0), projector=None, start=jnp.zeros(1))
    >>> round(float(fit_logistic(problem).theta[0]), 3)  # log 2
    0.693
    """
    newton = problem.x.shape[1] <= newton_limit
    solver, limit = (BallNewton(), MAX_NEWTON_STEPS) if newton else (BallLBFGS(), MAX_LBFGS_STEPS)
    limit = limit if max_steps is None else max_steps
    end = iterate(solver, problem, max_steps=limit)
    state = end.state
    return LogisticFit(
        state.theta,
        state.value,
        state.stationarity,
        end.step,
        state.curvature if newton else None,
        state.margins,
        end.status,
    )
