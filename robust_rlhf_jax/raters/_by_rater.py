"""Sums over the pairs of each rater."""

import jax
from jaxtyping import Array, Float, Int


def gram_by_rater(
    rows: Float[Array, "N r"], weights: Float[Array, " N"], raters: Int[Array, " N"], n_raters: int
) -> Float[Array, "K r r"]:
    """Σ_{i∈k} w_i y_i y_iᵀ of every rater k."""
    outer = (weights[:, None] * rows)[:, :, None] * rows[:, None, :]
    return jax.ops.segment_sum(outer, raters, n_raters)
