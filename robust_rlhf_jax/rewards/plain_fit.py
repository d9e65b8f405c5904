"""Maximum likelihood alone: what `fit_differences` gives where nothing is corrupt, without compiling the rest."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from robust_rlhf_jax.kernels.linalg import matmul

from .coordinates import unit_free
from .weighted_fit import first_factor, fit


@eqx.filter_jit
def plain_fit(x: Float[Array, "N k"], labels: Float[Array, " N"]) -> Float[Array, " k"]:
    """θ̂ of `fit_differences` at ε = 0: argmax Σ log σ(o_nθᵀx_n) in coordinates without units. Jit- and vmap-able."""
    pairs = unit_free(x, labels)
    zero = jnp.zeros(pairs.z.shape[1], x.dtype)
    none = jnp.zeros((), x.dtype)
    found = fit(pairs, jnp.ones_like(labels), zero, none, first_factor(zero))
    return matmul(pairs.to_theta, found.t)
