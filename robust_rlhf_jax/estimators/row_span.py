"""The span of the rows of a matrix, from the smaller of its two Gram matrices, down to the precision of the rows."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.kernels.lapack import eigh
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
        return jnp.sqrt(jnp.where(self.variances > 0, self.variances, 1.0))


def row_span(x: Float[Array, "n k"], weights: Float[Array, " n"]) -> RowSpan:
    """Principal axes of Σ = AᵀA with A = √w x/√Σw, from AAᵀ where n < k.

    A direction whose singular value is at most 8·min(n, k)·eps of the largest is null: rounding of the rows. One `eigh`
    of size min(n, k), and a second one where directions lie below √eps, of which a Gram matrix keeps no digit.
    """
    n, k = x.shape
    rows = x * jnp.sqrt(weights / jnp.sum(weights))[:, None]
    tall = rows.T if n < k else rows
    values, vectors = eigh(matmul(tall.T, tall))
    tolerance = relative_tolerance(x.dtype, min(n, k))
    large = values > RESOLVED * tolerance * jnp.maximum(values[-1], 0.0)
    refine = partial(_resolve_small, tall, vectors, large)
    turn, images, deviations = jax.lax.cond(
        jnp.all(large), lambda: _images(tall, vectors, jnp.sqrt(jnp.maximum(values, 0.0))), refine
    )
    keep = deviations > tolerance * jnp.max(deviations)
    axes = images if n < k else turn
    return RowSpan(jnp.where(keep, axes, 0.0), jnp.where(keep, deviations, 0.0) ** 2, jnp.sum(keep))


def _images(a, vectors, deviations):
    """(V, unit columns of AV, singular values)."""
    return vectors, matmul(a, vectors) / jnp.where(deviations > 0, deviations, 1.0), deviations


def _resolve_small(a, vectors, large):
    """`_images` of eigenvectors V of AᵀA of which those not `large` are lost in rounding, as a space they are not.

    Their images are freed of what rounding left in them of the large ones, and sorted among themselves by an `eigh` of
    their own Gram matrix, whose rounding is as small as they are.
    """
    images = matmul(a, vectors)
    sizes = jnp.linalg.norm(images, axis=0)
    inverse = jnp.where(large, 1.0 / jnp.where(sizes > 0, sizes, 1.0), 0.0)
    mend = _mend(images * inverse)
    unit = matmul(images * inverse, mend)
    leak = matmul(unit.T, images)
    small = jnp.where(large, 0.0, vectors - matmul(matmul(vectors * inverse, mend), leak))
    images = jnp.where(large, 0.0, images - matmul(unit, leak))
    gram = matmul(images.T, images)
    total = jnp.trace(gram)
    # Above all others, so that the large ones come last, where they were.
    turn = eigh(gram / jnp.where(total > 0, total, 1.0) + 2.0 * jnp.diag(large.astype(a.dtype)))[1]
    small, images = matmul(small, turn), matmul(images, turn)
    deviations = jnp.where(large, sizes, jnp.linalg.norm(images, axis=0))
    seen = ~large & (deviations > jnp.finfo(a.dtype).eps * jnp.max(deviations))
    images = jnp.where(seen, images / jnp.where(seen, deviations, 1.0), 0.0)
    small = matmul(small, _mend(small))
    vectors = jnp.where(large, vectors - matmul(small, matmul(small.T, vectors)), small)
    return vectors, unit + matmul(images, _mend(images)), deviations


def _mend(columns):
    """M that makes columns·M orthonormal to the last digit where the columns are to a few, or 0 (Newton and Schulz)."""
    eye = jnp.eye(columns.shape[1], dtype=columns.dtype)
    first = 1.5 * eye - 0.5 * matmul(columns.T, columns)
    columns = matmul(columns, first)
    return matmul(first, 1.5 * eye - 0.5 * matmul(columns.T, columns))
