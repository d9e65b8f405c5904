"""Weighted order statistics without a sort: bisection on the bits of a float."""

from collections.abc import Callable
from typing import Any

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .divisors import positive_or_one
from .float_bits import UNSIGNED, float_from_bits, ordered_bits


def _largest_bits(enough: Callable[[Array], Array], shape: tuple[int, ...], dtype: Any) -> Array:
    """The largest unsigned integers [shape] for which `enough` holds, which holds for all below them; 0 where none."""
    unsigned, bits = UNSIGNED[jnp.dtype(dtype)]

    def set_bit(carry):
        threshold, bit = carry
        trial = threshold | bit
        return jnp.where(enough(trial), trial, threshold), bit >> unsigned(1)

    first = jnp.zeros(shape, unsigned), unsigned(1) << unsigned(bits - 1)
    return jax.lax.while_loop(lambda carry: carry[1] > 0, set_bit, first)[0]


def upper_threshold(
    x: Float[Array, " n"], weights: Float[Array, " n"], mass: Float[Array, ""]
) -> Float[Array, ""]:
    """The largest t among the values x with Σ_i w_i·1[x_i ≥ t] ≥ mass: an exact weighted quantile.

    32 (float32) or 64 (float64) passes over the data in place of a sort: XLA's CPU sort of 10⁵ values costs
    more than all the passes together, and the passes batch. The largest x if `mass` is 0, −∞ if it exceeds Σw.

    **Arguments:** `x` [n] without NaN, `weights` [n] ≥ 0, `mass` ≥ 0.
    """
    chex.assert_rank(x, 1)
    chex.assert_equal_shape([x, weights])
    keys = ordered_bits(x)
    found = _largest_bits(lambda trial: jnp.sum(jnp.where(keys >= trial, weights, 0)) >= mass, (), x.dtype)
    # No bit could be set: rounding put `mass` a hair above Σw, and every value is wanted.
    threshold = jnp.where(found == 0, -jnp.inf, float_from_bits(found, x.dtype))
    return jnp.where(mass > 0, threshold, jnp.max(x))


def upper_thresholds(x: Float[Array, "n k"], count: Float[Array, " k"]) -> Float[Array, " k"]:
    """`upper_threshold` of each column of x ≥ 0, at weight 1 where x_ij > 0 and else 0.

    Rows are read as they lie, and no weights: it takes 3/5 of the time.

    **Arguments:** `x` [n, k] ≥ 0 without NaN, `count` [k] ≥ 0 and at most the number of x_ij > 0 in column j.
    """
    # The bits of floats from 0 up are in their order.
    keys = jax.lax.bitcast_convert_type(x, UNSIGNED[x.dtype][0])
    found = _largest_bits(lambda trial: jnp.sum(keys >= trial, axis=0) >= count, x.shape[1:], x.dtype)
    return jnp.where(count > 0, jax.lax.bitcast_convert_type(found, x.dtype), jnp.max(x, axis=0))


def keep_top(
    x: Float[Array, " n"], capacity: Float[Array, " n"], mass: Float[Array, ""]
) -> Float[Array, " n"]:
    """argmax over 0 ≤ w_i ≤ capacity_i, Σ_i w_i = mass, of Σ_i w_i x_i: keep the largest values.

    Values tied at the threshold share what is left in proportion to their capacity, so that the result does
    not depend on the order of the rows; at θ = 0, where all likelihoods tie, that is the uniform weight.

    **Returns:** weights [n].
    """
    threshold = upper_threshold(x, capacity, mass)
    above = jnp.where(x > threshold, capacity, 0.0)
    tied = jnp.where(x == threshold, capacity, 0.0)
    tied_mass = jnp.sum(tied)
    share = (mass - jnp.sum(above)) / positive_or_one(tied_mass)
    return above + tied * jnp.clip(share, 0.0, 1.0)
