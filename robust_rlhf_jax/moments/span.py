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
# The most directions along which far rows may hide all others from the Gram matrix.
FAR = 32
# Random signs that measure what rows have along many directions: to 12 % (one standard error) if it is along one.
SIGNS = 64


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
    """Principal `axes` [k, r] as columns, the `deviations` [r] along them, ascending, 0 of what is null; `sure`:
    whether all other directions are rounding.
    """

    axes: Float[Array, "k r"]
    deviations: Float[Array, " r"]
    sure: Bool[Array, ""]


class _Gram(NamedTuple):
    """The rows, or of few `wide` ones their transpose, as `tall`; `values` [r], ascending, and `vectors` of tallᵀ·tall;
    the `least` value that has digits enough, as a share of the largest.
    """

    tall: Float[Array, "m r"]
    values: Float[Array, " r"]
    vectors: Float[Array, "r r"]
    least: Float[Array, ""]
    wide: bool


def row_span(x: Float[Array, "n k"], weights: Float[Array, " n"]) -> RowSpan:
    """Principal axes of Σ = AᵀA with A = √w x/√Σw, from AAᵀ where n < k.

    A direction whose singular value is at most 8·min(n, k)·eps of the largest is null: rounding of the rows. A Gram
    matrix does not resolve directions below √eps of the largest deviation. If the rows have more than rounding along
    such directions, a second Gram matrix, of the rows without the largest directions, may resolve them (tried above
    `FEW` columns); if it does not either, a singular value decomposition does.
    """
    n, k = x.shape
    rows = x * jnp.sqrt(weights / jnp.sum(weights))[:, None]
    tolerance = relative_tolerance(x.dtype, min(n, k))
    gram = _gram(rows.T if n < k else rows, n < k)
    rounding = tolerance * jnp.sqrt(gram.values[-1])
    found = _from_gram(gram, rounding)
    if min(n, k) > FEW:
        found = jax.lax.cond(found.sure, lambda: found, lambda: _from_two_grams(gram, rounding))
    found = jax.lax.cond(found.sure, lambda: found, lambda: _from_rows(gram.tall, gram.wide))
    keep = found.deviations > tolerance * jnp.max(found.deviations)
    return RowSpan(
        jnp.where(keep, found.axes, 0.0), jnp.where(keep, found.deviations, 0.0) ** 2, jnp.sum(keep)
    )


def _gram(tall: Float[Array, "m r"], wide: bool) -> _Gram:
    least = RESOLVED * relative_tolerance(tall.dtype, tall.shape[1])
    values, vectors = eigh(matmul(tall.T, tall))
    return _Gram(tall, values, vectors, least, wide)


def _from_gram(gram: _Gram, rounding: Float[Array, ""]) -> _Axes:
    """From eigenvalues and eigenvectors; directions that they do not resolve are null if what the rows have along them
    is `rounding`.
    """
    tall, values, vectors, least, wide = gram
    resolved = values > least * values[-1]
    deviations = jnp.sqrt(jnp.where(resolved, values, 0.0))
    if wide:
        images = matmul(tall, vectors)
        sure = jnp.linalg.norm(jnp.where(resolved, 0.0, images)) <= rounding
        return _Axes(images / positive_or_one(deviations), deviations, sure)

    def rest():
        return size_along(tall, jnp.where(resolved, 0.0, vectors))

    left = jax.lax.cond(jnp.all(resolved), lambda: jnp.zeros((), tall.dtype), rest)
    return _Axes(vectors, deviations, left <= rounding)


def size_along(tall: Float[Array, "m r"], vectors: Float[Array, "r r"]) -> Float[Array, ""]:
    """‖tall·vectors‖ in the Frobenius norm; of many vectors √(mean ‖tall·vectors·z‖²) over signs z drawn at random."""
    r = vectors.shape[1]
    if r <= 2 * SIGNS:
        return jnp.linalg.norm(matmul(tall, vectors))
    signs = jax.random.rademacher(jax.random.key(0), (r, SIGNS), tall.dtype)
    return jnp.linalg.norm(matmul(tall, matmul(vectors, signs))) / SIGNS**0.5


def _from_two_grams(gram: _Gram, rounding: Float[Array, ""]) -> _Axes:
    """The `FAR` largest directions that the Gram matrix resolves sharply, and what a second one does, of the rows
    without those.

    Rows that are planted far out hide all others from the first: the second has digits for those.
    """
    tall, values, vectors, least, wide = gram
    sharp = values[-FAR:] > jnp.sqrt(least) * values[-1]
    deviations = jnp.sqrt(jnp.where(sharp, values[-FAR:], 0.0))
    right = jnp.where(sharp, vectors[:, -FAR:], 0.0)
    images = matmul(tall, right)
    left = images / positive_or_one(deviations)
    # Without the left singular vectors where these are the axes, else without the right ones.
    rest = tall - (matmul(left, matmul(left.T, tall)) if wide else matmul(images, right.T))
    other = _from_gram(_gram(rest, wide), rounding)
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
