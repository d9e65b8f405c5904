"""A covariance that the caller knows: whether it is one, and which rows it rules out."""

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from robust_rlhf_jax.checks import check_finite, is_traced
from robust_rlhf_jax.kernels.linalg import matmul, relative_tolerance
from robust_rlhf_jax.kernels.units import column_medians

# Honest rows leave the span of their covariance by fewer standard deviations of the directions that count as null.
FARTHEST = 4.0


def known_covariance(x: Float[Array, "n d"], covariance: Float[ArrayLike, "d d"]) -> Float[Array, "d d"]:
    """The covariance in the precision of x.

    **Raises:** ValueError for a matrix that is not the covariance of rows of x; values are seen untraced only.
    """
    d = x.shape[1]
    if jnp.shape(covariance) != (d, d):
        raise ValueError(
            f"covariance has shape {jnp.shape(covariance)}; x has {d} columns: give one of shape ({d}, {d})."
        )
    given = jnp.asarray(covariance, x.dtype)
    if is_traced(given):
        return given
    check_finite(given, "covariance")
    values = np.asarray(covariance, np.float64)
    variances = np.diagonal(values)
    scale = np.sqrt(np.where(variances > 0, variances, 1.0))
    scaled = values / scale[:, None] / scale
    tolerance = float(relative_tolerance(x.dtype, d))
    if np.abs(scaled - scaled.T).max() > tolerance:
        raise ValueError("covariance is not symmetric: give the covariance matrix of the clean rows.")
    roots = np.linalg.eigvalsh((scaled + scaled.T) / 2)
    if roots[0] < -tolerance * max(roots[-1], 1.0):
        raise ValueError(
            "covariance is not positive semidefinite: give the covariance matrix of the clean rows, which has no "
            "negative eigenvalue."
        )
    if not values.any() and not is_traced(x) and bool((x != x[:1]).any()):
        raise ValueError(
            "covariance is all zero, but the rows of x differ: give the covariance of the clean rows, or leave it out."
        )
    return given


def off_span(
    rows: Float[Array, "n d"], whitener: Float[Array, "d d"], colourer: Float[Array, "d d"]
) -> Bool[Array, " n"]:
    """Which rows differ from the others, beyond rounding, along the null directions of a covariance.

    Along those the centre is the median of the rows, which half of them cannot move.
    """

    def off(x):
        return x - matmul(matmul(x, whitener), colourer)

    middle = column_medians(rows)
    centred = rows - middle
    beyond = off(centred)
    beyond = off(beyond - column_medians(beyond))
    # Eigenvalues up to the tolerance count as null: honest rows vary by their roots, and by their rounding.
    level = jnp.sqrt(relative_tolerance(rows.dtype, rows.shape[1]))
    widest = jnp.linalg.norm(colourer) + jnp.linalg.norm(centred, axis=1)
    rounding = level**2 * jnp.max(jnp.abs(middle))
    return jnp.linalg.norm(beyond, axis=1) > FARTHEST * (level * widest + rounding)
