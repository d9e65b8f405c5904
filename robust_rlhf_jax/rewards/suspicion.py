"""How likely each pair is to be corrupt, in the eyes of a fit: contradicted alone, or in a crowd."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from robust_rlhf_jax.kernels.divisors import positive_or_one
from robust_rlhf_jax.kernels.lapack import cholesky, lower_solve
from robust_rlhf_jax.kernels.linalg import weighted_gram

from .coordinates import Pairs
from .selection import rank_of

# Cells by |margin| and by its cosine; a crowd is this many standard deviations and this share of lies above honesty.
BINS, STANDARD_ERRORS, CROWDED = 8, 3.0, 0.5
# Margins count up to here (beyond, by a thousandth), so that nothing rounds to certainty; what a crowd's odds count.
SUREST, CROWD_WEIGHT, MOST_ODDS = 6.0, 2.0, 8.0

# Second moment that every axis is given: the whole has 1 along each.
LEAST = 1e-4


def suspicion_of(
    pairs: Pairs, t: Float[Array, " r"], weights: Float[Array, " N"], epsilon
) -> Float[Array, " N"]:
    """How likely each pair is to be corrupt, in [0, 1]; pairs that were left out are in the upper half.

    (ε/2)/((1 − ε)P(o|x) + ε/2), with higher odds for contradictions in a crowd: planted rows resemble each other, and
    honest surprises do not. ε is taken as .01 at least, so that labels are ranked even where nothing is amiss.
    """
    share = jnp.maximum(epsilon, 0.01)
    margins = pairs.margins(t)
    contradiction = jnp.minimum(-margins, SUREST) + 1e-3 * jnp.clip(-margins - SUREST, 0.0, 1e3)
    likelihood = jax.nn.log_sigmoid(-contradiction)
    odds = jnp.log(0.5 * share) - jnp.log1p(-share) - likelihood
    lie = jax.nn.sigmoid(odds + crowd_odds(margins, _lengths(pairs, weights)))
    return jnp.clip(lie * (0.5 + 0.5 * weights) + 0.5 * (1.0 - weights), 0.0, 1.0)


def crowd_odds(margins: Float[Array, " N"], lengths: Float[Array, " N"]) -> Float[Array, " N"]:
    """`CROWD_WEIGHT` times the log-odds that a contradiction in a pair's cell is a lie; 0 for pairs that agree with t
    or are in no crowd.

    Cells are `BINS` × `BINS` by the ranks of |m| and of |m|/length. With c contradictions, e = Σσ(−|m|) expected and
    variance v = ΣP(1 − P), a share (c − e)/c are lies; a crowd has c − e > 3√(v + 1) and (c − e)/c > ½.
    """
    sure, contradicted = jnp.abs(margins), margins < 0
    cosine = sure / positive_or_one(lengths)
    n = len(margins)
    row, column = jax.lax.map(rank_of, jnp.stack([sure, cosine])) * BINS // n
    cell = row * BINS + column
    chance = jax.nn.sigmoid(-sure)
    columns = jnp.stack([contradicted.astype(chance.dtype), chance, chance * (1.0 - chance)], axis=1)
    found, expected, variance = jax.ops.segment_sum(columns, cell, BINS * BINS).T
    surplus = found - expected
    lies = jnp.clip(surplus / jnp.maximum(found, 1.0), 0.0, 0.99)
    crowded = (surplus > STANDARD_ERRORS * jnp.sqrt(variance + 1.0)) & (lies > CROWDED)
    odds = jnp.minimum(CROWD_WEIGHT * (jnp.log(lies) - jnp.log1p(-lies)), MOST_ODDS)
    return jnp.where(contradicted, jnp.where(crowded, odds, 0.0)[cell], 0.0)


def _lengths(pairs: Pairs, weights: Float[Array, " N"]) -> Float[Array, " N"]:
    """√(zᵀM⁻¹z), M the mean of zzᵀ over the pairs that count: what was left out has no say in what is far."""
    moment = weighted_gram(pairs.z, weights) / jnp.maximum(jnp.sum(weights), 1.0)
    factor = cholesky(moment + LEAST * jnp.eye(len(moment), dtype=moment.dtype))
    return jnp.linalg.norm(lower_solve(factor, pairs.z.T), axis=0)
