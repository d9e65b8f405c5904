"""Maximum likelihood over a ball in many dimensions: limited-memory BFGS, exact constraint, nothing of size k×k."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.kernels.ball import ball_stationarity, newton_point
from robust_rlhf_jax.kernels.divisors import positive_or_one
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.kernels.logistic import margins_of

from .logistic_problem import LogisticProblem, backtrack, begin

MAX_LBFGS_STEPS = 2000
MEMORY = 10
# Steps that must gain something measurable between them: one turn of the memory.
PATIENCE = MEMORY


class LBFGSState(eqx.Module):
    """θ, the margins, value and gradient there, and the memory, oldest pair first.

    `moves` [m, k]: s = θ⁺ − θ; `changes` [m, k]: y = g − g⁺, so that sᵀy > 0; rows of zeros are empty. `scale`: σ
    of the first matrix σI; `stationarity`: norm of the projected gradient; `mark`: the value when it last rose
    measurably, `idle` steps ago.
    """

    theta: Float[Array, " k"]
    margins: Float[Array, " n"]
    value: Float[Array, ""]
    gradient: Float[Array, " k"]
    stationarity: Float[Array, ""]
    moves: Float[Array, "m k"]
    changes: Float[Array, "m k"]
    scale: Float[Array, ""]
    mark: Float[Array, ""]
    idle: Int[Array, ""]


class BallLBFGS(eqx.Module):
    """BallNewton with the curvature that L-BFGS remembers (Liu & Nocedal 1989), maximised on the ball exactly.

    θ⁺ lies on the segment from θ to argmax over ‖u‖ ≤ radius of gᵀ(u − θ) − ½(u − θ)ᵀB(u − θ): a projected
    quasi-Newton method (Schmidt, van den Berg, Friedlander & Murphy 2009), whose only fixed points are the
    maximisers over the ball. B is σI off the span Q of θ, g and the memory, so the argmax lies in Q and the model
    is one of 2m + 2 numbers (Burdakov, Gong, Zikrin & Yuan 2017), which knows the multiplier as Newton's does. Q
    lies in the span of the rows if θ does.

    Separable data have their maximiser on the sphere. Where ‖g‖² vanishes in the precision before θ is there (every
    margin beyond 44 in float32, 350 in float64) θ goes on along its ray, which raises every margin.
    """

    def init(self, problem: LogisticProblem, *, key: PRNGKeyArray | None) -> LBFGSState:
        at = begin(problem)
        empty = jnp.zeros((MEMORY, problem.x.shape[1]), problem.x.dtype)
        scale = _steepest_curvature(problem, at[3])
        return _state(problem, at, empty, empty, scale, at[2], jnp.zeros((), jnp.int32))

    def step(self, problem: LogisticProblem, state: LBFGSState, *, key: PRNGKeyArray | None) -> LBFGSState:
        slack = _value_rounding(problem, state.margins)
        outward = (problem.radius / jnp.linalg.norm(state.theta) - 1.0) * state.theta
        move = jnp.where(_is_saturated(problem, state), outward, _move(problem, state))
        scale, at = backtrack(problem, state, move, slack)
        risen = at[2] - state.mark > slack
        mark, idle = jnp.where(risen, at[2], state.mark), jnp.where(risen, 0, state.idle + 1)
        return _state(problem, at, *_remember(problem, state, at, scale), mark, idle)

    def terminate(self, problem: LogisticProblem, state: LBFGSState) -> Int[Array, ""]:
        done = _far_stationarity(problem, state) <= 32 * _gradient_rounding(problem, state.margins)
        # Steps along the ray end where the ball is too far away for this precision.
        on_the_ray = _is_saturated(problem, state) & (state.idle < 2 * PATIENCE)
        stop = (done | (state.idle >= PATIENCE)) & ~on_the_ray
        return jnp.where(stop, Status.CONVERGED.array(), Status.RUNNING.array())


def _state(
    problem: LogisticProblem,
    at: tuple[Float[Array, " k"], Float[Array, " n"], Float[Array, ""], Float[Array, " k"]],
    moves: Float[Array, "m k"],
    changes: Float[Array, "m k"],
    scale: Float[Array, ""],
    mark: Float[Array, ""],
    idle: Int[Array, ""],
) -> LBFGSState:
    theta, margins, value, gradient = at
    norm = problem.stationarity(theta, gradient)
    return LBFGSState(theta, margins, value, gradient, norm, moves, changes, scale, mark, idle)


def _far_stationarity(problem: LogisticProblem, state: LBFGSState):
    """‖Proj(θ + τg) − θ‖/τ with τ = min(radius, 1/row_size + ‖θ‖)/‖g‖: at τ = 1, which has other units, θ's own
    rounding hides the small gradients that separable data have far inside a large ball.
    """
    size = jnp.linalg.norm(state.gradient)
    unit = 1.0 / positive_or_one(problem.row_size)
    reach = jnp.minimum(problem.radius, unit + jnp.linalg.norm(state.theta))
    tau = reach / jnp.where(size > 0, size, reach)
    return ball_stationarity(state.theta, tau * state.gradient, problem.radius) / tau


def _is_saturated(problem: LogisticProblem, state: LBFGSState):
    """Whether inside the ball every pair is on its right side with likelihood 1, as far as the precision can tell."""
    separated = jnp.all((state.margins > 0) | (problem.weights == 0))
    size = jnp.linalg.norm(state.theta)
    inside = (size < 0.999 * problem.radius) & (size > 0) & jnp.isfinite(problem.radius)
    return separated & inside & (matmul(state.gradient, state.gradient) == 0)


def _steepest_curvature(problem: LogisticProblem, gradient: Float[Array, " k"]):
    """Bound on the curvature along the gradient anywhere, ¼Σ_n w_n(x_nᵀg)²/Σ_n w_n‖g‖²: 1/σ is a safe first step."""
    size = jnp.linalg.norm(gradient)
    across = margins_of(gradient / positive_or_one(size), problem.x, problem.labels)
    bound = 0.25 * matmul(problem.weights, across**2) / jnp.sum(problem.weights)
    return positive_or_one(bound)


def _move(problem: LogisticProblem, state: LBFGSState) -> Float[Array, " k"]:
    """From θ to the maximiser of the model over the ball."""
    # The newest pairs first: where a row is dropped as dependent, it is the older one.
    here = jnp.stack([state.theta, state.gradient])
    basis = orthonormal_rows(jnp.concatenate([here, state.changes[::-1], state.moves[::-1]]))
    moves, changes = matmul(state.moves, basis.T), matmul(state.changes, basis.T)
    theta, gradient = matmul(basis, state.theta), matmul(basis, state.gradient)
    target = newton_point(theta, gradient, bfgs_matrix(moves, changes, state.scale), problem.radius)
    return matmul(target - theta, basis)


def _remember(
    problem: LogisticProblem,
    state: LBFGSState,
    at: tuple[Float[Array, " k"], Float[Array, " n"], Float[Array, ""], Float[Array, " k"]],
    scale: Float[Array, ""],
):
    """The memory with the last pair in it, and σ = yᵀy/sᵀy.

    A pair whose curvature drowns in the gradient's rounding is not taken. After a step that failed all of them go:
    the model that made it cannot be mended by standing still.
    """
    move, change = at[0] - state.theta, state.gradient - at[3]
    product = matmul(move, change)
    resolved = product > 4 * _gradient_rounding(problem, state.margins) * jnp.linalg.norm(move)
    good = resolved & (matmul(change, change) > 0)  # which may underflow before the product does
    keep = jnp.where(scale > 0, 1.0, 0.0).astype(move.dtype)

    def put(memory, row):
        return jnp.where(good, jnp.concatenate([memory[1:], row[None]]), keep * memory)

    sigma = matmul(change, change) / jnp.where(good, product, 1.0)
    return put(state.moves, move), put(state.changes, change), jnp.where(good, sigma, state.scale)


def _gradient_rounding(problem: LogisticProblem, margins: Float[Array, " n"]):
    """One rounding error of Σ_n w_n σ(−m_n) o_n x_n/Σ_n w_n; relative, since separable data shrink it without end."""
    missed = matmul(problem.weights, jax.nn.sigmoid(-margins)) / jnp.sum(problem.weights)
    return jnp.finfo(margins.dtype).eps * problem.row_size * missed


def _value_rounding(problem: LogisticProblem, margins: Float[Array, " n"]):
    """Four rounding errors of Σ_n w_n log σ(m_n)/Σ_n w_n: of the terms, and of the margins in them."""
    size = jnp.abs(margins) * jax.nn.sigmoid(-margins) - jax.nn.log_sigmoid(margins)
    return 4 * jnp.finfo(margins.dtype).eps * matmul(problem.weights, size) / jnp.sum(problem.weights)


def orthonormal_rows(rows: Float[Array, "m k"]) -> Float[Array, "m k"]:
    """Gram–Schmidt, twice over each row (Giraud, Langou & Rozložník 2005); rows that depend on earlier ones become 0.

    Dependent: all but √eps of the row's length is explained, and what is left is as much rounding as direction.
    """
    least = jnp.sqrt(jnp.finfo(rows.dtype).eps)

    def add(i, basis):
        size = jnp.linalg.norm(rows[i])
        v = rows[i] / positive_or_one(size)
        for _ in range(2):
            v = v - matmul(matmul(basis, v), basis)
        left = jnp.linalg.norm(v)
        return basis.at[i].set(jnp.where(left > least, v / positive_or_one(left), 0.0))

    return jax.lax.fori_loop(0, len(rows), add, jnp.zeros_like(rows))


def bfgs_matrix(
    moves: Float[Array, "m k"], changes: Float[Array, "m k"], scale: Float[Array, ""]
) -> Float[Array, "k k"]:
    """B from σI by B ← B − Bs sᵀB/sᵀBs + yyᵀ/sᵀy over the pairs, oldest first, passing over those with sᵀy ≤ 0."""

    def update(b, pair):
        s, y = pair
        bs, product = matmul(b, s), matmul(s, y)
        curved = product > 0
        old = jnp.outer(bs, bs) / jnp.where(curved, matmul(s, bs), 1.0)
        new = jnp.outer(y, y) / jnp.where(curved, product, 1.0)
        return jnp.where(curved, b - old + new, b), None

    identity = jnp.eye(moves.shape[1], dtype=moves.dtype)
    return jax.lax.scan(update, scale * identity, (moves, changes))[0]
