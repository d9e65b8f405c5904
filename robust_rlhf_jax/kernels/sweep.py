"""Inverses of many small matrices at once."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def inverses(matrices: Float[Array, "*n d d"]) -> tuple[Float[Array, "*n d d"], Float[Array, " *n"]]:
    """(inverses, log-determinants) of symmetric positive definite matrices, by sweeps of one pivot after another.

    All matrices take a step together, in O(d) steps of O(nd²): for thousands of matrices of d ≤ 64 that is faster than
    LAPACK on one after another, and it batches on every device. Jit- and vmap-able.

    **Source:** Goodnight 1979, *A tutorial on the SWEEP operator*.

    **Example:**

    >>> import jax.numpy as jnp
    >>> from robust_rlhf_jax.kernels.sweep import inverses
    >>> inverse, log_determinant = inverses(jnp.asarray([[4.0, 0.0], [0.0, 0.5]]))
    >>> [round(float(value), 2) for value in (*jnp.diagonal(inverse), log_determinant)]
    [0.25, 2.0, 0.69]
    """
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
