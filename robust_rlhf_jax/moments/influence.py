"""Bounds on suspect rows: the weight of those that a filter removed, and how far any row may lie."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from robust_rlhf_jax.kernels.units import (
    LONGEST_IN_SCALES,
    in_units,
    shortened,
    typical_powers,
    unit_free_lengths,
)

# Rows that a filter removed keep this weight. Where every row of a direction is suspect (a rarely visited state looks
# exactly like an outlier) the direction stays identified by them; where clean rows cover it too, suspect rows count a
# thousandth.
SUSPECT_WEIGHT = 1e-3


def bounded_rows(x: Float[Array, "n d"], epsilon: Float[Array, ""]) -> Float[Array, "n d"]:
    """Rows of which none is `LONGEST` times as long as the typical one, in columns of typical size 1, unless all are
    trusted (ε = 0); NaN where x is not finite.
    """
    size = typical_powers(x)
    rows = in_units(x, size)
    return jnp.where(epsilon > 0, shortened(rows, unit_free_lengths(rows, epsilon)), rows) * size


def floored_weights(
    x: Float[Array, "n d"], weights: Float[Array, " n"], epsilon: Float[Array, ""]
) -> Float[Array, " n"]:
    """Weights of at least `SUSPECT_WEIGHT`, less for rows over `LONGEST_IN_SCALES` times as long as the typical one.

    What a suspect row counts times its squared length is bounded, however far it lies. At ε = 0 no row is suspect.
    """
    relative = unit_free_lengths(in_units(x, typical_powers(x)), epsilon)
    share = jnp.minimum(1.0, LONGEST_IN_SCALES / jnp.maximum(relative, 1.0)) ** 2
    return jnp.maximum(weights, SUSPECT_WEIGHT) * jnp.where(epsilon > 0, share, 1.0)
