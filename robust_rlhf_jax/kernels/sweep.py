"""Inverses of many small matrices at once."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .linalg import matmul

# Pivots of a panel: a sweep of the whole matrices takes 2 to 3 times as long for 2,000 matrices of d = 27 to 64 on a
# core, and panels of 16 take 1.2 to 2 times as long as those of 8.
PANEL = 8


def inverses(matrices: Float[Array, "*n d d"]) -> tuple[Float[Array, "*n d d"], Float[Array, " *n"]]:
    """(inverses, log-determinants) of symmetric positive definite matrices, by sweeps of one pivot after another.

    All matrices take a step together. A panel of columns is swept first; with its columns c_j, each as it was when its
    pivot p_j was swept, the other entries lose Σ_j c_j c_jᵀ/p_j in one product. That keeps the digits of a sweep where
    blocks on the diagonal are nearly singular, unlike a product with the inverse of such a block. For thousands of
    matrices of d ≤ 64 it is faster than LAPACK on one after another, and it batches on every device. Jit- and
    vmap-able.

    **Source:** Goodnight 1979, *A tutorial on the SWEEP operator*.

    **Example:**

    >>> import jax.numpy as jnp
    >>> from robust_rlhf_jax.kernels.sweep import inverses
    >>> inverse, log_determinant = inverses(jnp.diag(jnp.array([4.0, 0.5])))
    >>> [round(float(value), 2) for value in (*jnp.diagonal(inverse), log_determinant)]
    [0.25, 2.0, 0.69]
    """
    d, swept = matrices.shape[-1], matrices
    log_determinant = jnp.zeros(matrices.shape[:-2], matrices.dtype)
    for start in range(0, d, PANEL):
        end = min(start + PANEL, d)
        panel, columns, pivots = _swept_panel(swept[..., start:end], start)
        log_determinant = log_determinant + jnp.sum(jnp.log(pivots), axis=-1)
        rest = swept - matmul(jnp.swapaxes(columns, -1, -2), columns / pivots[..., None])
        rest = jnp.concatenate([rest[..., :start], panel, rest[..., end:]], axis=-1)
        beside = jnp.swapaxes(panel, -1, -2)
        swept = jnp.concatenate([rest[..., :start, :], beside, rest[..., end:, :]], axis=-2)
    return -swept, log_determinant


def _swept_panel(panel: Float[Array, "*n d w"], start: int):
    """(the columns from `start` on after their sweeps, each column [*n, w, d] and pivot [*n, w] before its own)."""
    d, w = panel.shape[-2:]

    def sweep(panel, j):
        column = jax.lax.dynamic_index_in_dim(panel, j, axis=-1, keepdims=False)
        pivot = jax.lax.dynamic_index_in_dim(column, start + j, axis=-1)
        here, scaled = jnp.arange(d) == start + j, column / pivot
        edge = jnp.where(here, -1.0 / pivot, scaled)
        across, of_panel = edge[..., None, start : start + w], here[start : start + w]
        rest = panel - column[..., :, None] * scaled[..., None, start : start + w]
        swept = jnp.where(here[:, None], across, jnp.where(of_panel, edge[..., :, None], rest))
        return swept, (column, pivot[..., 0])

    panel, (columns, pivots) = jax.lax.scan(sweep, panel, jnp.arange(w))
    return panel, jnp.moveaxis(columns, 0, -2), jnp.moveaxis(pivots, 0, -1)
