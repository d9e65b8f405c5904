"""Rows far from 0, as dates or positions are: moved to it before JAX's floats round them."""

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from robust_rlhf_jax.checks import as_floats, is_traced

# Rows are far from 0 where it is so many times as far as they are spread: nearer, float32 holds what tells them apart.
FAR = 100.0
# Rows that are looked at first: those of most data are near 0, and the medians of all take a while.
GLANCE = 1000


def moved_to_zero(x: Float[ArrayLike, "n d"]) -> tuple[Float[Array, "n d"], Float[Array, " d"]]:
    """(x − c, c), c the medians of the columns, which half of the rows cannot move; c = 0 for rows near 0.

    The difference is taken in float64. Traced rows stay where they are.
    """
    rows = as_floats(x)
    stay = jnp.zeros(rows.shape[1], rows.dtype)
    if is_traced(x):
        return rows, stay
    given = np.asarray(x)
    if not _far(given[:: max(1, len(given) // GLANCE)].astype(np.float64)):
        return rows, stay
    wide = given.astype(np.float64)
    centre = np.median(wide, axis=0)
    return jnp.asarray(wide - centre, rows.dtype), jnp.asarray(centre, rows.dtype)


def _far(some: Float[np.ndarray, "m d"]) -> bool:
    """Whether they are finite, spread, and far from 0 along some column by the spread of the widest one."""
    if not np.isfinite(some).all():
        return False
    centre = np.median(some, axis=0)
    spread = np.median(np.abs(some - centre), axis=0)
    return bool(0 < FAR * spread.max() < np.abs(centre).max())
