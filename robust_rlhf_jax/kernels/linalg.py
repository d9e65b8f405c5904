"""Weighted moments and symmetric linear algebra that name their null space instead of inverting it."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from .lapack import eigh

# TF32 on Ampere and later keeps 10 bits of mantissa: too few for a covariance that is inverted.
matmul = lambda a, b: jnp.matmul(a, b, precision="highest")  # noqa: E731
einsum = lambda spec, *xs: jnp.einsum(spec, *xs, precision="highest")  # noqa: E731


# Entries of a block of rows whose squares stay in a core's cache.
SQUARED_AT_ONCE = 2**19
BLOCKED_FROM = 8192  # rows from which a blocked sum pays
# Dimensions up to which a top eigenpair is taken from the whole matrix: on 2 cores, 20,000 rows of 400 dimensions take
# 15 times as long by LOBPCG.
DENSE_EIGH_UP_TO = 1024
# Columns from which a quarter less to multiply is worth a second product: it saves 14 to 19 % of the time on a CPU
# (20,000 × 512, 20,000 × 1,024, 4,000 × 2,000).
MIRRORED = 256


def _blocks(n: int) -> int | None:
    """Rows per block where a blocked sum over n rows pays, else None."""
    sizes = [b for b in range(2048, 255, -1) if n % b == 0] if n >= BLOCKED_FROM else []
    return sizes[0] if sizes else None


def weighted_sum(weights: Float[Array, " n"], x: Float[Array, "n d"]) -> Float[Array, " d"]:
    """Σ_i w_i x_i: wᵀX in blocks of rows.

    XLA's CPU product of a vector and a tall matrix stays well below the memory bandwidth; the same sum over
    blocks of rows reaches about what Xθ reaches.
    """
    size = _blocks(len(x))
    if size is None:
        return matmul(weights, x)
    parts = einsum("bn,bnd->bd", weights.reshape(-1, size), x.reshape(-1, size, x.shape[1]))
    return jnp.sum(parts, axis=0)


def weighted_mean(x: Float[Array, "n d"], weights: Float[Array, " n"]) -> Float[Array, " d"]:
    """Σ_i w_i x_i / Σ_i w_i."""
    return weighted_sum(weights, x) / jnp.sum(weights)


def weighted_squares(x: Float[Array, "n d"], weights: Float[Array, " n"]) -> Float[Array, " d"]:
    """Σ_i w_i x_i², the diagonal of `weighted_gram`, for one reading of x.

    In blocks of rows: the squares of all rows would be as large as x, and take twenty times as long.
    """
    n, d = x.shape
    size = min(n, max(SQUARED_AT_ONCE // d, 1))

    def add(i, total):
        # The last block begins early enough to be whole; what it repeats counts as 0.
        begin = jnp.minimum(i * size, n - size)
        fresh = begin + jnp.arange(size) >= i * size
        rows, counted = (jax.lax.dynamic_slice_in_dim(part, begin, size) for part in (x, weights))
        return total + matmul(jnp.where(fresh, counted, 0.0), rows**2)

    return jax.lax.fori_loop(0, -(-n // size), add, jnp.zeros(d, x.dtype))


def weighted_gram(x: Float[Array, "n d"], weights: Float[Array, " n"]) -> Float[Array, "d d"]:
    """Σ_i w_i x_i x_iᵀ; of wide x the lower left quarter is the mirror of the upper right one, not multiplied."""
    weighted, half = x * weights[:, None], x.shape[1] // 2
    if x.shape[1] < MIRRORED:
        return matmul(weighted.T, x)
    upper = matmul(weighted[:, :half].T, x)
    corner = matmul(weighted[:, half:].T, x[:, half:])
    lower = jnp.concatenate([upper[:, half:].T, corner], axis=1)
    return jnp.concatenate([upper, lower])


def weighted_second_moment(x: Float[Array, "n d"], weights: Float[Array, " n"]) -> Float[Array, "d d"]:
    """Σ_i w_i x_i x_iᵀ / Σ_i w_i."""
    return weighted_gram(x, weights) / jnp.sum(weights)


def relative_tolerance(dtype: Any, size: int) -> Float[Array, ""]:
    """Eigenvalues below this fraction of the largest count as null directions.

    A second moment squares the data's rounding, so the level is `size` times the machine epsilon, times
    a safety factor that covers the data's own rounding (features are often the result of a matmul).
    """
    return jnp.asarray(8.0 * size * jnp.finfo(dtype).eps, dtype)


def pseudo_inverse_root(
    sigma: Float[Array, "d d"], tolerance: Float[Array, ""] | float | None = None
) -> tuple[Float[Array, "d d"], Float[Array, "d d"], Int[Array, ""]]:
    """Σ^{-1/2} and Σ^{1/2} on the span of Σ, zero off it, and the rank of that span.

    Directions whose eigenvalue is at most `tolerance` times the largest are null: they are dropped, not
    inverted. Every difference of trajectory features has H exact null directions (docs/errata.md).

    **Arguments:** `sigma` [d, d], symmetric positive semi-definite.

    **Returns:** (whitener [d, d], colourer [d, d], rank).
    """
    values, vectors = eigh(sigma)
    if tolerance is None:
        tolerance = relative_tolerance(sigma.dtype, len(sigma))
    keep = values > tolerance * jnp.maximum(values[-1], 0.0)
    safe = jnp.where(keep, values, 1.0)
    whitener = matmul(vectors * jnp.where(keep, 1.0 / jnp.sqrt(safe), 0.0), vectors.T)
    colourer = matmul(vectors * jnp.where(keep, jnp.sqrt(safe), 0.0), vectors.T)
    return whitener, colourer, jnp.sum(keep)


def top_eigenpair(matrix: Float[Array, "d d"]) -> tuple[Float[Array, ""], Float[Array, " d"]]:
    """Largest eigenvalue of a symmetric matrix and its unit eigenvector, by dense `eigh`."""
    values, vectors = eigh(matrix)
    return values[-1], vectors[:, -1]
