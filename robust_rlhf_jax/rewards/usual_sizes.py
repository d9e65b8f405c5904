"""Usual numbers of pairs: programs are compiled for these alone, so that the next file of about that size needs none.

A pair of equal options is as good as absent (`UnitFreePairs.informative`), so that rows of 0 fill up the rest.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from robust_rlhf_jax.checks import is_traced

from .coordinates import WIDE

# Up to 2^LEAST pairs there is one size for each multiple of 2^(LEAST − PER_OCTAVE).
LEAST = 8
# There are 2^PER_OCTAVE sizes from one power of two to the next: at most a quarter of the rows is filled up.
PER_OCTAVE = 2
# A fit of more pairs takes longer than its compilation, and a copy of them much memory.
MOST = 1 << 17


def usual_size(n: int) -> int:
    """The smallest usual number of pairs that is no less than n."""
    step = 1 << (max((n - 1).bit_length() - 1, LEAST) - PER_OCTAVE)
    return -(-n // step) * step


def rows_to_fill(x: Float[Array | np.ndarray, "N k"], *others: Any) -> int:
    """How many rows of 0 make their number a usual one.

    None where x or an array in `others` is traced or was put on a device, where rows are many, and where they are wide,
    for estimates by random sums depend on their number.
    """
    n, k = x.shape
    held = any(is_traced(leaf) or getattr(leaf, "committed", False) for leaf in jax.tree.leaves((x, others)))
    return 0 if held or k > WIDE or n > MOST else usual_size(n) - n


def filled(array: Array | np.ndarray, more: int, value: float = 0.0) -> Array:
    """The array with `more` rows of the value at its end."""
    if not more:
        return jnp.asarray(array)
    # On the host, where another number of rows compiles nothing.
    rows = np.asarray(array)
    return jnp.asarray(np.concatenate([rows, np.full((more, *rows.shape[1:]), value, rows.dtype)]))


def first(array: Array, n: int) -> Array:
    """[..., :n] of an array."""
    return jnp.asarray(np.asarray(array)[..., :n])
