"""A probable upper bound on a top eigenvalue from a few products: the Lanczos method from a random start."""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .divisors import positive_or_one
from .lapack import eigh
from .linalg import matmul

LANCZOS_STEPS = 24


def lanczos_shortfall(dimensions: int, miss: float, steps: int = LANCZOS_STEPS) -> float:
    """The relative error η of `top_by_lanczos` that a random start exceeds with probability `miss` at most.

    1.648·√D·e^{−(2k−1)√η} = δ for every spectrum (Kuczyński & Woźniakowski 1992, Theorem 4.2); 0 for k ≥ D steps.
    """
    if steps >= dimensions:
        return 0.0
    return min(1.0, (math.log(1.648 * dimensions**0.5 / miss) / (2 * steps - 1)) ** 2)


def top_by_lanczos(
    apply: Callable[[Float[Array, " D"]], Float[Array, " D"]],
    start: Float[Array, " D"],
    steps: int = LANCZOS_STEPS,
) -> Float[Array, ""]:
    """Largest Ritz value of a symmetric positive semi-definite operator after `steps` products, from below.

    Every direction is made orthogonal to all before it, twice, for once is not enough in single precision.
    """
    tiny = 1e2 * jnp.finfo(start.dtype).eps

    def step(i, carry):
        basis, q, own, next_to = carry
        basis, image = basis.at[i].set(q), apply(q)
        rest = image
        for _ in range(2):
            rest = rest - matmul(matmul(basis, rest), basis)
        length = jnp.linalg.norm(rest)
        length = jnp.where(length > tiny * jnp.linalg.norm(image), length, 0.0)
        following = rest / positive_or_one(length) * (length > 0)
        return basis, following, own.at[i].set(matmul(q, image)), next_to.at[i].set(length)

    basis, nothing = jnp.zeros((steps, len(start)), start.dtype), jnp.zeros(steps, start.dtype)
    size = jnp.linalg.norm(start)
    first = start / positive_or_one(size)
    _, _, own, next_to = jax.lax.fori_loop(0, steps, step, (basis, first, nothing, nothing))
    projected = jnp.diag(own) + jnp.diag(next_to[:-1], 1) + jnp.diag(next_to[:-1], -1)
    return eigh(projected)[0][-1]
