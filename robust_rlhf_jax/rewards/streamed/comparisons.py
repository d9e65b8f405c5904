"""Which pairs of a source compare the same two options: a key of each row, and equal keys are the same comparison.

As `preferences/comparisons.py` does it in memory, but in a pass, and by words of 32 bits, the longest that JAX has
unless float64 is enabled.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt32

from robust_rlhf_jax.preferences.comparisons import LEAST, numbers_of

# Keys of a row: with two of 32 bits, no two of ten million rows are expected to have the same by chance.
KEYS = 2
# Odd factors that spread each bit over the upper bits, as in MurmurHash3's last step (Appleby 2016, public domain).
FIRST, SECOND = np.uint32(0x85EBCA6B), np.uint32(0xC2B2AE35)


def row_keys(x: Float[Array, "m k"]) -> UInt32[Array, "m KEYS"]:
    """The same two numbers for rows that are equal up to their sign, in float32."""
    x = x.astype(jnp.float32)
    leading = jnp.take_along_axis(x, jnp.argmax(x != 0, axis=1)[:, None], axis=1)
    # Zeros have one sign.
    turned = jnp.where(x == 0, 0.0, jnp.where(leading < 0, -x, x))
    bits = jax.lax.bitcast_convert_type(turned, jnp.uint32)
    salts = np.random.default_rng(0).integers(1 << 32, size=(KEYS, x.shape[1]), dtype=np.uint32)
    return jnp.stack([jnp.sum(_mixed(bits ^ salt), axis=1, dtype=jnp.uint32) for salt in salts], axis=1)


def _mixed(bits: UInt32[Array, "m k"]) -> UInt32[Array, "m k"]:
    bits = (bits ^ (bits >> 16)) * FIRST
    bits = (bits ^ (bits >> 13)) * SECOND
    return bits ^ (bits >> 16)


def numbers_of_keys(
    keys: UInt32[np.ndarray, "N KEYS"], lengths: Float[np.ndarray, " N"]
) -> Int[np.ndarray, " N"] | None:
    """`comparisons_of` the rows that have these keys; rows of length 0 compare equal options."""
    return numbers_of(np.ascontiguousarray(keys).view(np.uint64)[:, 0], np.greater(lengths, 0.0), LEAST)
