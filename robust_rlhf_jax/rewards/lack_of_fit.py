"""How much better rewards explain labels of the same two options if these are alike because of a quality that the
features miss.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import betaln, xlogy
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.kernels.sorting import ascending

from .contamination import SCALES
from .decision import AlikeLabels, Judged

# Chances are at least this far from 0 and 1, so that a comparison of which the reward is certain divides by something.
LEAST = 1e-6
# Correlations on trial of two labels of one comparison; 0 is tried, too.
CORRELATIONS = tuple(2.0**-halvings for halvings in range(7, 0, -1))


class Comparisons(NamedTuple):
    """Which two options each pair compares: `number` [N], from 0 to N − 1; `informative` [N] as in `UnitFreePairs`."""

    number: Int[Array, " N"]
    informative: Float[Array, " N"]

    def sums(self, values: Float[Array, " N"]) -> Float[Array, " N"]:
        """Of each comparison."""
        return jax.ops.segment_sum(self.informative * values, self.number, len(values))

    def alike(self, values: Float[Array, " N"]) -> Float[Array, " N"]:
        """The value of each comparison, whose pairs have the same: unlike a mean, not rounded."""
        return jax.ops.segment_max(self.informative * values, self.number, len(values))

    def sizes(self) -> Float[Array, " N"]:
        """How many pairs make each comparison."""
        return self.sums(jnp.ones_like(self.informative))


def alike_labels(
    judged: Judged, margins: Float[Array, "E N"], comparisons: Comparisons, left_out: float
) -> AlikeLabels:
    """What it gains to say that labels of one comparison are alike, because of a quality that features miss.

    If features miss a quality of the options, whole comparisons contradict the reward, as if they were corrupt. A
    missed quality shows in all comparisons, corrupt pairs show in some. Therefore people without corruption are as
    alike as all comparisons say but for the worst, of up to the share `left_out` of the pairs. Pairs that do not recur
    cannot be excused so: of what an explanation accuses only the share that `recurs` is.

    **Arguments:** `judged` as if the labels of one rater were independent; `margins` [E, N]: of the explanations, before
    they are shortened.

    **Source:** Williams 1982, *Extra-binomial variation in logistic linear models*; trimmed as in Rousseeuw & Leroy
    1987.
    """

    def without_corruption(row: Float[Array, " N"]) -> Float[Array, ""]:
        row = honest_length(row, comparisons.informative) * row
        return likeness(row, jnp.zeros_like(row), comparisons, left_out)

    single = jnp.where(comparisons.sizes() > 1, 0.0, 1.0)[comparisons.number] * comparisons.informative
    accused = jnp.maximum(jnp.sum(judged.lies, axis=1), 1.0)
    return AlikeLabels(
        corrupted=judged.dispersed
        + jax.lax.map(lambda each: likeness(each[0], each[1], comparisons), (judged.margins, judged.rates)),
        honest=jax.lax.map(without_corruption, margins),
        recurs=1.0 - jnp.sum(single * judged.lies, axis=1) / accused,
    )


def honest_length(margins: Float[Array, " N"], informative: Float[Array, " N"]) -> Float[Array, ""]:
    """The factor of `SCALES` at which the margins explain the labels best without corruption."""
    factors = jnp.asarray(SCALES, margins.dtype)

    def value(factor):
        return jnp.sum(jnp.where(informative > 0, jax.nn.log_sigmoid(factor * margins), 0.0))

    return factors[jnp.argmax(jax.lax.map(value, factors))]


def likeness(
    margins: Float[Array, " N"], rates: Float[Array, " N"], comparisons: Comparisons, left_out: float = 0.0
) -> Float[Array, ""]:
    """Nats by which labels are likelier if two labels of one comparison are correlated, at the best correlation ρ.

    k_c of n_c labels contradict the reward, each with chance p = (1 − π)σ(−|m|) + π, where corruption is at rate π. The
    sum over comparisons of log B(α + k_c, β + n_c − k_c) − log B(α, β) less k_c log p + (n_c − k_c) log(1 − p), where
    α = p(1 − ρ)/ρ and β = (1 − p)(1 − ρ)/ρ: beta-binomial less binomial.

    The best ρ is that of all comparisons but those that contradict the reward most beside what chance allows, of up to
    the share `left_out` of the pairs.
    """
    size, contradict = comparisons.sizes(), comparisons.sums((margins < 0).astype(margins.dtype))
    chance = (1.0 - rates) * jax.nn.sigmoid(-jnp.abs(margins)) + rates
    chance = jnp.clip(comparisons.alike(chance), LEAST, 1.0 - LEAST)
    independent = xlogy(contradict, chance) + xlogy(size - contradict, 1.0 - chance)
    kept = _kept(size, contradict, chance, comparisons, left_out)

    def more(correlation):
        precision = (1.0 - correlation) / correlation
        against, agree = precision * chance, precision * (1.0 - chance)
        alike = betaln(against + contradict, agree + size - contradict) - betaln(against, agree)
        gain = jnp.where(size > 1, alike - independent, 0.0)
        return jnp.sum(kept * gain), jnp.sum(gain)

    of_kept, of_all = jax.lax.map(more, jnp.asarray(CORRELATIONS, margins.dtype))
    best = jnp.argmax(of_kept)
    return jnp.where(of_kept[best] > 0, of_all[best], 0.0)


def _kept(
    size: Float[Array, " N"],
    contradict: Float[Array, " N"],
    chance: Float[Array, " N"],
    comparisons: Comparisons,
    left_out: float,
) -> Float[Array, " N"]:
    """1 for each comparison that is counted, 0 for the worst that recur, of up to a share of the pairs."""
    variance = jnp.maximum(size * chance * (1.0 - chance), LEAST)
    surprise = jnp.where(size > 1, (contradict - size * chance) ** 2 / variance, -jnp.inf)
    worst = ascending(jnp.where(comparisons.informative > 0, -surprise[comparisons.number], jnp.inf))
    # No more than this many pairs have more than the next one.
    most = jnp.floor(left_out * jnp.sum(comparisons.informative)).astype(jnp.int32)
    return jnp.where(surprise <= -worst[most], 1.0, 0.0)
