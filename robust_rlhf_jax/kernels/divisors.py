"""Divisors that are never 0."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def positive_or_one(x: Float[Array, "*n"] | float) -> Float[Array, "*n"]:
    """x where x > 0, else 1: a divisor for lengths and masses, which are 0 only where what they divide is 0 too."""
    return jnp.where(x > 0, x, 1.0)
