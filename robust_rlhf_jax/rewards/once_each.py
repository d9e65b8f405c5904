"""A function of several explanations, computed once for those that are alike: candidates often end at the same fit."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from robust_rlhf_jax.kernels.where_needed import one_by_one

# Weights and margins (of 1 + their size) that differ by less are alike: refits end as far from their fixed point.
ALIKE = 1e-3


def alike(weights: Float[Array, "E N"], margins: Float[Array, "E N"]) -> Bool[Array, "E E"]:
    """Which explanations weigh every pair alike and give it the same margin."""

    def to_all(one):
        weight, margin = one
        apart = jnp.maximum(jnp.abs(weight - weights), jnp.abs(margin - margins) / (1.0 + jnp.abs(margin)))
        return jnp.max(apart, axis=1) < ALIKE

    # One after another: all at once are E²·N numbers. What is not finite is like itself alone.
    return jax.lax.map(to_all, (weights, margins)) | jnp.eye(len(weights), dtype=bool)


def once_each(function: Callable[..., Any], same: Bool[Array, "E E"], *rows: Any) -> Any:
    """`function` of each row [E, …], one after another; rows that are the `same` have the value of the first of them.

    Under vmap every row is computed.
    """
    first = jnp.argmax(same, axis=1)
    needed = jnp.any(first == jnp.arange(len(first))[:, None], axis=1)
    one_row = jax.eval_shape(function, *jax.tree.map(lambda leaf: leaf[0], rows))
    nothing = jax.tree.map(lambda leaf: jnp.zeros((len(same), *leaf.shape), leaf.dtype), one_row)
    found = one_by_one(function, needed, nothing, *rows)
    return jax.tree.map(lambda leaf: leaf[first], found)
