"""Linear systems of one positive definite operator side by side, by conjugate gradients with a diagonal before them."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from .divisors import positive_or_one

MOST_STEPS = 50


class _State(NamedTuple):
    solution: Float[Array, "m d"]
    rest: Float[Array, "m d"]
    towards: Float[Array, "m d"]
    # restᵀ D⁻¹ rest of each system.
    size: Float[Array, " m"]
    step: Int[Array, ""]


def conjugate_gradients(
    apply: Callable[[Float[Array, "m d"]], Float[Array, "m d"]],
    diagonal: Float[Array, " d"],
    right: Float[Array, "m d"],
    tolerance: float,
) -> Float[Array, "m d"]:
    """Rows u_i with ‖right_i − H u_i‖ ≤ tolerance·‖right_i‖ in the norm of D⁻¹, D = diag(`diagonal`).

    One product of H with all rows a step, until the slowest has converged; a row of zeros stays zero, and one that is
    not finite spoils no other.

    **Source:** Hestenes & Stiefel 1952; D is the preconditioner of Jacobi.
    """
    first = jnp.sum(right**2 / diagonal, axis=1)

    def unfinished(s: _State):
        return jnp.any(s.size > tolerance**2 * first) & (s.step < MOST_STEPS)

    def step(s: _State) -> _State:
        image = apply(s.towards)
        stride = s.size / positive_or_one(jnp.sum(s.towards * image, axis=1))
        rest = s.rest - stride[:, None] * image
        size = jnp.sum(rest**2 / diagonal, axis=1)
        towards = rest / diagonal + (size / positive_or_one(s.size))[:, None] * s.towards
        return _State(s.solution + stride[:, None] * s.towards, rest, towards, size, s.step + 1)

    begin = _State(jnp.zeros_like(right), right, right / diagonal, first, jnp.zeros((), jnp.int32))
    return jax.lax.while_loop(unfinished, step, begin).solution
