"""Orders and masks of the largest scores; ties go by position."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

# Units of the last place by which scores of one and the same row may differ: a product of matrices rounds a row by its
# place in the block.
ROUNDING = 16


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


@jax.jit
def largest_to_rounding(scores: Float[Array, " N"], count: Int[Array, ""]) -> Bool[Array, " N"]:
    """Mask of exactly `count` largest scores, where those that equal the last of them to rounding, to within
    16 ϵ max(1, |last|), count as equal. The same pair asked twice then goes by position, on every machine and in a
    batch as alone.
    """
    last = scores[highest_first(scores)[jnp.maximum(count - 1, 0)]]
    slack = ROUNDING * jnp.finfo(scores.dtype).eps * jnp.maximum(1, jnp.abs(last))
    slack = jnp.where(jnp.isfinite(last), slack, 0)
    return largest((scores > last + slack).astype(jnp.int32) - (scores < last - slack), count)
