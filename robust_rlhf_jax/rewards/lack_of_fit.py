"""How much less alike than a reward says the labels of the same two options are: what its features do not tell."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.kernels.sorting import ascending

# Information of a comparison, at least, so that one of which the reward is certain divides by something.
LEAST = 1e-6


def lack_of_fit(
    margins: Float[Array, " N"],
    comparisons: Int[Array, " N"],
    informative: Float[Array, " N"],
    left_out: float,
) -> Float[Array, ""]:
    """How much more often than by chance the same comparison contradicts a reward or agrees with it, at least 1.

    Σ_c (Σ_{n∈c} r_n)²/Σ_c Σ_{n∈c} v_n with r_n = 1[m_n < 0] − σ(−|m_n|) and v_n = σ(m_n)σ(−m_n): the dispersion of
    Pearson's residuals over comparisons c. A linear reward whose features miss a quality of the options has it
    everywhere, corrupt pairs have it in some comparisons: recurring comparisons with the largest share of it, of up to
    `left_out` of the pairs, are left out, and what stays is divided by what is left of χ²₁ without its upper part.

    **Arguments:** `margins` [N] of the reward times the label, m_n > 0 where they agree; `comparisons` [N]: which two
    options, from 0 to N − 1; `informative` [N] as in `UnitFreePairs`.

    **Source:** McCullagh & Nelder 1989, *Generalized linear models*, §4.5; trimmed as in Rousseeuw & Leroy 1987.
    """
    n = len(margins)

    def by_comparison(values):
        return jax.ops.segment_sum(informative * values, comparisons, n)

    chance = jax.nn.sigmoid(-jnp.abs(margins))
    size = by_comparison(jnp.ones_like(margins))
    missed = by_comparison((margins < 0) - chance) ** 2
    known = by_comparison(chance * (1.0 - chance))
    recurs = size > 1
    share = jnp.where(recurs, missed / jnp.maximum(known, LEAST), -jnp.inf)
    most = ascending(jnp.where(informative > 0, -share[comparisons], jnp.inf))
    # No more than this many pairs have more than the next one.
    kept = share <= -most[jnp.floor(left_out * jnp.sum(informative)).astype(jnp.int32)]
    gone = jnp.sum(jnp.where(kept, 0.0, size)) / jnp.maximum(jnp.sum(jnp.where(recurs, size, 0.0)), 1.0)
    missed = jnp.where(recurs, missed / _left_of_chi_square(gone), missed)
    return jnp.maximum(
        jnp.sum(jnp.where(kept, missed, 0.0)) / jnp.maximum(jnp.sum(jnp.where(kept, known, 0.0)), LEAST), 1.0
    )


def _left_of_chi_square(gone: Float[Array, ""]) -> Float[Array, ""]:
    """E[χ²₁ | χ²₁ ≤ its (1 − gone)-quantile] = 1 − 2zφ(z)/(1 − gone), z = Φ⁻¹(1 − gone/2)."""
    gone = jnp.clip(gone, 1e-6, 0.99)
    z = jax.scipy.special.ndtri(1.0 - 0.5 * gone)
    return 1.0 - 2.0 * z * jax.scipy.stats.norm.pdf(z) / (1.0 - gone)
