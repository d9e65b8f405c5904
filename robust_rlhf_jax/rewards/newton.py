"""Weighted logistic regression with a Gaussian prior: Newton's method in one small loop that compiles fast."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.kernels.lapack import cholesky, cholesky_solve
from robust_rlhf_jax.kernels.linalg import matmul, weighted_gram, weighted_sum
from robust_rlhf_jax.kernels.logistic import label_variance

MAX_STEPS = 61
# A step that shrinks the gradient to less than this share earns its curvature another step.
REUSE_BELOW = 0.5


class Optimum(NamedTuple):
    """`t` [r]; `value`: the objective there, per unit of weight; `factor`: lower factor of the curvature that the last
    step used, per unit of weight; `status`.
    """

    t: Float[Array, " r"]
    value: Float[Array, ""]
    factor: Float[Array, "r r"]
    status: Int[Array, ""]


class _State(NamedTuple):
    """`stale`: the next step needs a new factor."""

    t: Float[Array, " r"]
    value: Float[Array, ""]
    gradient: Float[Array, " r"]
    factor: Float[Array, "r r"]
    stale: Array
    scale: Float[Array, ""]
    done: Array
    step: Int[Array, ""]


class _Objective(NamedTuple):
    """What is maximised, per unit of weight."""

    rows: Float[Array, "n r"]
    weights: Float[Array, " n"]
    precision: Float[Array, " r"]

    def look(self, t: Float[Array, " r"]) -> tuple[Float[Array, ""], Float[Array, " r"]]:
        """(value, gradient) at t."""
        margins = matmul(self.rows, t)
        value = matmul(self.weights, jax.nn.log_sigmoid(margins)) - 0.5 * matmul(self.precision, t**2)
        return value, weighted_sum(self.weights * jax.nn.sigmoid(-margins), self.rows) - self.precision * t

    def curvature_factor(self, t: Float[Array, " r"]) -> Float[Array, "r r"]:
        """The lower Cholesky factor of Σ_n w_n P(1 − P) y_n y_nᵀ + diag(λ) at t."""
        curvature = weighted_gram(self.rows, self.weights * label_variance(matmul(self.rows, t)))
        ridge = 16 * jnp.finfo(self.rows.dtype).eps * (1.0 + jnp.trace(curvature))
        return cholesky(curvature + jnp.diag(self.precision + ridge))

    def step(self, s: _State) -> _State:
        dtype = self.rows.dtype
        factor = jax.lax.cond(s.stale, self.curvature_factor, lambda _: s.factor, s.t)
        # The first step stays where it is, and looks: one program for it and the others.
        begun = s.step > 0
        move = jnp.where(begun, cholesky_solve(factor, s.gradient[:, None])[:, 0], 0.0)
        t = s.t + s.scale * move
        value, gradient = self.look(t)
        rounding = 4 * jnp.finfo(dtype).eps * (1.0 + jnp.abs(s.value))
        better = ~begun | (value >= s.value - rounding)
        fast = jnp.linalg.norm(gradient) <= REUSE_BELOW * jnp.linalg.norm(s.gradient)
        resolved = jnp.abs(matmul(s.gradient, move)) <= 0.1 * rounding
        stalled = better & (value - s.value <= rounding) & ~fast & (s.scale == 1.0)
        lost = ~better & (s.scale < 1e-3)
        return _State(
            jnp.where(better, t, s.t),
            jnp.where(better, value, s.value),
            jnp.where(better, gradient, s.gradient),
            factor,
            begun & better & ~fast,
            jnp.where(better, 1.0, 0.5 * s.scale).astype(dtype),
            begun & (resolved | stalled | lost),
            s.step + 1,
        )


def maximise(
    rows: Float[Array, "n r"],
    weights: Float[Array, " n"],
    start: Float[Array, " r"],
    precision: Float[Array, " r"],
) -> Optimum:
    """argmax over t of Σ_n w_n log σ(tᵀy_n) − ½ Σ_j λ_j t_j², for rows y whose second moment is about I.

    A step that does not raise the value is halved; the curvature is kept while the gradient falls fast (Shamanskii
    1967). It ends where Newton's decrement, or the gain of a slow step, is what rounding hides.
    """
    dtype, r = rows.dtype, len(start)
    total = jnp.maximum(jnp.sum(weights), 1.0)
    objective = _Objective(rows, weights / total, precision / total)
    first = _State(
        start, jnp.zeros((), dtype), jnp.zeros_like(start), jnp.zeros((r, r), dtype), jnp.asarray(True),
        jnp.ones((), dtype), jnp.asarray(False), jnp.zeros((), jnp.int32),
    )  # fmt: skip
    end = jax.lax.while_loop(lambda s: ~s.done & (s.step < MAX_STEPS), objective.step, first)
    finite = jnp.isfinite(end.value) & jnp.all(jnp.isfinite(end.t))
    status = jnp.where(end.done, Status.CONVERGED.array(), Status.MAX_STEPS.array())
    return Optimum(end.t, end.value, end.factor, jnp.where(finite, status, Status.NONFINITE.array()))
