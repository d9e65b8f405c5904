"""Maximum likelihood for weighted logistic labels over a ball: damped Newton, exact constraint."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.iterate import Status, iterate
from robust_rlhf_jax.kernels.ball import ball_stationarity, newton_point
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.kernels.logistic import mean_log_likelihood, value_gradient_hessian

MAX_NEWTON_STEPS = 30
MAX_HALVINGS = 12


class LogisticProblem(eqx.Module):
    """max over ‖θ‖ ≤ radius of Σ_n w_n log σ(o_nθᵀx_n)/Σ_n w_n, started at `start`.

    `projector` [k, k] maps to the span of the data: steps stay inside it, so that rounding never moves θ along a
    direction about which the data say nothing.
    """

    x: Float[Array, "n k"]
    labels: Float[Array, " n"]
    weights: Float[Array, " n"]
    radius: Float[Array, ""]
    projector: Float[Array, "k k"]
    start: Float[Array, " k"]


class NewtonState(eqx.Module):
    """θ with the value, gradient and curvature there, and the last gain in value."""

    theta: Float[Array, " k"]
    value: Float[Array, ""]
    gradient: Float[Array, " k"]
    curvature: Float[Array, "k k"]
    gain: Float[Array, ""]


class BallNewton(eqx.Module):
    """Newton's method on the concave log-likelihood; the quadratic model is solved on the ball exactly.

    The segment from θ to the model's maximiser lies in the ball, so halving the step keeps feasibility.
    """

    def init(self, problem: LogisticProblem, *, key) -> NewtonState:
        return self._at(problem, problem.start, jnp.asarray(jnp.inf, problem.x.dtype))

    def step(self, problem: LogisticProblem, state: NewtonState, *, key) -> NewtonState:
        target = newton_point(state.theta, state.gradient, state.curvature, problem.radius)
        move = matmul(problem.projector, target - state.theta)
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
        scale = jnp.where(halvings < MAX_HALVINGS, scale, 0.0)
        return self._at(problem, state.theta + scale * move, value - state.value)

    def terminate(self, problem: LogisticProblem, state: NewtonState) -> Int[Array, ""]:
        done = self.stationarity(problem, state) <= gradient_tolerance(problem)
        stalled = state.gain <= _rounding(state.value)  # Newton's last gain bounds all that is left
        return jnp.where(done | stalled, Status.CONVERGED.array(), Status.RUNNING.array())

    def extract(self, problem: LogisticProblem, state: NewtonState) -> Float[Array, " k"]:
        return state.theta

    def stationarity(self, problem: LogisticProblem, state: NewtonState) -> Float[Array, ""]:
        return ball_stationarity(state.theta, matmul(problem.projector, state.gradient), problem.radius)

    def _at(self, problem, theta, gain):
        parts = value_gradient_hessian(theta, problem.x, problem.labels, problem.weights)
        return NewtonState(theta, *parts, gain)


def _rounding(value):
    """What a mean of log-likelihoods can resolve in its own precision."""
    return 8 * jnp.finfo(value.dtype).eps * (1.0 + jnp.abs(value))


def gradient_tolerance(problem: LogisticProblem) -> Float[Array, ""]:
    """Projected-gradient norm that counts as zero: 32 rounding errors of a mean of rows of x."""
    size = jnp.sqrt(jnp.dot(problem.weights, jnp.sum(problem.x**2, axis=1)) / jnp.sum(problem.weights))
    return 32 * jnp.finfo(problem.x.dtype).eps * size


def fit_logistic(problem: LogisticProblem, max_steps: int = MAX_NEWTON_STEPS):
    """Solve a `LogisticProblem`.

    **Returns:** (θ [k], log-likelihood, projected-gradient norm, number of Newton steps, status).
    """
    solver = BallNewton()
    end = iterate(solver, problem, key=jax.random.key(0), max_steps=max_steps)
    norm = solver.stationarity(problem, end.state)
    return end.state.theta, end.state.value, norm, end.step, end.status
