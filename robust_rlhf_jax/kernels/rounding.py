"""What rounding hides of a mean."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def rounding_of(value: Float[Array, "*b"]) -> Float[Array, "*b"]:
    """4·eps·(1 + |value|): by so much a mean of losses or log-likelihoods may differ in its own precision."""
    return 4 * jnp.finfo(value.dtype).eps * (1.0 + jnp.abs(value))
