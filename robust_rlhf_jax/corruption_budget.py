"""How many of N pairs a share ε is: what an attack may change, and what a flag may name."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from .checks import check_epsilon


def corruption_count(epsilon: float | Float[Array, ""], n_pairs: int) -> Int[Array, ""]:
    """⌊εN⌋ in the arithmetic of the decimal that was meant: ε = .29, N = 100 gives 29, not 28.

    **Raises:** ValueError for ε outside [0, ½).

    **Example:**

    >>> from robust_rlhf_jax.lab.attacks import corruption_count
    >>> int(corruption_count(0.29, 100))
    29
    """
    check_epsilon(epsilon)
    return _corruption_count(epsilon, n_pairs)


@jax.jit
def _corruption_count(epsilon: Float[Array, ""], n_pairs: int):
    product = jnp.asarray(epsilon, float) * n_pairs
    slack = jnp.minimum(2 * jnp.finfo(product.dtype).eps * product, 0.4)
    return jnp.floor(product + slack).astype(jnp.int32)
