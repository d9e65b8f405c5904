"""How well a reward explains labels of which some are corrupt: the likelihood that every explanation is judged by."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.kernels.divisors import positive_or_one
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.kernels.sorting import ascending, median_of_positive
from robust_rlhf_jax.kernels.units import LONGEST_IN_SCALES

from .coordinates import UnitFreePairs, count_of

# Steps of the rates' fixed point, which starts at the excess of contradictions.
STEPS = 3
# Rates stay below 1: at 1, a single honest label in a cell of corrupt ones would be impossible.
SUREST = 1.0 - 1e-4


# Factors by which the margins of a fit are shortened on trial: a fit to the pairs that agree with it is too sure.
SCALES = tuple(2.0 ** (-0.5 * halvings) for halvings in range(6))


class Contaminated(NamedTuple):
    """`log_likelihoods` [N] in nats, less what the rates cost; `rates` [N]: the chance that a pair like this one is
    corrupt; `lies` [N]: the chance that this one is, given its label; `needed`: the share of the pairs that is corrupt;
    `convicted`: the same in cells of which more than half is, where no misfit of the reward counts.
    """

    log_likelihoods: Float[Array, " N"]
    rates: Float[Array, " N"]
    lies: Float[Array, " N"]
    needed: Float[Array, ""]
    convicted: Float[Array, ""]


class Cells(NamedTuple):
    """Bins of pairs by length: `of_length` [N] is the bin of each, from 0 to `most`; margins are cut into bins, too.

    `informative` [N] as in `UnitFreePairs`: other pairs are in no bin. `bins`: how many there are, of `most` at most.
    `overdispersion`: how much more labels of one group vary than independent ones; 1 where nobody is grouped.
    """

    of_length: Int[Array, " N"]
    informative: Float[Array, " N"]
    bins: Int[Array, ""]
    most: int
    overdispersion: Float[Array, ""] | float = 1.0

    @property
    def count(self) -> int:
        return self.most * (self.most + 1)


def cells_of(pairs: UnitFreePairs) -> Cells:
    """⌊n^¼⌉ bins of equal size by length, of n informative pairs, and one of the rows that lie absurdly far out; as
    many by |margin| later.
    """
    return cells_of_lengths(pairs.lengths(), pairs.informative)


def cells_of_lengths(lengths: Float[Array, " N"], informative: Float[Array, " N"]) -> Cells:
    """`cells_of` pairs whose Mahalanobis lengths are known."""
    most = most_bins(len(lengths))
    # The numbers of pairs from which on there is one bin more, as ⌊·⌉ has it, in integers, so that nothing is rounded.
    begins = jnp.asarray([math.ceil((b + 0.5) ** 4) for b in range(2, most)], jnp.int32)
    bins = 2 + jnp.sum(_count(informative) >= begins, dtype=jnp.int32)
    absurd = lengths > LONGEST_IN_SCALES * median_of_positive(lengths)
    of_length = jnp.where(absurd, most, quantile_bins(lengths, informative, bins, most))
    return Cells(of_length, informative, bins, most)


def most_bins(n: int) -> int:
    """How many bins n informative pairs have."""
    return max(2, round(n**0.25))


def quantile_bins(
    values: Float[Array, " N"], informative: Float[Array, " N"], bins: Int[Array, ""], most: int
) -> Int[Array, " N"]:
    """The bin of each value among `bins` of equal size, `most` at most; equal values stay together."""
    order = ascending(jnp.where(informative > 0, values, jnp.inf))
    number = jnp.arange(1, most)
    # As n·b // bins, which for many pairs is more than 32 bits hold.
    whole, rest = jnp.divmod(_count(informative), bins)
    first = jnp.minimum(whole * number + rest * number // bins, len(values) - 1)
    edges = jnp.where(number < bins, order[first], jnp.inf)
    return jnp.minimum(jnp.sum(values[:, None] >= edges, axis=1, dtype=jnp.int32), bins - 1)


def _count(informative: Float[Array, " N"]) -> Int[Array, ""]:
    return jnp.sum(informative > 0, dtype=jnp.int32)


def contaminated(
    margins: Float[Array, " N"],
    cell: Int[Array, " N"],
    count: int,
    informative: Float[Array, " N"],
    overdispersion: Float[Array, ""] | float = 1.0,
) -> Contaminated:
    """P(label agrees with the margin) = (1 − π_c)σ(|m|), else (1 − π_c)σ(−|m|) + π_c, at the best rates π_c.

    A corrupt label always contradicts the reward. In cell c, which has pairs of similar length and |margin|, a share
    π_c of the labels is corrupt. The rate of a cell costs ½ log N (the Bayesian information criterion) and is 0 if it
    gains less. It is therefore cheap to call a crowd of contradictions in one place corrupt, and expensive to call as
    many corrupt that are scattered over honest pairs. Nothing is presumed about the distribution of the pairs.

    Labels that are `overdispersion` times as alike as independent ones gain that many times as much by chance: the
    price rises as much, and is ½ log N nats of the quasi-likelihood, which is the likelihood divided by it.

    **Arguments:** `cell` [N] of each pair, from 0 to `count` − 1; `informative` [N] as in
    `UnitFreePairs`.

    **Source:** a mixture with concomitant variables (Dayton & Macready 1988); Schwarz 1978 for its price; Burnham &
    Anderson 2002, *Model selection and multimodel inference*, §2.5, for overdispersed data.
    """
    n = count_of(informative)
    contradicts = (margins < 0).astype(margins.dtype)
    honest = jax.nn.sigmoid(margins)

    def by_cell(values):
        return jax.ops.segment_sum(jnp.where(informative > 0, values, 0.0), cell, count)

    size = jnp.maximum(by_cell(informative), 1.0)

    def posterior(rate):
        return contradicts * rate / jnp.maximum(rate + (1.0 - rate) * honest, 1e-30)

    def improve(_, rates):
        return jnp.clip(by_cell(posterior(rates[cell])) / size, 0.0, SUREST)

    excess = by_cell(contradicts - jax.nn.sigmoid(-jnp.abs(margins))) / size
    rates = jax.lax.fori_loop(0, STEPS, improve, jnp.clip(excess, 0.0, SUREST))
    rate, plain = rates[cell], jax.nn.log_sigmoid(margins)
    mixed = jnp.where(margins < 0, jnp.log((1.0 - rate) * honest + rate + 1e-30), jnp.log1p(-rate) + plain)
    price = 0.5 * jnp.log(n) * overdispersion
    opened = (by_cell(mixed - plain) > price)[cell]
    rate = jnp.where(opened, rate, 0.0)
    log_likelihoods = jnp.where(informative > 0, jnp.where(opened, mixed - (price / size)[cell], plain), 0.0)

    def share(rates):
        return matmul(informative, rates) / n

    convicted = share(jnp.where(rate > 0.5, rate, 0.0))
    return Contaminated(log_likelihoods, rate, posterior(rate), share(rate), convicted)


class NoiseByMargin(NamedTuple):
    """The rate of corruption among pairs of like |margin|: `rates` [B] at the middles `margins` [B] of equal bins."""

    margins: Float[Array, " B"]
    rates: Float[Array, " B"]

    def at(self, margins: Float[Array, "*b"]) -> Float[Array, "*b"]:
        """Linear between the middles, and as at the ends beyond them."""
        widths, rises = jnp.diff(self.margins), jnp.diff(self.rates)
        # One sum compiles faster than a search for the bin. A bin without pairs has no width, and its step is skipped.
        passed = jnp.clip(jnp.abs(margins)[..., None] - self.margins[:-1], 0.0, widths) / positive_or_one(
            widths
        )
        return self.rates[0] + jnp.sum(jnp.where(widths > 0, passed, 1.0) * rises, axis=-1)


def noise_by_margin(
    margins: Float[Array, " N"], rates: Float[Array, " N"], bin_of: Int[Array, " N"], cells: Cells
) -> NoiseByMargin:
    """`NoiseByMargin` of the pairs that were judged, in their bins by |margin|."""
    # Unused bins repeat the last one.
    number = jnp.minimum(jnp.arange(cells.most), cells.bins - 1)

    def mean(values):
        weighed = jnp.stack([jnp.where(cells.informative > 0, values, 0.0), cells.informative], 1)
        totals = jax.ops.segment_sum(weighed, bin_of, cells.most)
        return (totals[:, 0] / jnp.maximum(totals[:, 1], 1.0))[number]

    return NoiseByMargin(jax.lax.cummax(mean(jnp.abs(margins))), mean(rates))


class AtBestLength(NamedTuple):
    """`scale`: how long the margins are best taken, at most as they are; `found` there, and its `value` in nats;
    `honest`: the log-likelihood in nats without corruption, at the length that is best for that; `noise` of `found` by
    |margin|.
    """

    scale: Float[Array, ""]
    found: Contaminated
    value: Float[Array, ""]
    honest: Float[Array, ""]
    noise: NoiseByMargin


def unjudged(cells: Cells, dtype) -> AtBestLength:
    """A placeholder that every finite explanation surpasses."""
    zero, zeros = jnp.zeros((), dtype), jnp.zeros(len(cells.of_length), dtype)
    rates = jnp.zeros(cells.most, dtype)
    nothing = Contaminated(zeros - jnp.inf, zeros, zeros, zero, zero)
    return AtBestLength(zero, nothing, zero - jnp.inf, zero - jnp.inf, NoiseByMargin(rates, rates))


def contaminated_at_best_length(margins: Float[Array, " N"], cells: Cells) -> AtBestLength:
    """`contaminated` of margins as long as they are, or shorter, whichever explains the labels best."""
    bin_of = quantile_bins(jnp.abs(margins), cells.informative, cells.bins, cells.most)
    return contaminated_in_bins(margins, bin_of, cells)


def contaminated_in_bins(margins: Float[Array, " N"], bin_of: Int[Array, " N"], cells: Cells) -> AtBestLength:
    """`contaminated_at_best_length` of margins whose bins by size, `bin_of`, are known."""
    cell = bin_of * (cells.most + 1) + cells.of_length

    def shortened(best: AtBestLength, scale):
        found = contaminated(scale * margins, cell, cells.count, cells.informative, cells.overdispersion)
        value = jnp.sum(found.log_likelihoods)
        honest = jnp.sum(jnp.where(cells.informative > 0, jax.nn.log_sigmoid(scale * margins), 0.0))
        honest = jnp.maximum(best.honest, honest)
        this = best._replace(scale=scale, found=found, value=value)
        better = value > best.value
        best = jax.tree.map(lambda new, old: jnp.where(better, new, old), this, best)
        return best._replace(honest=honest), None

    best, _ = jax.lax.scan(shortened, unjudged(cells, margins.dtype), jnp.asarray(SCALES, margins.dtype))
    return best._replace(noise=noise_by_margin(best.scale * margins, best.found.rates, bin_of, cells))
