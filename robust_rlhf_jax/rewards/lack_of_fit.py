"""How much better rewards explain labels of the same two options if these are alike because of a quality that the
features miss.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import betaln, xlogy
from jaxtyping import Array, Float

from .comparisons import Comparisons
from .contamination import SCALES
from .decision import AlikeLabels, Judged
from .interval import ALLOWED_FALL
from .slips import with_slips

# Chances are at least this far from 0 and 1, so that a comparison of which the reward is certain divides by something.
LEAST = 1e-6
# Correlations on trial of two labels of one comparison; 0 is tried, too. Copies of one pair have a correlation of 1.
CORRELATIONS = (
    *(2.0**-halvings for halvings in range(7, 0, -1)),
    *(1.0 - 2.0**-halvings for halvings in range(2, 8)),
)
# Halvings of the share of odd comparisons, which is then known to a thousandth of the largest.
HALVINGS = 10


def alike_labels(
    judged: Judged, margins: Float[Array, "E N"], comparisons: Comparisons, most_odd: float
) -> AlikeLabels:
    """What it gains to say that labels of one comparison are alike, because of a quality that features miss.

    If features miss a quality of the options, whole comparisons contradict the reward, as if they were corrupt. A
    missed quality shows in all comparisons, corrupt pairs show in some. Therefore a share of up to `most_odd` of the
    comparisons may be odd, and the others say how alike the labels of honest people are. Pairs that do not recur cannot
    be excused so: of what an explanation accuses, only the share that `recurs` is excused. Or some labels of
    comparisons that recur are slips (`slips.py`).

    **Arguments:** `judged` as if the labels of one rater were independent; `margins` [E, N]: of the explanations,
    before they are shortened.

    **Source:** Williams 1982, *Extra-binomial variation in logistic linear models*; odd ones as in Box & Tiao
    1968, *A Bayesian approach to some outlier problems*.
    """
    informative = comparisons.informative
    single = jnp.where(comparisons.sizes() > 1, 0.0, 1.0)[comparisons.number] * informative
    accused = jnp.maximum(jnp.sum(judged.lies, axis=1), 1.0)
    slips = jax.lax.map(lambda row: with_slips(row, informative - single, informative), judged.margins)
    independent = jax.lax.map(lambda row: _independent(row, informative), margins)
    recurs = 1.0 - jnp.sum(single * judged.lies, axis=1) / accused
    gained = jax.lax.map(lambda each: likeness(each[0], each[1], comparisons), (judged.margins, judged.rates))
    return AlikeLabels(
        # Only the share that is excused may be alike here, too: both sides are compared by the same rule.
        corrupted=judged.dispersed - judged.comparisons_seen + recurs * gained,
        honest=jax.lax.map(lambda row: honest_likeness(row, comparisons, most_odd), margins),
        recurs=recurs,
        # Less what the fit has seen of the pairs, as `honest` of `judged` is.
        slips=slips._replace(value=judged.honest + (slips.value - independent)),
    )


def _independent(margins: Float[Array, " N"], informative: Float[Array, " N"]) -> Float[Array, ""]:
    """Log-likelihood in nats of independent labels at the likeliest factor of `SCALES`."""

    def at(factor: Float[Array, ""]) -> Float[Array, ""]:
        return jnp.sum(jnp.where(informative > 0, jax.nn.log_sigmoid(factor * margins), 0.0))

    return jnp.max(jax.lax.map(at, jnp.asarray(SCALES, margins.dtype)))


def honest_likeness(
    margins: Float[Array, " N"], comparisons: Comparisons, most_odd: float
) -> Float[Array, ""]:
    """`likeness` without corruption, in nats more than the likeliest factor of `SCALES` has with independent labels.

    The factor is the likeliest one if some comparisons are odd. A factor that is chosen without odd comparisons makes
    the margins too short if a crowd contradicts the reward, and the labels of all other comparisons then look alike.
    """

    def explained(factor):
        shorter = factor * margins
        informative = comparisons.informative > 0
        independent = jnp.sum(jnp.where(informative, jax.nn.log_sigmoid(shorter), 0.0))
        told = told_by(shorter, jnp.zeros_like(shorter), comparisons)
        return independent + gained_by_odd_ones(told.odds(0.0), most_odd), independent

    factors = jnp.asarray(SCALES, margins.dtype)
    with_odd, independent = jax.lax.map(explained, factors)
    best = jnp.argmax(with_odd)
    gain = likeness(factors[best] * margins, jnp.zeros_like(margins), comparisons, most_odd)
    return jnp.where(gain > 0, jnp.maximum(gain + independent[best] - jnp.max(independent), 0.0), 0.0)


class Told(NamedTuple):
    """What the labels of each comparison [C] tell: how many `agree` with the reward and how many `contradict` it, each
    with `chance`; and in nats how likely that is if they are `independent`, and how much likelier `if_odd`.
    """

    agree: Float[Array, " C"]
    contradict: Float[Array, " C"]
    chance: Float[Array, " C"]
    independent: Float[Array, " C"]
    if_odd: Float[Array, " C"]

    def if_recurs(self, values: Float[Array, " C"]) -> Float[Array, " C"]:
        return jnp.where(self.agree + self.contradict > 1, values, 0.0)

    def odds(self, gain: Float[Array, " C"] | float) -> Float[Array, " C"]:
        """How much likelier each is if it is odd than with `gain` nats more than independent labels have."""
        return self.if_recurs(self.if_odd - gain)


def told_by(margins: Float[Array, " N"], rates: Float[Array, " N"], comparisons: Comparisons) -> Told:
    """A label contradicts the reward with chance p = (1 − π)σ(−|m|) + π, where corruption is at rate π.

    In an odd comparison every number of contradicting labels is as likely as every other.
    """
    contradict = comparisons.sums((margins < 0).astype(margins.dtype))
    agree = comparisons.sizes() - contradict
    chance = (1.0 - rates) * jax.nn.sigmoid(-jnp.abs(margins)) + rates
    chance = jnp.clip(comparisons.alike(chance), LEAST, 1.0 - LEAST)
    independent = xlogy(contradict, chance) + xlogy(agree, 1.0 - chance)
    if_odd = betaln(contradict + 1.0, agree + 1.0) - independent
    return Told(agree, contradict, chance, independent, if_odd)


def likeness(
    margins: Float[Array, " N"], rates: Float[Array, " N"], comparisons: Comparisons, most_odd: float = 0.0
) -> Float[Array, ""]:
    """Nats by which labels are likelier if two labels of one comparison are correlated, at the best correlation ρ.

    k_c of n_c labels contradict the reward, each with chance p. The sum over comparisons of log B(α + k_c, β + n_c −
    k_c) − log B(α, β) less k_c log p + (n_c − k_c) log(1 − p), where α = p(1 − ρ)/ρ and β = (1 − p)(1 − ρ)/ρ:
    beta-binomial less binomial.

    The best ρ is that at which the comparisons are likeliest if a share τ ≤ `most_odd` of them is odd; it is 0 unless
    another one is likelier by `ALLOWED_FALL` nats, since chance finds some correlation in half of all files.
    """
    told = told_by(margins, rates, comparisons)

    def explained(correlation):
        precision = (1.0 - correlation) / correlation
        a, b = precision * told.chance, precision * (1.0 - told.chance)
        alike = betaln(a + told.contradict, b + told.agree) - betaln(a, b)
        gain = told.if_recurs(alike - told.independent)
        return jnp.sum(gain) + gained_by_odd_ones(told.odds(gain), most_odd), jnp.sum(gain)

    with_odd, gains = jax.lax.map(explained, jnp.asarray(CORRELATIONS, margins.dtype))
    best = jnp.argmax(with_odd)
    uncorrelated = gained_by_odd_ones(told.odds(0.0), most_odd)
    sure = with_odd[best] > uncorrelated + ALLOWED_FALL
    return jnp.where(sure, jnp.maximum(gains[best], 0.0), 0.0)


def gained_by_odd_ones(odds: Float[Array, " C"], most: float) -> Float[Array, ""]:
    """max Σ_c log(1 − τ + τe^{o_c}) over shares 0 ≤ τ ≤ `most` of odd ones, whose log likelihood ratios are o_c.

    The sum is concave in τ, and rises while more than τ of them are odd in the mean: it is bisected there.
    """

    def halve(_, ends):
        low, high = ends
        middle = 0.5 * (low + high)
        rises = jnp.sum(jax.nn.sigmoid(odds + jax.scipy.special.logit(middle)) - middle) > 0
        return jnp.where(rises, middle, low), jnp.where(rises, high, middle)

    ends = jnp.zeros_like(odds[0]), jnp.full_like(odds[0], most)
    share, _ = jax.lax.fori_loop(0, HALVINGS, halve, ends)
    return jnp.sum(jnp.logaddexp(jnp.log1p(-share), jnp.log(share) + odds))
