"""Orders and masks of the largest scores; ties go by position."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


def highest_first(scores):
    """Places [N] of the scores [N], the highest first; an array of NumPy or of JAX, and so is the answer."""
    return turned(scores).argsort(stable=True)


def turned(scores):
    """Numbers in the opposite order, equal ones equal: −x of floats; of integers and booleans their complement, since
    unsigned integers have no −x.
    """
    return -scores if jnp.issubdtype(scores.dtype, jnp.floating) else ~scores


@jax.jit
def largest(scores: Float[Array, " N"], count: Int[Array, ""]) -> Bool[Array, " N"]:
    """Mask of exactly `count` largest scores."""
    rank = (
        jnp.zeros(scores.shape, jnp.int32)
        .at[highest_first(scores)]
        .set(jnp.arange(scores.shape[0], dtype=jnp.int32))
    )
    return rank < count
