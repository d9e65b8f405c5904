"""The span of the rows of a matrix, from the smaller of its two Gram matrices, down to the precision of the rows."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from robust_rlhf_jax.kernels.divisors import positive_or_one
from robust_rlhf_jax.kernels.lapack import FEW, eigh, qr_basis, right_svd, svd
from robust_rlhf_jax.kernels.linalg import matmul, relative_tolerance

# Eigenvalues of at least so many tolerances are accurate enough.
RESOLVED = 10.0
# The most directions along which far rows may hide all others from the Gram matrix.
FAR = 32
# Subspace iterations that look for them: three find rows that are far enough to hide others.
ITERATIONS = 6
# Residual up to which what they found are eigenvectors, in eps of the largest eigenvalue. A decomposition leaves up to
# six, the product that measures it as much; what has not converged leaves a hundred thousand.
EXACT = 30.0
# Where the other eigenvalues are this many times the least resolved one on average, or less, some are not resolved: of
# noise the smallest is half of the mean where rows are twelve times as many as columns (Marchenko & Pastur 1967).
HIDDEN = 2.0
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


class _Tall(NamedTuple):
    """The `rows`, or of few `wide` ones their transpose; `gram` rowsᵀ·rows."""

    rows: Float[Array, "m r"]
    gram: Float[Array, "r r"]
    wide: bool

    @property
    def least(self) -> Float[Array, ""]:
        """The least eigenvalue of `gram` that has digits enough, as a share of the largest."""
        return RESOLVED * self.tolerance

    @property
    def tolerance(self) -> Float[Array, ""]:
        """The singular value that is rounding, as a share of the largest."""
        return relative_tolerance(self.rows.dtype, self.rows.shape[1])


class _Leading(NamedTuple):
    """Eigenvectors of the largest eigenvalues of a Gram matrix as columns, ascending, and the deviations along them; 0
    where the matrix does not resolve them sharply.
    """

    vectors: Float[Array, "r f"]
    deviations: Float[Array, " f"]


def row_span(x: Float[Array, "n k"], weights: Float[Array, " n"]) -> RowSpan:
    """Principal axes of Σ = AᵀA with A = √w x/√Σw, from AAᵀ where n < k.

    A direction whose singular value is at most 8·min(n, k)·eps of the largest is null: rounding of the rows. A Gram
    matrix does not resolve directions below √eps of the largest deviation. If the rows have more than rounding along
    such directions, a second Gram matrix, of the rows without the largest directions, may resolve them (tried above
    `FEW` columns); if it does not either, a singular value decomposition does.
    """
    n, k = x.shape
    wide, r = n < k, min(n, k)
    rows = x * jnp.sqrt(weights / jnp.sum(weights))[:, None]
    tall = _tall(rows.T if wide else rows, wide)
    found = _from_one_or_two_grams(tall) if r > FEW else _from_decomposed(tall, *eigh(tall.gram))
    found = jax.lax.cond(found.sure, lambda: found, lambda: _from_rows(tall.rows, wide))
    keep = found.deviations > tall.tolerance * jnp.max(found.deviations)
    return RowSpan(
        jnp.where(keep, found.axes, 0.0), jnp.where(keep, found.deviations, 0.0) ** 2, jnp.sum(keep)
    )


def _tall(rows: Float[Array, "m r"], wide: bool) -> _Tall:
    return _Tall(rows, matmul(rows.T, rows), wide)


def _from_one_or_two_grams(tall: _Tall) -> _Axes:
    """Rows that are planted far out hide all others from a Gram matrix. Where they are seen without its decomposition,
    only that of the rows without those directions is decomposed; else both, if the first does not do.
    """
    leading, hide = _leading_by_iteration(tall)

    def one_then_two():
        values, vectors = eigh(tall.gram)
        found = _from_decomposed(tall, values, vectors)
        first = _sharply(tall, values[-FAR:], vectors[:, -FAR:])
        return jax.lax.cond(found.sure, lambda: found, lambda: _beyond(tall, first))

    return jax.lax.cond(hide, lambda: _beyond(tall, leading), one_then_two)


def _leading_by_iteration(tall: _Tall) -> tuple[_Leading, Bool[Array, ""]]:
    """The leading directions, and whether they are found and hide others."""
    gram, (r, eps) = tall.gram, (len(tall.gram), jnp.finfo(tall.gram.dtype).eps)
    start = jax.random.rademacher(jax.random.key(0), (r, FAR), gram.dtype)
    basis = jax.lax.fori_loop(0, ITERATIONS, lambda _, basis: qr_basis(matmul(gram, basis)), start)
    values, turn = eigh(matmul(basis.T, matmul(gram, basis)))
    leading = _sharply(tall, values, matmul(basis, turn))
    off = matmul(gram, leading.vectors) - leading.vectors * leading.deviations**2
    off -= leading.vectors * jnp.sum(leading.vectors * off, axis=0)  # what is off in the values is no matter
    found = jnp.max(jnp.linalg.norm(off, axis=0)) <= EXACT * eps * values[-1]
    others = (jnp.trace(gram) - jnp.sum(values)) / (r - FAR)
    return leading, found & (others <= HIDDEN * tall.least * values[-1])


def _sharply(tall: _Tall, values: Float[Array, " f"], vectors: Float[Array, "r f"]) -> _Leading:
    sharp = values > jnp.sqrt(tall.least) * values[-1]
    return _Leading(jnp.where(sharp, vectors, 0.0), jnp.sqrt(jnp.where(sharp, values, 0.0)))


def _from_decomposed(
    tall: _Tall,
    values: Float[Array, " r"],
    vectors: Float[Array, "r r"],
    largest: Float[Array, ""] | None = None,
) -> _Axes:
    """From the eigenvalues and eigenvectors of `gram`. Directions that they do not resolve are null if what the rows
    have along them is rounding of the `largest` deviation there is, by default theirs.
    """
    resolved = values > tall.least * values[-1]
    deviations = jnp.sqrt(jnp.where(resolved, values, 0.0))
    rounding = tall.tolerance * (deviations[-1] if largest is None else largest)
    if tall.wide:
        images = matmul(tall.rows, vectors)
        sure = jnp.linalg.norm(jnp.where(resolved, 0.0, images)) <= rounding
        return _Axes(images / positive_or_one(deviations), deviations, sure)

    def rest():
        return size_along(tall.rows, jnp.where(resolved, 0.0, vectors))

    left = jax.lax.cond(jnp.all(resolved), lambda: jnp.zeros((), tall.rows.dtype), rest)
    return _Axes(vectors, deviations, left <= rounding)


def size_along(tall: Float[Array, "m r"], vectors: Float[Array, "r r"]) -> Float[Array, ""]:
    """‖tall·vectors‖ in the Frobenius norm; of many vectors √(mean ‖tall·vectors·z‖²) over signs z drawn at random."""
    r = vectors.shape[1]
    if r <= 2 * SIGNS:
        return jnp.linalg.norm(matmul(tall, vectors))
    signs = jax.random.rademacher(jax.random.key(0), (r, SIGNS), tall.dtype)
    return jnp.linalg.norm(matmul(tall, matmul(vectors, signs))) / SIGNS**0.5


def _beyond(tall: _Tall, leading: _Leading) -> _Axes:
    """The leading directions, and those of a second Gram matrix, of the rows without them: it resolves the others."""
    images = matmul(tall.rows, leading.vectors)
    left = images / positive_or_one(leading.deviations)
    # Without the left singular vectors where these are the axes, else without the right ones.
    if tall.wide:
        far, rest = left, tall.rows - matmul(left, matmul(left.T, tall.rows))
    else:
        far, rest = leading.vectors, tall.rows - matmul(images, leading.vectors.T)
    rest = _tall(rest, tall.wide)
    other = _from_decomposed(rest, *eigh(rest.gram), largest=leading.deviations[-1])
    # A row far out along these would show any rounding that the other axes have of them.
    axes = other.axes - matmul(far, matmul(far.T, other.axes))
    both = jnp.concatenate([other.deviations, leading.deviations])
    order = jnp.argsort(both)[FAR:]
    return _Axes(jnp.concatenate([axes, far], axis=1)[:, order], both[order], other.sure)


def _from_rows(tall: Float[Array, "m r"], wide: bool) -> _Axes:
    """The span from the rows themselves, whatever the singular values."""
    if wide:
        left, deviations, _ = svd(tall)
        return _Axes(left[:, ::-1], deviations[::-1], jnp.asarray(True))
    deviations, right = right_svd(tall)
    return _Axes(right.T[:, ::-1], deviations[::-1], jnp.asarray(True))
