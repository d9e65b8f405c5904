"""The span of the rows of a matrix, from the smaller of its two Gram matrices, down to the precision of the rows."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.kernels.divisors import positive_or_one
from robust_rlhf_jax.kernels.lapack import eigh, right_svd, svd
from robust_rlhf_jax.kernels.linalg import matmul, relative_tolerance

# Eigenvalues this many times the tolerance have digits enough.
RESOLVED = 10.0


class RowSpan(eqx.Module):
    """`axes` [k, min(n, k)]: principal axes of the rows as columns, zero where null; `variances`: the second moment
    along each, ascending; `rank`: how many are not null.
    """

    axes: Float[Array, "k r"]
    variances: Float[Array, " r"]
    rank: Int[Array, ""]

    def project(self, points: Float[Array, "m k"]) -> Float[Array, "m k"]:
        """The closest points in the span."""
        return matmul(matmul(points, self.axes), self.axes.T)

    def whiten(self, x: Float[Array, "n k"]) -> Float[Array, "n r"]:
        """Rows in coordinates in which the second moment is I."""
        return matmul(x, self.axes) / self._deviations()

    def lengths(self, x: Float[Array, "n k"]) -> Float[Array, " n"]:
        """Whitened lengths √(xᵀΣ⁺x)."""
        return jnp.linalg.norm(self.whiten(x), axis=1)

    def _deviations(self) -> Float[Array, " r"]:
        return jnp.sqrt(positive_or_one(self.variances))


def row_span(x: Float[Array, "n k"], weights: Float[Array, " n"]) -> RowSpan:
    """Principal axes of Σ = AᵀA with A = √w x/√Σw, from AAᵀ where n < k.

    A direction whose singular value is at most 8·min(n, k)·eps of the largest is null: rounding of the rows. One `eigh`
    of size min(n, k), and a singular value decomposition where directions lie below √eps, of which a Gram matrix keeps
    no digit.
    """
    n, k = x.shape
    rows = x * jnp.sqrt(weights / jnp.sum(weights))[:, None]
    tall = rows.T if n < k else rows
    values, vectors = eigh(matmul(tall.T, tall))
    tolerance = relative_tolerance(x.dtype, min(n, k))
    resolved = jnp.all(values > RESOLVED * tolerance * values[-1])
    axes, deviations = jax.lax.cond(
        resolved, lambda: _from_gram(tall, values, vectors, n < k), lambda: _from_rows(tall, n < k)
    )
    keep = deviations > tolerance * jnp.max(deviations)
    return RowSpan(jnp.where(keep, axes, 0.0), jnp.where(keep, deviations, 0.0) ** 2, jnp.sum(keep))


def _from_gram(
    tall: Float[Array, "m r"], values: Float[Array, " r"], vectors: Float[Array, "r r"], wide: bool
):
    """(principal axes, singular values) from the eigenvalues, all of them > 0, and eigenvectors of tallᵀ·tall."""
    deviations = jnp.sqrt(values)
    if not wide:
        return vectors, deviations
    return matmul(tall, vectors) / deviations, deviations


def _from_rows(tall: Float[Array, "m r"], wide: bool):
    """The same from the rows themselves, whatever the singular values."""
    if not wide:
        deviations, right = right_svd(tall)
        return right.T[:, ::-1], deviations[::-1]
    left, deviations, _ = svd(tall)
    return left[:, ::-1], deviations[::-1]
