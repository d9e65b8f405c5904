"""The span of the rows of a matrix, from the smaller of its two Gram matrices, down to the precision of the rows."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from robust_rlhf_jax.kernels.divisors import positive_or_one
from robust_rlhf_jax.kernels.lapack import FEW, eigh, right_svd, svd
from robust_rlhf_jax.kernels.linalg import matmul, relative_tolerance

# Eigenvalues this many times the tolerance have digits enough.
RESOLVED = 10.0
# Directions along which rows may lie far out, and hide from the Gram matrix what else there is, at most.
FAR = 32


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


class _Axes(NamedTuple):
    """Principal `axes` [k, r] as columns, the `deviations` [r] along them, ascending, 0 of what is null; `sure`: of
    whether all other directions are rounding.
    """

    axes: Float[Array, "k r"]
    deviations: Float[Array, " r"]
    sure: Bool[Array, ""]


def row_span(x: Float[Array, "n k"], weights: Float[Array, " n"]) -> RowSpan:
    """Principal axes of Σ = AᵀA with A = √w x/√Σw, from AAᵀ where n < k.

    A direction whose singular value is at most 8·min(n, k)·eps of the largest is null: rounding of the rows. A Gram
    matrix keeps no digit of directions below √eps of the largest deviation. Where such directions are more than
    rounding, a second Gram matrix without the largest ones has digits for them, where there are many columns; where
    that does not suffice, a singular value decomposition has.
    """
    n, k = x.shape
    rows = x * jnp.sqrt(weights / jnp.sum(weights))[:, None]
    tall, wide = rows.T if n < k else rows, n < k
    tolerance = relative_tolerance(x.dtype, min(n, k))
    values, vectors = eigh(matmul(tall.T, tall))
    rounding = tolerance * jnp.sqrt(values[-1])
    found = _from_gram(tall, values, vectors, rounding, wide)
    if min(n, k) > FEW:
        found = jax.lax.cond(
            found.sure, lambda: found, lambda: _from_two_grams(tall, values, vectors, rounding, wide)
        )
    found = jax.lax.cond(found.sure, lambda: found, lambda: _from_rows(tall, wide))
    keep = found.deviations > tolerance * jnp.max(found.deviations)
    return RowSpan(
        jnp.where(keep, found.axes, 0.0), jnp.where(keep, found.deviations, 0.0) ** 2, jnp.sum(keep)
    )


def _least_resolved(values: Float[Array, " r"]) -> Float[Array, ""]:
    """The share of the largest eigenvalue of a Gram matrix above which they have digits enough."""
    return RESOLVED * relative_tolerance(values.dtype, len(values))


def _from_gram(
    tall: Float[Array, "m r"],
    values: Float[Array, " r"],
    vectors: Float[Array, "r r"],
    rounding: Float[Array, ""],
    wide: bool,
) -> _Axes:
    """From eigenvalues and eigenvectors of tallᵀ·tall; directions of which they know nothing are null if what the rows
    have along them is `rounding`.
    """
    resolved = values > _least_resolved(values) * values[-1]
    deviations = jnp.sqrt(jnp.where(resolved, values, 0.0))
    if wide:
        images = matmul(tall, vectors)
        sure = jnp.linalg.norm(jnp.where(resolved, 0.0, images)) <= rounding
        return _Axes(images / positive_or_one(deviations), deviations, sure)
    rest = lambda: jnp.linalg.norm(matmul(tall, jnp.where(resolved, 0.0, vectors)))  # noqa: E731
    rest = jax.lax.cond(jnp.all(resolved), lambda: jnp.zeros((), tall.dtype), rest)
    return _Axes(vectors, deviations, rest <= rounding)


def _from_two_grams(
    tall: Float[Array, "m r"],
    values: Float[Array, " r"],
    vectors: Float[Array, "r r"],
    rounding: Float[Array, ""],
    wide: bool,
) -> _Axes:
    """The `FAR` largest directions that the first Gram matrix resolves sharply, and what the second does, of the rows
    without those.

    Rows that are planted far out hide all others from the first: the second has digits for those.
    """
    sharp = values[-FAR:] > jnp.sqrt(_least_resolved(values)) * values[-1]
    deviations, right = (
        jnp.where(sharp, part[..., -FAR:], 0.0) for part in (jnp.sqrt(jnp.abs(values)), vectors)
    )
    images = matmul(tall, right)
    left = images / positive_or_one(deviations)
    # Without the left singular vectors where these are the axes, else without the right ones.
    rest = tall - (matmul(left, matmul(left.T, tall)) if wide else matmul(images, right.T))
    others, vectors = eigh(matmul(rest.T, rest))
    other = _from_gram(rest, others, vectors, rounding, wide)
    far = left if wide else right
    # A row far out along these would show any rounding that the other axes have of them.
    axes = other.axes - matmul(far, matmul(far.T, other.axes))
    both = jnp.concatenate([other.deviations, deviations])
    order = jnp.argsort(both)[FAR:]
    return _Axes(jnp.concatenate([axes, far], axis=1)[:, order], both[order], other.sure)


def _from_rows(tall: Float[Array, "m r"], wide: bool) -> _Axes:
    """From the rows themselves, whatever the singular values."""
    if wide:
        left, deviations, _ = svd(tall)
        return _Axes(left[:, ::-1], deviations[::-1], jnp.asarray(True))
    deviations, right = right_svd(tall)
    return _Axes(right.T[:, ::-1], deviations[::-1], jnp.asarray(True))
