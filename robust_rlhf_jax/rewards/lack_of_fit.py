"""How much more alike the labels of the same two options are than a reward predicts, because of qualities that its
features miss.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.kernels.sorting import ascending

from .decision import Judged

# Information of a comparison, at least, so that one of which the reward is certain divides by something.
LEAST = 1e-6


class Comparisons(NamedTuple):
    """Which two options each pair compares: `number` [N], from 0 to N − 1; `informative` [N] as in `UnitFreePairs`."""

    number: Int[Array, " N"]
    informative: Float[Array, " N"]

    def sums(self, values: Float[Array, " N"]) -> Float[Array, " N"]:
        """Of each comparison."""
        return jax.ops.segment_sum(self.informative * values, self.number, len(values))

    def recurring(self) -> Float[Array, " N"]:
        """1 for each comparison of two pairs or more, else 0."""
        return (self.sums(jnp.ones_like(self.informative)) > 1).astype(self.informative.dtype)


def dispersions(
    judged: Judged,
    plain: Float[Array, " N"],
    overdispersion: Float[Array, ""],
    comparisons: Comparisons | None,
    left_out: float,
) -> Float[Array, " E"]:
    """How much more alike labels are than independent ones, as each explanation sees them: those of one group, by
    `overdispersion`, or those of one comparison, by `lack_of_fit`, whichever is more.
    """
    of_each = jnp.full(len(judged.t), overdispersion)
    if comparisons is None:
        return of_each
    return jnp.maximum(of_each, lack_of_fit(judged, plain, comparisons, left_out))


def lack_of_fit(
    judged: Judged, plain: Float[Array, " N"], comparisons: Comparisons, left_out: float
) -> Float[Array, " E"]:
    """How much more alike labels of the same comparison are than the plain fit says: for each explanation [E] in
    proportion to the accused pairs that recur, and no more than it leaves unexplained itself; at least 1.

    If features miss a quality of the options, whole comparisons contradict the reward, as if they were corrupt. A
    missed quality shows in all comparisons, corrupt pairs show in some. Therefore the worst comparisons, of up to the
    share `left_out` of the pairs, are not counted. A crowd of corrupt pairs turns the plain fit, which then misses all
    other pairs; the explanation that finds the crowd fits them.

    **Arguments:** `plain` [N]: the margins of the plain fit times the labels.

    **Source:** McCullagh & Nelder 1989, *Generalized linear models*, §4.5, for dispersion; trimmed as in Rousseeuw &
    Leroy 1987.
    """
    missed = dispersion(plain, jnp.zeros_like(plain), comparisons, left_out)
    unexplained = jax.lax.map(
        lambda each: dispersion(each[0], each[1], comparisons), (judged.margins, judged.rates)
    )
    recurs = comparisons.recurring()[comparisons.number]
    accused = jnp.sum(recurs * judged.lies, axis=1) / jnp.maximum(jnp.sum(judged.lies, axis=1), LEAST)
    return jnp.minimum(1.0 + (missed - 1.0) * accused, unexplained)


def dispersion(
    margins: Float[Array, " N"], rates: Float[Array, " N"], comparisons: Comparisons, left_out: float = 0.0
) -> Float[Array, ""]:
    """Σ_c (Σ_{n∈c} r_n)²/Σ_c Σ_{n∈c} p_n(1 − p_n) over comparisons c, at least 1; r_n = 1[m_n < 0] − p_n, where p_n =
    (1 − π_n)σ(−|m_n|) + π_n is the chance that label n contradicts the reward, with corruption at `rates` π.

    Recurring comparisons whose part of it is largest beside its expectation are left out, of up to the share
    `left_out` of the pairs.
    """
    chance = (1.0 - rates) * jax.nn.sigmoid(-jnp.abs(margins)) + rates
    missed = comparisons.sums((margins < 0) - chance) ** 2
    known = comparisons.sums(chance * (1.0 - chance))
    share = jnp.where(comparisons.recurring() > 0, missed / jnp.maximum(known, LEAST), -jnp.inf)
    worst = ascending(jnp.where(comparisons.informative > 0, -share[comparisons.number], jnp.inf))
    # No more than this many pairs have more than the next one.
    most = jnp.floor(left_out * jnp.sum(comparisons.informative)).astype(jnp.int32)
    kept = jnp.where(share <= -worst[most], 1.0, 0.0)
    return jnp.maximum(jnp.sum(kept * missed) / jnp.maximum(jnp.sum(kept * known), LEAST), 1.0)
