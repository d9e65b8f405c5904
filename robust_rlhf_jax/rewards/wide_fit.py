"""Weighted logistic regression with a Gaussian prior for many columns: looks at the rows, never their Gram matrix."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.kernels.divisors import positive_or_one
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.kernels.logistic import label_variance

from .fisher_products import diagonal_of

MAX_LOOKS = 200
# Steps whose change of the gradient is remembered.
MEMORY = 10
# Steps in a row that gain next to nothing, after which no other would. One or two may promise and gain nothing before
# the memory knows the curvature, where a direction is far flatter than the others.
QUIET = 3
# Mean square of the margins below which a fit counts as zero.
LEAST = 1e-3


class WideOptimum(NamedTuple):
    """`t` [r]; `margins` [N] there; `value`: the objective, per unit of weight; `looks` that it took; `status`."""

    t: Float[Array, " r"]
    margins: Float[Array, " N"]
    value: Float[Array, ""]
    looks: Int[Array, ""]
    status: Int[Array, ""]


class _Memory(NamedTuple):
    """The last steps s and falls y of the gradient along them, the newest last; `inverse`: 1/sᵀy, 0 where none is."""

    steps: Float[Array, "m r"]
    falls: Float[Array, "m r"]
    inverse: Float[Array, " m"]


class _State(NamedTuple):
    t: Float[Array, " r"]
    margins: Float[Array, " N"]
    value: Float[Array, ""]
    gradient: Float[Array, " r"]
    memory: _Memory
    scale: Float[Array, ""]
    quiet: Int[Array, ""]
    done: Bool[Array, ""]
    look: Int[Array, ""]


class _Objective(NamedTuple):
    """What is maximised, per unit of weight."""

    rows: Float[Array, "n r"]
    weights: Float[Array, " n"]
    precision: Float[Array, " r"]

    def look(self, t: Float[Array, " r"]) -> tuple[Float[Array, " n"], Float[Array, ""], Float[Array, " r"]]:
        """(margins, value, gradient) at t, for two products with the rows."""
        # In this order: XLA copies a large transpose in every look, which takes five times as long as the product.
        margins = matmul(self.rows, t)
        value = matmul(self.weights, jax.nn.log_sigmoid(margins)) - 0.5 * matmul(self.precision, t**2)
        gradient = matmul(self.weights * jax.nn.sigmoid(-margins), self.rows) - self.precision * t
        return margins, value, gradient

    def most_left(self, gradient: Float[Array, " r"]) -> Float[Array, ""]:
        """At least gᵀH⁻¹g, twice what any step could gain: the curvature H is no less than the prior's anywhere."""
        by_prior = gradient**2 / positive_or_one(self.precision)
        return jnp.sum(jnp.where((self.precision > 0) | (gradient == 0), by_prior, jnp.inf))

    def step(self, diagonal: Float[Array, " r"], s: _State) -> _State:
        """A step of L-BFGS, which begins with the `diagonal` of a curvature."""
        dtype, eps = self.rows.dtype, jnp.finfo(self.rows.dtype).eps
        move = _direction(s.memory, diagonal, s.gradient)
        t = s.t + s.scale * move
        margins, value, gradient = self.look(t)
        rounding = 4 * eps * (1.0 + jnp.abs(s.value))
        better = value >= s.value - rounding
        rise = matmul(s.gradient, move)
        falls = matmul(gradient, gradient / diagonal) < matmul(s.gradient, s.gradient / diagonal)
        stalled = better & (value - s.value <= rounding) & ~falls & (s.scale == 1.0)
        quiet = jnp.where((jnp.abs(rise) <= _hidden(s.t, diagonal)) | stalled, s.quiet + 1, 0)
        done = (self.most_left(gradient) <= _hidden(t, diagonal)) | (quiet >= QUIET)
        kept = _State(
            t, margins, value, gradient, _remember(s.memory, t - s.t, s.gradient - gradient),
            jnp.ones((), dtype), quiet, done, s.look + 1,
        )  # fmt: skip
        # The maximum of the parabola through both values and the slope.
        top = 0.5 * s.scale * rise / positive_or_one(s.scale * rise - (value - s.value))
        shorter = s.scale * jnp.clip(jnp.nan_to_num(top, nan=0.5), 0.1, 0.5)
        lost = ~better & (s.scale < 1e-3)
        again = s._replace(scale=shorter.astype(dtype), done=lost, look=s.look + 1)
        return jax.tree.map(lambda new, old: jnp.where(better, new, old), kept, again)


def maximise_by_looks(
    rows: Float[Array, "n r"],
    weights: Float[Array, " n"],
    start: Float[Array, " r"],
    precision: Float[Array, " r"],
) -> WideOptimum:
    """argmax over t of Σ_n w_n log σ(tᵀy_n) − ½ Σ_j λ_j t_j².

    A look gives value and gradient for two products with the rows. L-BFGS begins with the diagonal of the curvature at
    the start, for one reading of the rows more. A step that does not raise the value is shortened. It ends where the
    prior's curvature alone leaves no step that moves t by a third of √eps of it, as the curvature measures lengths;
    where the prior is too weak to tell, after `QUIET` steps in a row that promise no more, or gain what rounding hides
    while the gradient does not fall.

    **Source:** Liu & Nocedal 1989.
    """
    dtype = rows.dtype
    total = jnp.maximum(jnp.sum(weights), 1.0)
    objective = _Objective(rows, weights / total, precision / total)

    margins, value, gradient = objective.look(start)
    diagonal = diagonal_of(rows, objective.weights * label_variance(margins), objective.precision)
    nothing = jnp.zeros((MEMORY, len(start)), dtype)
    first = _State(
        start, margins, value, gradient, _Memory(nothing, nothing, jnp.zeros(MEMORY, dtype)), jnp.ones((), dtype),
        jnp.zeros((), jnp.int32), objective.most_left(gradient) <= _hidden(start, diagonal), jnp.ones((), jnp.int32),
    )  # fmt: skip
    end = jax.lax.while_loop(
        lambda s: ~s.done & (s.look < MAX_LOOKS), partial(objective.step, diagonal), first
    )
    finite = jnp.isfinite(end.value) & jnp.all(jnp.isfinite(end.t))
    status = jnp.where(end.done, Status.CONVERGED.array(), Status.MAX_STEPS.array())
    return WideOptimum(
        end.t, end.margins, end.value, end.look, jnp.where(finite, status, Status.NONFINITE.array())
    )


def _hidden(t: Float[Array, " r"], diagonal: Float[Array, " r"]) -> Float[Array, ""]:
    """A step that promises a smaller rise than this moves t by less than a third of √eps of it."""
    return 0.1 * jnp.finfo(t.dtype).eps * (LEAST + matmul(t, t * diagonal))


def _remember(memory: _Memory, step: Float[Array, " r"], fall: Float[Array, " r"]) -> _Memory:
    """The memory with the newest pair last; a pair along which the gradient falls by no more than rounding is out."""
    product = matmul(step, fall)
    falls = product > jnp.finfo(step.dtype).eps * jnp.linalg.norm(step) * jnp.linalg.norm(fall)
    inverse = jnp.where(falls, 1.0 / positive_or_one(product), 0.0)
    return _Memory(
        jnp.concatenate([memory.steps[1:], step[None]]),
        jnp.concatenate([memory.falls[1:], fall[None]]),
        jnp.concatenate([memory.inverse[1:], inverse[None]]),
    )


def _direction(
    memory: _Memory, diagonal: Float[Array, " r"], gradient: Float[Array, " r"]
) -> Float[Array, " r"]:
    """The quasi-Newton step up: the remembered inverse curvature, begun from D⁻¹ scaled to the newest pair, times g."""

    def forget(g, pair):
        step, fall, inverse = pair
        share = inverse * matmul(step, g)
        return g - share * fall, share

    def recall(move, given):
        (step, fall, inverse), share = given
        return move + (share - inverse * matmul(fall, move)) * step, None

    # Loops, since they compile faster than the same steps written out.
    g, shares = jax.lax.scan(forget, gradient, memory, reverse=True)
    newest = memory.falls[-1]
    size = memory.inverse[-1] * matmul(newest, newest / diagonal)
    return jax.lax.scan(recall, g / diagonal / positive_or_one(size), (memory, shares))[0]
