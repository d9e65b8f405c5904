"""Whether pairs have the same margins in two passes, rounding apart."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from robust_rlhf_jax.kernels.linalg import matmul

from .coordinates import Columns, straight

# The largest difference, as a share of Σ|xⱼθⱼ|, between two orders of summing xᵀθ in float32.
ROUNDING = 1e-5
# Numbers of a sample that are compared at a time, which takes little memory beside it.
PART = 1 << 20


def sampled_differ(
    sample: Float[Array, "m k"],
    columns: Columns,
    theta: Float[Array, "k E"],
    later: Float[np.ndarray, "E m"],
) -> Bool[np.ndarray, " m"]:
    """Which pairs of a sample have other margins in a `later` pass."""
    rows = max(1, PART // sample.shape[1])
    parts = [_margins(sample[at : at + rows], columns, theta) for at in range(0, len(sample), rows)]
    margins, sizes = (np.concatenate(part, axis=1) for part in zip(*parts, strict=True))
    return np.any(differ(margins, later, ROUNDING * sizes), axis=0)


def differ(
    some: Float[np.ndarray, "E m"],
    other: Float[np.ndarray, "E m"],
    rounding: Float[np.ndarray, "E m"] | float = 0.0,
) -> Bool[np.ndarray, "E m"]:
    """Where margins, if they are numbers, differ from the other ones by more than rounding."""
    size = np.sqrt(np.mean(other**2)) + 1e-30
    near = np.abs(some - other) <= 1e-3 * np.abs(other) + 1e-4 * size + rounding
    return np.isfinite(some) & ~near


@jax.jit
def _margins(
    x: Float[Array, "m k"], columns: Columns, theta: Float[Array, "k E"]
) -> tuple[Float[Array, "E m"], Float[Array, "E m"]]:
    """xᵀθ, and Σ|xⱼθⱼ|."""
    x = straight(x, columns)
    return matmul(x, theta).T, matmul(jnp.abs(x), jnp.abs(theta)).T
