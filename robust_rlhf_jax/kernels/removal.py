"""Soft removal: what one step of a robust-mean filter takes from the rows of the highest scores (`spectral.py`)."""

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .divisors import positive_or_one
from .linalg import matmul
from .quantile import upper_threshold

# Rows within this factor of the highest score go together; those far below it lose next to nothing.
TOP_RANGE = 64.0
# A removed row keeps a weight of rounding size or none at all.
GONE = 1e-5
# Weights up to this, in eps, are rounding, and 0. Kept, the last row that shows a direction would decide how long it is
# in it, and look farther out than any other.
ROUNDING = 100.0


def remove_softly(
    weights: Float[Array, " n"],
    scores: Float[Array, " n"],
    suspects: Float[Array, ""],
    chop: Float[Array, ""],
    budget: Float[Array, ""],
) -> Float[Array, " n"]:
    """Lower the weights of the highest scores: w_i ← w_i·(1 − s·min(τ_i/T, 1)·1[τ_i ≥ L]).

    L is the score above which mass `suspects` lies (εn: there are no more corrupt rows than that), so rows of
    ordinary score lose nothing. T is the score above which mass `chop` lies, or a 64th of the largest score if that
    is more: with the largest itself one far row costs a whole step, with the quantile alone ordinary rows go with
    the last few far ones. Either way the largest score falls 64-fold or mass `chop` goes, which bounds the number
    of steps. s ≤ 1 keeps the removed mass within `budget`. (Diakonikolas & Kane 2023,
    the universal filter for stable sets, with T in place of the maximum.)
    """
    chex.assert_rank(weights, 1)
    chex.assert_equal_shape([weights, scores])
    lowest, chopped = jax.vmap(upper_threshold, (None, None, 0))(scores, weights, jnp.stack([suspects, chop]))
    highest = jnp.max(jnp.where(weights > GONE, scores, 0.0))
    threshold = jnp.maximum(chopped, highest / TOP_RANGE)
    share = jnp.minimum(scores / jnp.where(threshold > 0, threshold, jnp.inf), 1.0)
    share = jnp.where(scores >= lowest, share, 0.0)
    removed = matmul(weights, share)
    scale = jnp.minimum(1.0, budget / positive_or_one(removed))
    left = weights * (1.0 - scale * share)
    return jnp.where(left > ROUNDING * jnp.finfo(left.dtype).eps, left, 0.0)
