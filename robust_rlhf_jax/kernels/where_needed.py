"""A function of those rows of a batch that need it."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool


def where_needed(
    function: Callable[..., Array], needed: Bool[Array, " K"], otherwise: Array, *rows: Array
) -> Array:
    """`function` of the k-th of all `rows` where `needed`, and `otherwise` [K, *m] elsewhere. Jit- and vmap-able.

    On a CPU factorisations of a batch run one after another (`lapack`), and there the other rows cost nothing; not so
    where the call itself is vmapped. Elsewhere all rows are computed at once.
    """

    def one(of):
        need, other, row = of
        return jax.lax.cond(need, lambda: function(*row), lambda: other)

    def all_at_once():
        shape = (len(needed),) + (1,) * (otherwise.ndim - 1)
        return jnp.where(needed.reshape(shape), jax.vmap(function)(*rows), otherwise)

    return jax.lax.platform_dependent(
        cpu=lambda: jax.lax.map(one, (needed, otherwise, rows)), default=all_at_once
    )
