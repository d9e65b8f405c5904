"""How many of N pairs a share ε is: what an attack may change, and what a flag may name."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .checks import check_epsilon, is_traced


def corruption_count(epsilon: float | Float[Array, ""], n_pairs: int) -> Int[Array, ""]:
    """⌊εN⌋ in the arithmetic of the decimal that was meant: ε = .29, N = 100 gives 29, not 28.

    **Raises:** ValueError for ε outside [0, ½).

    **Example:**

    >>> from robust_rlhf_jax.lab.attacks import corruption_count
    >>> int(corruption_count(0.29, 100))
    29
    """
    check_epsilon(epsilon)
    return _corruption_count(_meant(epsilon), n_pairs)


def _meant(epsilon: float | Float[Array, ""]) -> float | Float[Array, ""]:
    """The decimal that a half-precision ε stands for: .1 in float16 is .09998, 49 of 500 pairs.

    Numbers that JAX does not know, such as `Fraction` and `Decimal`, become floats.
    """
    if not is_traced(epsilon) and np.asarray(epsilon).dtype == object:
        return float(epsilon)
    held = getattr(epsilon, "dtype", None)
    if held not in (jnp.float16, jnp.bfloat16) or is_traced(epsilon):
        return epsilon
    return shortest_decimal(epsilon)


def shortest_decimal(value: float | Float[Array, ""]) -> float:
    """The shortest decimal that a float of any precision may stand for: .1 for .09998 in float16."""
    held = np.asarray(value).dtype
    decimals = (float(f"{float(value):.{digits}g}") for digits in range(1, 18))
    return next((decimal for decimal in decimals if np.asarray(decimal).astype(held) == value), float(value))


@jax.jit
def _corruption_count(epsilon: Float[Array, ""], n_pairs: int):
    product = jnp.asarray(epsilon, float) * n_pairs
    # ε may have been rounded before, as where float32 is given under x64, or half precision is traced.
    held = jnp.result_type(epsilon)
    rounded = max(jnp.finfo(of).eps for of in (held, product.dtype) if jnp.issubdtype(of, jnp.floating))
    slack = jnp.minimum(2 * float(rounded) * product, 0.4)
    return jnp.floor(product + slack).astype(jnp.int32)
