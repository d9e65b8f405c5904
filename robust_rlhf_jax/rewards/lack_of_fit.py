"""How much less alike than a reward says the labels of the same two options are: what its features do not tell."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from robust_rlhf_jax.kernels.sorting import ascending

# Information of a comparison, at least, so that one of which the reward is certain divides by something.
LEAST = 1e-6


class LackOfFit(NamedTuple):
    """`dispersion`: how many times more alike labels of the same comparison are than the reward says; `recurs` [N]:
    whether each pair's comparison does.
    """

    dispersion: Float[Array, ""]
    recurs: Bool[Array, " N"]

    def of(self, lies: Float[Array, "E N"]) -> Float[Array, " E"]:
        """The dispersion of the labels that explanations [E] accuse, by the chances `lies`: 1 where none recurs."""
        accused = jnp.sum(jnp.where(self.recurs, lies, 0.0), axis=1) / jnp.maximum(
            jnp.sum(lies, axis=1), LEAST
        )
        return 1.0 + (self.dispersion - 1.0) * accused


def lack_of_fit(
    margins: Float[Array, " N"],
    comparisons: Int[Array, " N"],
    informative: Float[Array, " N"],
    left_out: float,
) -> LackOfFit:
    """How much more often than by chance the same comparison contradicts a reward or agrees with it, at least 1.

    Σ_c (Σ_{n∈c} r_n)²/Σ_c Σ_{n∈c} v_n with r_n = 1[m_n < 0] − σ(−|m_n|) and v_n = σ(m_n)σ(−m_n): the dispersion of
    Pearson's residuals over comparisons c. A linear reward whose features miss a quality of the options has it
    everywhere, corrupt pairs have it in some comparisons: recurring comparisons with the largest share of it, of up to
    `left_out` of the pairs, are left out.

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
    known = jnp.maximum(jnp.sum(jnp.where(kept, known, 0.0)), LEAST)
    dispersion = jnp.maximum(jnp.sum(jnp.where(kept, missed, 0.0)) / known, 1.0)
    return LackOfFit(dispersion, recurs[comparisons])
