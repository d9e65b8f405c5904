"""The span of the rows of a wide matrix, from the smaller of its two Gram matrices."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.kernels.lapack import eigh
from robust_rlhf_jax.kernels.linalg import matmul, relative_tolerance


class RowSpan(eqx.Module):
    """`axes` [k, min(n, k)]: principal axes of the rows as columns, zero where null; `variances`: the second moment
    along each; `rank`: how many are not null.
    """

    axes: Float[Array, "k r"]
    variances: Float[Array, " r"]
    rank: Int[Array, ""]

    def project(self, points: Float[Array, "m k"]) -> Float[Array, "m k"]:
        """The closest points in the span."""
        return matmul(matmul(points, self.axes), self.axes.T)

    def lengths(self, x: Float[Array, "n k"]) -> Float[Array, " n"]:
        """Whitened lengths √(xᵀΣ⁺x)."""
        scale = jnp.sqrt(jnp.where(self.variances > 0, self.variances, 1.0))
        return jnp.linalg.norm(matmul(x, self.axes) / scale, axis=1)


def row_span(x: Float[Array, "n k"], weights: Float[Array, " n"]) -> RowSpan:
    """Eigenvectors of Σ = AᵀA with A = √w x/√Σw: V as they are, or AᵀUΛ^{-1/2} from AAᵀ = UΛUᵀ where n < k.

    One `eigh` of size min(n, k). What counts as null is as in `pseudo_inverse_root`.
    """
    n, k = x.shape
    rows = x * jnp.sqrt(weights / jnp.sum(weights))[:, None]
    values, vectors = eigh(matmul(rows, rows.T) if n < k else matmul(rows.T, rows))
    keep = values > relative_tolerance(x.dtype, min(n, k)) * jnp.maximum(values[-1], 0.0)
    variances = jnp.where(keep, values, 0.0)
    if n < k:
        vectors = matmul(rows.T, vectors) / jnp.sqrt(jnp.where(keep, values, 1.0))
    return RowSpan(jnp.where(keep, vectors, 0.0), variances, jnp.sum(keep))
