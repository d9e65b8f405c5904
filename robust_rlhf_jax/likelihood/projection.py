"""Projection on a likelihood-ratio confidence set, a ball cut by a likelihood bound: sequential quadratic programming.

`confidence.py` has the sets themselves and the projection on an ellipsoid.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from robust_rlhf_jax._iterate import Status, iterate
from robust_rlhf_jax.kernels.ball import project_ball
from robust_rlhf_jax.kernels.halfspace import minimise_quadratic_in_cut_ball
from robust_rlhf_jax.kernels.halving import longest_step
from robust_rlhf_jax.kernels.lapack import eigh
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.kernels.logistic import curvature, value_gradient

MAX_STEPS = 10  # with one curvature
MAX_ROUNDS = 12  # curvatures
MAX_HALVINGS = 10


def tolerance(theta: Float[Array, " k"]) -> Float[Array, ""]:
    """How far from the closest point a projection may end."""
    return 0.3 * jnp.sqrt(jnp.finfo(theta.dtype).eps) * (1.0 + jnp.linalg.norm(theta))


class WarmStart(NamedTuple):
    """Where the last projection ended: its point [k] and the multiplier of the likelihood bound.

    **Example:**

    >>> import jax, jax.numpy as jnp
    >>> from robust_rlhf_jax import likelihood
    >>> x = jax.random.normal(jax.random.key(0), (100, 2))
    >>> near = likelihood.confidence_set(x, jnp.sign(x[:, 0]), centre=jnp.array([2.0, 0.0]), zeta=0.05, radius=3.0)
    >>> last = near.project(jnp.array([0.0, 2.0])).warm
    >>> last.theta.shape, float(last.multiplier) > 0  # near.project(y, last) starts there
    ((2,), True)
    """

    theta: Float[Array, " k"]
    multiplier: Float[Array, ""]


class Projection(NamedTuple):
    """`theta` [k]; `multiplier` λ ≥ 0 of the likelihood bound; `solves`: quadratic programs, each with one pass
    over the data; `status`.

    **Example:**

    >>> import jax, jax.numpy as jnp
    >>> from robust_rlhf_jax import likelihood
    >>> x = jax.random.normal(jax.random.key(0), (100, 2))
    >>> near = likelihood.confidence_set(x, jnp.sign(x[:, 0]), centre=jnp.array([2.0, 0.0]), zeta=0.05, radius=3.0)
    >>> inside, outside = near.project(jnp.array([2.0, 0.1])), near.project(jnp.array([0.0, 2.0]))
    >>> float(inside.multiplier), float(outside.multiplier) > 0
    (0.0, True)
    """

    theta: Float[Array, " k"]
    multiplier: Float[Array, ""]
    solves: Int[Array, ""]
    status: Int[Array, ""]

    @property
    def warm(self) -> WarmStart:
        return WarmStart(self.theta, self.multiplier)


class ProjectionProblem(eqx.Module):
    """min ½‖θ − y‖² subject to ‖θ‖ ≤ radius and ℓ(θ) ≥ floor, ℓ the weighted mean log-likelihood (concave).

    `eigenvalues` [k], `eigenvectors` [k, k]: of ℓ's curvature somewhere near, for the quadratic models. `warm`: where
    to begin if the ball alone does not decide.
    """

    y: Float[Array, " k"]
    warm: WarmStart
    x: Float[Array, "n k"]
    labels: Float[Array, " n"]
    weights: Float[Array, " n"]
    floor: Float[Array, ""]
    radius: Float[Array, ""]
    eigenvalues: Float[Array, " k"]
    eigenvectors: Float[Array, "k k"]

    def likelihood(self, theta: Float[Array, " k"]):
        """(ℓ, ∇ℓ)."""
        return value_gradient(theta, self.x, self.labels, self.weights)


class ProjectionState(eqx.Module):
    """θ, the multiplier, ℓ and ∇ℓ there, the length of the last step, an estimate of how far the minimiser still is,
    and whether the model was feasible.
    """

    theta: Float[Array, " k"]
    multiplier: Float[Array, ""]
    value: Float[Array, ""]
    gradient: Float[Array, " k"]
    step_size: Float[Array, ""]
    left: Float[Array, ""]
    feasible: Array


class SequentialQuadratic(eqx.Module):
    """Newton's method on the optimality conditions (Wilson 1963): linearise ℓ, keep its curvature in the model.

    Each step minimises ½‖θ' − y‖² + ½λ(θ' − θ)ᵀC(θ' − θ) over the ball and ℓ + ∇ℓᵀ(θ' − θ) ≥ floor, exactly. ℓ is
    concave, so that the linear bound contains the true set. A step is halved until ½‖θ − y‖² + λ·max(0, floor −
    ℓ(θ)) falls.
    """

    def init(self, problem: ProjectionProblem, *, key: PRNGKeyArray | None) -> ProjectionState:
        nearest = project_ball(problem.y, problem.radius)
        zero, infinity = jnp.zeros((), problem.y.dtype), jnp.asarray(jnp.inf, problem.y.dtype)
        first = self._state(problem, nearest, zero, zero)
        warm = project_ball(problem.warm.theta, problem.radius)
        other = self._state(problem, warm, problem.warm.multiplier, infinity)
        done = first.value >= problem.floor
        return jax.tree.map(lambda a, b: jnp.where(done, a, b), first, other)

    def step(
        self, problem: ProjectionProblem, state: ProjectionState, *, key: PRNGKeyArray | None
    ) -> ProjectionState:
        target, feasible = _model_minimiser(problem, state)
        return self._search(problem, state, target, feasible)

    def terminate(self, problem: ProjectionProblem, state: ProjectionState) -> Int[Array, ""]:
        still = state.left <= tolerance(state.theta)
        ended = jnp.where(still, Status.CONVERGED.array(), Status.RUNNING.array())
        return jnp.where(state.feasible, ended, Status.INFEASIBLE.array())

    def _state(
        self,
        problem: ProjectionProblem,
        theta: Float[Array, " k"],
        multiplier: Float[Array, ""],
        step_size: Float[Array, ""],
    ) -> ProjectionState:
        value, gradient = problem.likelihood(theta)
        yes = jnp.asarray(True)
        step_size = step_size.astype(theta.dtype)
        return ProjectionState(theta, multiplier, value, gradient, step_size, step_size, yes)

    def _search(
        self, problem: ProjectionProblem, state: ProjectionState, target: Any, feasible: Bool[Array, ""]
    ) -> ProjectionState:
        move, multiplier = target.point - state.theta, target.multiplier

        def merit(theta, value):
            short = jnp.maximum(problem.floor - value, 0.0)
            return 0.5 * jnp.sum((theta - problem.y) ** 2) + multiplier * short

        start = merit(state.theta, state.value)
        rounding = 16 * jnp.finfo(start.dtype).eps * (1.0 + start + multiplier)

        def at(scale: Float[Array, ""]):
            step = scale * jnp.linalg.norm(move)
            return self._state(problem, state.theta + scale * move, multiplier, step)

        def falls(_, new):
            return ~(merit(new.theta, new.value) > start + rounding)

        _, _, new = longest_step(at, falls, MAX_HALVINGS, state.theta.dtype)
        left = _left(new.step_size, state.step_size)
        return eqx.tree_at(lambda s: (s.left, s.feasible), new, (left, feasible))


def _left(step: Float[Array, ""], previous: Float[Array, ""]):
    """Distance to the limit of steps that shrink geometrically, step·ρ/(1 − ρ); the step itself if they do not yet."""
    shrinkage = step / previous
    known = jnp.isfinite(previous) & (shrinkage < 0.3)
    return jnp.where(known, step * shrinkage / (1.0 - shrinkage), step)


def _model_minimiser(problem: ProjectionProblem, state: ProjectionState):
    """Minimiser of the quadratic model, with the multiplier that it finds used in the model itself."""

    def rotate(v: Float[Array, " k"]):
        return matmul(v, problem.eigenvectors)

    y, theta, normal = rotate(problem.y), rotate(state.theta), rotate(state.gradient)
    level = jnp.sum(normal * theta) + problem.floor - state.value

    def solve(multiplier):
        bend = multiplier * problem.eigenvalues
        return minimise_quadratic_in_cut_ball(1.0 + bend, y + bend * theta, normal, level, problem.radius)

    rough = solve(state.multiplier)
    fine = solve(rough.multiplier)
    return fine._replace(point=matmul(problem.eigenvectors, fine.point)), fine.feasible


class RoundState(eqx.Module):
    """Where the inner solver ended, how, and the quadratic programs so far."""

    warm: WarmStart
    status: Int[Array, ""]
    solves: Int[Array, ""]


class RefreshedCurvature(eqx.Module):
    """`SequentialQuadratic`, and again with the curvature of where it got stuck, for as long as it needs."""

    def init(self, problem: ProjectionProblem, *, key: PRNGKeyArray | None) -> RoundState:
        return self._run(problem, jnp.zeros((), jnp.int32))

    def step(self, problem: ProjectionProblem, state: RoundState, *, key: PRNGKeyArray | None) -> RoundState:
        c = curvature(state.warm.theta, problem.x, problem.labels, problem.weights)
        values, vectors = eigh(c)
        here = (state.warm, jnp.maximum(values, 0.0), vectors)
        fresh = eqx.tree_at(lambda p: (p.warm, p.eigenvalues, p.eigenvectors), problem, here)
        return self._run(fresh, state.solves)

    def terminate(self, problem: ProjectionProblem, state: RoundState) -> Int[Array, ""]:
        return jnp.where(state.status == Status.MAX_STEPS, Status.RUNNING.array(), state.status)

    def _run(self, problem: ProjectionProblem, solves: Int[Array, ""]) -> RoundState:
        end = iterate(SequentialQuadratic(), problem, max_steps=MAX_STEPS)
        warm = WarmStart(end.state.theta, end.state.multiplier)
        return RoundState(warm, end.status, solves + end.step)


def project_on_cut_ball(problem: ProjectionProblem) -> Projection:
    """The closest point of {‖θ‖ ≤ radius, ℓ(θ) ≥ floor}; status `infeasible` where that is empty."""
    end = iterate(RefreshedCurvature(), problem, max_steps=MAX_ROUNDS)
    warm, status = end.state.warm, end.status
    return Projection(warm.theta, warm.multiplier, end.state.solves, status)
