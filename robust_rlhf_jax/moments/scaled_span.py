"""The span of the rows of a matrix, found in columns of typical size 1 so that no unit is lost in rounding."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.kernels.divisors import positive_or_one
from robust_rlhf_jax.kernels.lapack import qr_basis
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.kernels.units import in_units, typical_powers, unit_free_lengths

from .span import RowSpan, row_span


class ScaledSpan(eqx.Module):
    """`size` [k]: powers of two, typical entries of the columns; `span` of the rows divided by them."""

    size: Float[Array, " k"]
    span: RowSpan

    @property
    def rank(self) -> Int[Array, ""]:
        return self.span.rank

    @property
    def column_size(self) -> Float[Array, " k"]:
        """Root mean square entries, 1 for a column of zeros."""
        square = jnp.sum(self.span.variances * self.span.axes**2, axis=1)
        return self.size * jnp.sqrt(positive_or_one(square))

    def lengths(self, x: Float[Array, "n k"]) -> Float[Array, " n"]:
        """Whitened lengths √(xᵀΣ⁺x) of rows in the units of the columns."""
        return self.span.lengths(in_units(x, self.size))

    def projector(self) -> Float[Array, "k k"]:
        """To the span of the rows in their own units; exactly I where that is everything."""
        k = len(self.size)
        eye = jnp.eye(k, dtype=self.size.dtype)

        def deficient():
            # Kept axes first: those of most variance come last.
            axes = (self.span.axes * self.size[:, None] / jnp.max(self.size))[:, ::-1]
            basis = jnp.where(jnp.arange(axes.shape[1]) < self.rank, qr_basis(axes), 0.0)
            return matmul(basis, basis.T)

        return jax.lax.cond(self.rank == k, lambda: eye, deficient)


def scaled_span(
    x: Float[Array, "n k"], weights: Float[Array, " n"], epsilon: float | Float[Array, ""] = 0.0
) -> ScaledSpan:
    """The span of x under `weights` [n], rows longer than the typical one counted as if they were as long."""
    size = typical_powers(x)
    rows = in_units(x, size)
    return ScaledSpan(size, row_span(rows, weights * typical_share(rows, epsilon)))


def typical_share(rows: Float[Array, "n k"], epsilon: float | Float[Array, ""] = 0.0) -> Float[Array, " n"]:
    """min(1, 1/ℓ²), ℓ the row's length over the typical one: no row adds more to a second moment than that one."""
    return 1.0 / jnp.maximum(unit_free_lengths(rows, epsilon), 1.0) ** 2
