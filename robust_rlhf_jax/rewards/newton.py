"""Weighted logistic regression in whitened coordinates: Newton's method in one small loop that compiles fast."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.kernels.lapack import cholesky, cholesky_solve
from robust_rlhf_jax.kernels.linalg import weighted_gram, weighted_sum
from robust_rlhf_jax.kernels.logistic import label_variance, margins_of

MAX_STEPS = 61
# A step that shrinks the gradient to less than this share earns its curvature another step.
REUSE_BELOW = 0.3


class Optimum(NamedTuple):
    """`t` [r]; `value`: the mean log-likelihood there; `factor`: lower factor of the curvature that the last step used;
    `status`.
    """

    t: Float[Array, " r"]
    value: Float[Array, ""]
    factor: Float[Array, "r r"]
    status: Int[Array, ""]


class _State(NamedTuple):
    """`own`: the factor is of this problem, not of a similar one; `stale`: the next step needs a new one."""

    t: Float[Array, " r"]
    value: Float[Array, ""]
    gradient: Float[Array, " r"]
    factor: Float[Array, "r r"]
    own: Array
    stale: Array
    scale: Float[Array, ""]
    done: Array
    step: Int[Array, ""]


def maximise(
    rows: Float[Array, "n r"],
    labels: Float[Array, " n"],
    weights: Float[Array, " n"],
    start: Float[Array, " r"],
    radius: float,
    prior: float | Float[Array, ""] = 0.0,
    factor: Float[Array, "r r"] | None = None,
) -> Optimum:
    """argmax over ‖t‖ ≤ radius of (Σ_n w_n log σ(o_n tᵀz_n) + prior·Σ_j log σ(t_j)σ(−t_j))/(Σ_n w_n + 2r·prior).

    For rows z whose second moment is about I, from a start within the radius. The prior gives every axis that many wins
    and as many losses. A step that does not raise the value is halved; the curvature is kept while the gradient falls
    fast (Shamanskii 1967), that of `factor`, if given, from the start: what a similar problem ended with. It ends where
    Newton's decrement, or the gain of a step with fresh curvature, is what rounding hides.
    """
    dtype = rows.dtype
    prior = jnp.asarray(prior, dtype)
    mass = jnp.sum(weights) + 2.0 * prior * rows.shape[1]
    total = jnp.maximum(mass, jnp.finfo(dtype).tiny)
    weights, prior = weights / total, prior / total
    hidden = 4 * jnp.finfo(dtype).eps

    def look(t):
        margins = margins_of(t, rows, labels)
        doubt = jnp.sum(jax.nn.log_sigmoid(t) + jax.nn.log_sigmoid(-t))
        value = jnp.dot(weights, jax.nn.log_sigmoid(margins)) + prior * doubt
        slope = weighted_sum(weights * labels * jax.nn.sigmoid(-margins), rows)
        return value, slope - prior * jnp.tanh(0.5 * t)

    def factor_at(t):
        margins = margins_of(t, rows, labels)
        curvature = weighted_gram(rows, weights * label_variance(margins))
        own = 2.0 * prior * label_variance(t)
        ridge = 16 * jnp.finfo(dtype).eps * (1.0 + jnp.trace(curvature))
        return cholesky(curvature + jnp.diag(own + ridge))

    def within(t):
        return t * jnp.minimum(1.0, radius / jnp.maximum(jnp.linalg.norm(t), 1e-30))

    def unfinished(s: _State):
        return ~s.done & (s.step < MAX_STEPS)

    def step(s: _State) -> _State:
        current = jax.lax.cond(s.stale, factor_at, lambda _: s.factor, s.t)
        # The first step stays where it is, and looks: one program for it and the others.
        begun = s.step > 0
        move = jnp.where(begun, cholesky_solve(current, s.gradient[:, None])[:, 0], 0.0)
        t = within(s.t + s.scale * move)
        value, gradient = look(t)
        rounding = hidden * (1.0 + jnp.abs(s.value))
        better = ~begun | (value >= s.value - rounding)
        fast = jnp.linalg.norm(gradient) <= REUSE_BELOW * jnp.linalg.norm(s.gradient)
        own = s.own | s.stale
        resolved = (jnp.abs(jnp.dot(s.gradient, move)) <= 0.1 * rounding) & (own | fast)
        stalled = better & (value - s.value <= rounding) & ~fast & (s.scale == 1.0) & own
        lost = ~better & (s.scale < 1e-3)
        return _State(
            jnp.where(better, t, s.t),
            jnp.where(better, value, s.value),
            jnp.where(better, gradient, s.gradient),
            current,
            own,
            # A bad step by another problem's curvature asks for this one's, not for a shorter step.
            jnp.where(begun, jnp.where(better, ~fast, ~own), factor is None),
            jnp.where(better | ~own, 1.0, 0.5 * s.scale).astype(dtype),
            begun & (resolved | stalled | lost),
            s.step + 1,
        )

    zero = jnp.zeros((), dtype)
    first = _State(
        t=start,
        value=zero,
        gradient=jnp.zeros_like(start),
        factor=jnp.eye(len(start), dtype=dtype) if factor is None else factor,
        own=jnp.asarray(factor is None),
        stale=jnp.asarray(False),
        scale=zero + 1,
        done=jnp.asarray(False),
        step=jnp.zeros((), jnp.int32),
    )
    end = jax.lax.while_loop(unfinished, step, first)
    finite = jnp.isfinite(end.value) & jnp.all(jnp.isfinite(end.t)) & (mass > 0)
    status = jnp.where(end.done, Status.CONVERGED.array(), Status.MAX_STEPS.array())
    return Optimum(end.t, end.value, end.factor, jnp.where(finite, status, Status.NONFINITE.array()))
