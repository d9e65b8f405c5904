"""How much more alike the labels of one rater are than independent labels would be."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.kernels.lapack import cholesky, lower_solve

from .coordinates import UnitFreePairs
from .posterior_fit import information, missed


def overdispersion(pairs: UnitFreePairs, t: Float[Array, " r"], groups: Int[Array, " N"]) -> Float[Array, ""]:
    """How much more the scores of whole groups vary than if a group's labels were independent, at least 1.

    tr(F⁻¹Σ_g s_g s_gᵀ)/rank with s_g = Σ_{n∈g} r_n y_n: the design effect of Moulton 1986.
    """
    margins = pairs.margins(t)
    scores = missed(margins)[:, None] * pairs.rows
    by_group = jax.ops.segment_sum(scores, groups, pairs.n_pairs)
    # A hundredth of a pair along every axis, so that nothing is divided by zero along axes of which nothing is known.
    known = information(pairs, jnp.ones_like(margins), margins) + 0.01 * jnp.eye(len(t), dtype=t.dtype)
    whitened = lower_solve(cholesky(known), by_group.T)
    return jnp.maximum(jnp.sum(whitened**2) / jnp.maximum(pairs.rank, 1), 1.0)
