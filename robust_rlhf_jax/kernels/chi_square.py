"""Quantiles of the χ² distribution for degrees of freedom that are traced."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int


def chi_square_quantile(probability: float, degrees: Int[Array, ""]) -> Float[Array, ""]:
    """Quantile of χ² by Wilson & Hilferty 1931: m(1 − 2/(9m) + z√(2/(9m)))³; within 1 % for m ≥ 3, .5 ≤ p ≤ .99."""
    m = jnp.maximum(degrees, 1) * jnp.ones(())
    spread = 2.0 / (9.0 * m)
    return m * (1.0 - spread + jax.scipy.special.ndtri(probability) * jnp.sqrt(spread)) ** 3
