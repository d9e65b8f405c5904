"""Usual numbers of pairs: programs are compiled for these alone, so that the next file of about that size needs none.

A pair of equal options is as good as absent (`UnitFreePairs.informative`), so that rows of 0 fill up the rest.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from robust_rlhf_jax.checks import is_traced

from .coordinates import WIDE

# Up to 2^LEAST pairs there is one size for each multiple of 2^(LEAST − PER_OCTAVE).
LEAST = 8
# From one power of two to the next there are 2^PER_OCTAVE sizes: at most a quarter of the rows is filled up.
PER_OCTAVE = 2
# A fit of more pairs takes longer than its compilation, and a copy of them much memory.
MOST = 1 << 17


def usual_size(n: int) -> int:
    """The smallest usual number of pairs that is no less than n."""
    step = 1 << (max((n - 1).bit_length() - 1, LEAST) - PER_OCTAVE)
    return -(-n // step) * step


def rows_to_fill(x: Float[Array | np.ndarray, "N k"]) -> int:
    """How many rows of 0 make their number a usual one.

    None for traced rows, for many, for those of several devices, and for wide ones, whose estimates by random sums
    depend on their number.
    """
    n, k = x.shape
    if is_traced(x) or k > WIDE or n > MOST or (isinstance(x, jax.Array) and len(x.devices()) > 1):
        return 0
    return usual_size(n) - n


def filled(array: Array | np.ndarray, more: int, value: float = 0.0) -> Array:
    """The array with `more` rows of the value at its end, where it was."""
    if not more:
        return jnp.asarray(array)
    # On the host, where every number of rows needs no program of its own.
    rows = np.asarray(array)
    return _beside(array, np.concatenate([rows, np.full((more, *rows.shape[1:]), value, rows.dtype)]))


def first(array: Array, n: int) -> Array:
    """[..., :n] of the array, where it was."""
    return _beside(array, np.asarray(array)[..., :n])


def _beside(array: Array | np.ndarray, rows: np.ndarray) -> Array:
    return jax.device_put(rows, array.sharding) if isinstance(array, jax.Array) else jnp.asarray(rows)
