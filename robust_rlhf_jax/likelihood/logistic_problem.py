"""Weighted logistic likelihood over a ball: the problem, where it starts, the line search, what rounding hides."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from robust_rlhf_jax.kernels.ball import ball_residual, project_ball
from robust_rlhf_jax.kernels.halving import longest_step
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.kernels.logistic import margins_of, value_gradient_at
from robust_rlhf_jax.module import Module

MAX_HALVINGS = 12


class LogisticProblem(Module):
    """max over ‖θ‖ ≤ radius of Σ_n w_n log σ(o_nθᵀx_n)/Σ_n w_n, started at `start`.

    `projector` [k, k] maps to the span of the data: steps stay inside it, so that rounding never moves θ along a
    direction about which the data say nothing; with None the start must lie in the span. `known_curvature` [k, k]:
    the curvature of a similar problem to begin with, or None. `row_size`: root mean square length of a row, the
    scale of the gradient's rounding; `column_size` [k]: that of a column, None for 1. `start_margins` [n]: o_nθᵀx_n at
    a `start` that lies in the ball and the span already, or None.

    **Example:**

    >>> import jax.numpy as jnp
    >>> from robust_rlhf_jax.likelihood import LogisticProblem
    >>> x, labels = jnp.array([[1.0], [1.0], [1.0]]), jnp.array([1.0, 1.0, -1.0])
    >>> problem = LogisticProblem(x, labels, jnp.ones(3), jnp.asarray(5.0), projector=None, start=jnp.zeros(1))
    >>> problem.in_span(problem.start).tolist()
    [0.0]
    """

    x: Float[Array, "n k"]
    labels: Float[Array, " n"]
    weights: Float[Array, " n"]
    radius: Float[Array, ""]
    projector: Float[Array, "k k"] | None
    start: Float[Array, " k"]
    known_curvature: Float[Array, "k k"] | None = None
    row_size: Float[Array, ""] | float = 1.0
    start_margins: Float[Array, " n"] | None = None
    column_size: Float[Array, " k"] | None = None

    def stationarity(self, theta: Float[Array, " k"], gradient: Float[Array, " k"]) -> Float[Array, ""]:
        """Norm of the projected gradient, each entry in units of its column: scaling the columns does not change it."""
        residual = ball_residual(theta, self.in_span(gradient), self.radius)
        return jnp.linalg.norm(residual if self.column_size is None else residual / self.column_size)

    def in_span(self, v: Float[Array, " k"]) -> Float[Array, " k"]:
        return v if self.projector is None else matmul(self.projector, v)


def begin(problem: LogisticProblem):
    """(θ, margins, value, gradient) at the start, moved into the span and the ball unless its margins vouch for it."""
    start, margins = problem.start, problem.start_margins
    if margins is None:
        start = project_ball(problem.in_span(start), problem.radius)
        margins = margins_of(start, problem.x, problem.labels)
    return start, margins, *value_gradient_at(margins, problem.x, problem.labels, problem.weights)


def backtrack(problem: LogisticProblem, state: Any, move: Float[Array, " k"], slack: Float[Array, ""]):
    """(step length, (θ, margins, value, gradient) there): halve until the value rises as the slope promises.

    0 and the old point if it never does. `slack`: what the value cannot resolve. The gradient comes with every
    trial, since the first trial is almost always the last.
    """
    slope = matmul(state.gradient, move)

    def at(scale):
        theta = state.theta + scale * move
        margins = margins_of(theta, problem.x, problem.labels)
        return theta, margins, *value_gradient_at(margins, problem.x, problem.labels, problem.weights)

    def rises(scale, point):
        return point[2] >= state.value + 1e-4 * scale * slope - slack

    halvings, scale, there = longest_step(at, rises, MAX_HALVINGS, problem.x.dtype)
    failed = halvings >= MAX_HALVINGS
    here = (state.theta, state.margins, state.value, state.gradient)
    stay = jax.tree.map(lambda old, new: jnp.where(failed, old, new), here, there)
    return jnp.where(failed, 0.0, scale), stay
