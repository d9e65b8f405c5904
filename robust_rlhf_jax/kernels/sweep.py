"""Inverses of many small matrices at once."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .linalg import matmul

# Larger matrices are inverted by blocks: a sweep moves all matrices through memory once a pivot, and takes 4 times as
# long for 2,000 matrices of d = 27 on a core, 8 times at 34 and 64, 15 at 39. Blocks of 8 to 24 differ little.
SWEPT_UP_TO = 16


def inverses(matrices: Float[Array, "*n d d"]) -> tuple[Float[Array, "*n d d"], Float[Array, " *n"]]:
    """(inverses, log-determinants) of symmetric positive definite matrices, all of them together.

    Of two blocks A, C on the diagonal and B beside A, with the Schur complement S = C − BᵀA⁻¹B and X = A⁻¹B:

        [A⁻¹ + X S⁻¹ Xᵀ, −X S⁻¹; −S⁻¹Xᵀ, S⁻¹],  log|A| + log|S|.

    Blocks of up to 16 are swept, one pivot after another. For thousands of matrices of d ≤ 64 that is faster than
    LAPACK on one after another, and it batches on every device. Jit- and vmap-able.

    **Source:** Goodnight 1979, *A tutorial on the SWEEP operator*.

    **Example:**

    >>> import jax.numpy as jnp
    >>> from robust_rlhf_jax.kernels.sweep import inverses
    >>> inverse, log_determinant = inverses(jnp.asarray([[4.0, 0.0], [0.0, 0.5]]))
    >>> [round(float(value), 2) for value in (*jnp.diagonal(inverse), log_determinant)]
    [0.25, 2.0, 0.69]
    """
    if matrices.shape[-1] <= SWEPT_UP_TO:
        return _swept(matrices)
    h = matrices.shape[-1] // 2
    a, b, c = matrices[..., :h, :h], matrices[..., :h, h:], matrices[..., h:, h:]
    first, log_first = inverses(a)
    x = matmul(first, b)
    last, log_schur = inverses(c - matmul(jnp.swapaxes(b, -1, -2), x))
    beside = matmul(x, last)
    first = first + matmul(beside, jnp.swapaxes(x, -1, -2))
    above = jnp.concatenate([first, -beside], axis=-1)
    below = jnp.concatenate([-jnp.swapaxes(beside, -1, -2), last], axis=-1)
    return jnp.concatenate([above, below], axis=-2), log_first + log_schur


def _swept(matrices: Float[Array, "*n d d"]) -> tuple[Float[Array, "*n d d"], Float[Array, " *n"]]:
    d = matrices.shape[-1]

    def sweep(j, state):
        swept, log_determinant = state
        column = jax.lax.dynamic_index_in_dim(swept, j, axis=-1, keepdims=False)
        pivot = jax.lax.dynamic_index_in_dim(column, j, axis=-1)
        here, scaled = jnp.arange(d) == j, column / pivot
        rest = swept - column[..., :, None] * scaled[..., None, :]
        edge = jnp.where(here, -1.0 / pivot, scaled)
        swept = jnp.where(here[:, None], edge[..., None, :], jnp.where(here, edge[..., :, None], rest))
        return swept, log_determinant + jnp.log(pivot[..., 0])

    start = matrices, jnp.zeros(matrices.shape[:-2], matrices.dtype)
    swept, log_determinant = jax.lax.fori_loop(0, d, sweep, start)
    return -swept, log_determinant
