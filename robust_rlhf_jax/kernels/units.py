"""Typical sizes that half of the entries cannot move, as powers of two: dividing by them rounds nothing."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from .divisors import positive_or_one
from .quantile import upper_threshold, upper_thresholds

# A row longer than this many typical rows keeps its direction and is shortened: no precision tells it from infinity.
LONGEST = 1e4
# If all rows count alike, as in a scale, longer ones count as if they were this many typical rows long.
LONGEST_IN_SCALES = 10.0
# Rows this many times as short as others differ by the rounding of float32 (6·10⁻⁸ of entries fifty times as large as
# their differences), if `TOO_MANY` rows are so much longer: a fifth may be corrupt, unless a larger ε is told.
ROUNDING = 3e5
TOO_MANY = 0.3


def typical_powers(x: Float[Array, "n k"]) -> Float[Array, " k"]:
    """The power of two at or below the median of |x_nj| over the rows where it is not 0, for each column j; 1 for a
    column of zeros.

    Bisection over exponents, without a sort.
    """
    info = jnp.finfo(x.dtype)
    least, most = int(info.minexp), int(info.maxexp) - 2
    size = jnp.abs(x)
    half = 0.5 * jnp.sum(size > 0, axis=0)
    bounds = jnp.full(x.shape[1], least), jnp.full(x.shape[1], most)

    def halve(_, bounds):
        low, high = bounds
        middle = (low + high + 1) // 2
        enough = jnp.sum(size >= _power(middle, x.dtype), axis=0) >= half
        return jnp.where(enough, middle, low), jnp.where(enough, high, middle - 1)

    exponent, _ = jax.lax.fori_loop(0, (most - least).bit_length(), halve, bounds)
    return jnp.where(half > 0, _power(exponent, x.dtype), 1.0)


def _power(exponent: Int[Array, " d"], dtype: Any):
    """2^exponent of a normal number, written as its bits: a GPU rounds the power of 2, and with it `jnp.ldexp`."""
    info = jnp.finfo(dtype)
    biased = exponent.astype(f"int{info.bits}") - int(info.minexp) + 1
    return jax.lax.bitcast_convert_type(biased << info.nmant, dtype)


def in_units(x: Float[Array, "n k"], size: Float[Array, " k"]) -> Float[Array, "n k"]:
    """x/size with entries of at most a 2¹⁰-th of the largest float, whose reciprocals are not flushed to 0; NaN where x
    is not finite.
    """
    most = jnp.finfo(x.dtype).max * 2.0**-10
    return jnp.where(jnp.isfinite(x), jnp.clip(x / size, -most, most), jnp.nan)


def relative_lengths(x: Float[Array, "n k"]) -> Float[Array, " n"]:
    """‖x_n‖ over the (upper) median of the lengths that are not 0, for rows of `in_units`."""
    size = row_sizes(x)
    return size / typical_size(size)


def row_sizes(x: Float[Array, "n k"]) -> Float[Array, " n"]:
    """‖x_n‖, without overflow, for rows of `in_units`."""
    most = jnp.max(jnp.abs(x), axis=1)
    return most * jnp.linalg.norm(x / positive_or_one(most)[:, None], axis=1)


def typical_size(size: Float[Array, " n"]) -> Float[Array, ""]:
    """The (upper) median of the sizes that are not 0; 1 where none is."""
    return _upper_size(size, 0.5)


def honest_size(size: Float[Array, " n"]) -> Float[Array, ""]:
    """`typical_size`; but where `TOO_MANY` of the sizes that are not 0 exceed `ROUNDING` times that, the size that so
    many reach: some of those are honest, and most of the others come of rounding.
    """
    typical, reached = typical_size(size), _upper_size(size, TOO_MANY)
    # Divided, since a product may be beyond the largest float.
    return jnp.where(reached / ROUNDING > typical, reached, typical)


def _upper_size(size: Float[Array, " n"], share: float) -> Float[Array, ""]:
    """The largest size that a `share` of those that are not 0 reach; 1 where none is."""
    present = (size > 0).astype(size.dtype)
    return positive_or_one(upper_threshold(size, present, share * jnp.sum(present)))


def typical_entries(x: Float[Array, "n k"], epsilon: float | Float[Array, ""] = 0.0) -> Float[Array, " k"]:
    """The (upper) median of the |x_nj| that are not 0, less the εn smallest of them; 1 for a column of zeros.

    Where honest rows are mostly 0, a few lies of next to nothing must not make every honest entry look large.
    """
    size = jnp.where(jnp.abs(x) > 0, jnp.abs(x), 0.0)
    mass = 0.5 * jnp.maximum(jnp.sum(size > 0, axis=0) - epsilon * len(x), 0.0)
    return positive_or_one(upper_thresholds(size, mass.astype(x.dtype)))


def unit_free_lengths(x: Float[Array, "n k"], epsilon: float | Float[Array, ""] = 0.0) -> Float[Array, " n"]:
    """`relative_lengths` in columns divided by their typical entry, so that the columns' units do not matter."""
    return relative_lengths(in_units(x, typical_entries(x, epsilon)))


def shortened(x: Float[Array, "n k"], relative: Float[Array, " n"], longest: float = LONGEST):
    """Rows at most `longest` typical rows long, in their directions."""
    return x * shortening(relative, longest)[:, None]


def shortening(relative: Float[Array, " n"], longest: float = LONGEST) -> Float[Array, " n"]:
    """What `shortened` multiplies rows by, all that are at most `longest` typical rows long by 1."""
    return jnp.minimum(1.0, longest / jnp.maximum(relative, 1.0))


def column_medians(x: Float[Array, "n k"]) -> Float[Array, " k"]:
    """The (upper) median of each column."""
    ones = jnp.ones(len(x), x.dtype)
    return jax.vmap(upper_threshold, (1, None, None))(x, ones, jnp.asarray(0.5 * len(x), x.dtype))
