"""A function of those rows of a batch that need it."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool


def one_by_one(function: Callable[..., Any], needed: Bool[Array, " K"], otherwise: Any, *rows: Any) -> Any:
    """`function` of the k-th of all `rows` where `needed`, and the k-th of `otherwise` elsewhere, which costs nothing.

    One row after another. Jit- and vmap-able; where the call itself is vmapped every row is computed.
    """

    def one(of):
        need, other, row = of
        return jax.lax.cond(need, lambda: function(*row), lambda: other)

    return jax.lax.map(one, (needed, otherwise, rows))


def where_needed(
    function: Callable[..., Array], needed: Bool[Array, " K"], otherwise: Array, *rows: Array
) -> Array:
    """`one_by_one` on a CPU, where factorisations of a batch run one after another anyway (`lapack`).

    Elsewhere all rows are computed at once.
    """

    def all_at_once():
        shape = (len(needed),) + (1,) * (otherwise.ndim - 1)
        return jnp.where(needed.reshape(shape), jax.vmap(function)(*rows), otherwise)

    return jax.lax.platform_dependent(
        cpu=lambda: one_by_one(function, needed, otherwise, *rows), default=all_at_once
    )
