"""Which explanation to believe: judged on the pairs about which none is sure, and by what it must hold for corrupt."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from robust_rlhf_jax.kernels.linalg import einsum, matmul

from .coordinates import Pairs
from .explanations import Explanations

# Lengths of t at which an explanation may be judged: trimmed fits are too sure of themselves.
SCALES = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4)
# Share of the pairs on which explanations are judged, at most: what two of them leave out may be 2ε and a little more.
NEUTRAL = 0.74
BINS = 6
# An explanation is admissible if it needs and leaves out this many times ε, and this share of the pairs more, at most:
# honest people's choices seem to need a little corruption whatever the reward.
ADMISSIBLE, SLACK = 1.15, 0.01
# Nats per pair that an explanation pays for all pairs that it must hold for corrupt.
PRICE = 0.1
# Nats per pair that are no difference: of explanations alike, the first one is believed.
ALIKE = 5e-4
# Standard errors by which another explanation must beat the plain one; and the accuracy that must be at stake. On clean
# choices and worlds no explanation that puts so much at stake is ahead at all (docs/do_no_harm.md).
AHEAD, MATERIAL = 1.0, 0.01
# Standard errors by which an explanation is refuted, or believed with nothing at stake.
CERTAIN = 2.0
# Accuracy need not be at stake where this share of what is left out are rows that lie absurdly far out.
ABSURD = 0.05


class Judgement(eqx.Module):
    """`chosen`: index of the explanation believed; `plausible` [E]: those that the data do not refute against it;
    `scores` [E] in nats per pair; `needed` [E]: least share of the pairs that must be corrupt if it is right;
    `admissible` [E]; `at_stake` [E]: accuracy that the plain fit would lose; `lead` [E]: how far its score is above the
    plain one's, in standard errors.
    """

    chosen: Int[Array, ""]
    plausible: Bool[Array, " E"]
    scores: Float[Array, " E"]
    needed: Float[Array, " E"]
    admissible: Bool[Array, " E"]
    at_stake: Float[Array, " E"]
    lead: Float[Array, " E"]


def judge(pairs: Pairs, explanations: Explanations, epsilon: Float[Array, ""]) -> Judgement:
    """Believe the plain explanation unless it needs more corruption than ε allows, or another one is better with
    certainty and accuracy is at stake.

    An explanation's score is its likelihood on the pairs about which none is sure, less `PRICE` times the corruption
    that it needs.
    """
    predicted = matmul(explanations.t, pairs.z.T)  # [E, N]
    ranks = jax.lax.map(rank_of, jnp.concatenate([predicted, jnp.abs(predicted)]))
    by_value, by_size = ranks.reshape(2, *predicted.shape)
    neutral = _neutral_rows(by_size, jnp.minimum(1.0 - 2.0 * epsilon, NEUTRAL))
    likelihood = _fair_likelihood(pairs.o * predicted, neutral, epsilon)
    needed = needed_corruption(pairs, predicted, by_value)
    scores = likelihood.mean - PRICE * needed
    left_out = 1.0 - jnp.mean(explanations.weights, axis=1)
    most = ADMISSIBLE * epsilon + SLACK
    admissible = (needed <= jnp.maximum(most, 1.05 * jnp.min(needed) + 0.005)) & (left_out <= most)
    at_stake = jax.vmap(lambda w, p: _at_stake(predicted[0], p, w))(explanations.weights, predicted)
    # One row that lies absurdly far out may erase a feature that decides little: against such rows certainty suffices.
    gone = 1.0 - explanations.weights
    absurd = matmul(gone, pairs.far.astype(gone.dtype)) > ABSURD * jnp.sum(gone, axis=1)
    lead = (scores - scores[0]) / jnp.maximum(likelihood.error, jnp.finfo(scores.dtype).tiny)
    better = ((lead > AHEAD) & (at_stake > MATERIAL)) | ((lead > CERTAIN) & absurd)
    eligible = admissible & jnp.where(admissible[0], better, jnp.arange(len(scores)) > 0)
    standing = jnp.where(eligible, scores, -jnp.inf)
    # The first of those that are as good as the best: rounding must not choose between them.
    chosen = jnp.argmax(standing >= jnp.max(standing) - ALIKE)
    chosen = jnp.where(jnp.any(eligible), chosen, 0).astype(jnp.int32)
    # A trimmed fit gives up its share of honest pairs whatever the data: it is plausible only where it is chosen.
    near = admissible & (scores >= scores[chosen] - CERTAIN * likelihood.error) & explanations.by_evidence
    plausible = near | (jnp.arange(len(scores)) == chosen)
    return Judgement(chosen, plausible, scores, needed, admissible, at_stake, lead)


class _Fair(eqx.Module):
    mean: Float[Array, " E"]
    error: Float[Array, " E"]


def _fair_likelihood(margins: Float[Array, "E N"], weights: Float[Array, " N"], epsilon) -> _Fair:
    """Mean of log((1 − ε)σ(s·m) + ε/2) at each explanation's best s, and the standard error of what it has over the
    plain one's: any pair may be a lie with chance ε, so none costs more than log(ε/2).
    """
    total = jnp.sum(weights)

    def at(scale):
        return jnp.log((1.0 - epsilon) * jax.nn.sigmoid(scale * margins) + 0.5 * epsilon)

    scales = jnp.asarray(SCALES, margins.dtype)
    means = jax.lax.map(lambda s: matmul(at(s), weights) / total, scales)  # [scales, E]
    best = at(scales[jnp.argmax(means, axis=0)][:, None])
    mean = matmul(best, weights) / total
    variance = matmul((best - best[:1]) ** 2, weights) / total - (mean - mean[0]) ** 2
    return _Fair(mean, jnp.sqrt(jnp.maximum(variance, 0.0) / total))


def _neutral_rows(ranks: Int[Array, "E N"], share: Float[Array, ""]) -> Float[Array, " N"]:
    """The `share` of the pairs of which the surest explanation is least sure, given how sure each is by rank: no lie
    pays there.
    """
    surest = jnp.max(ranks, axis=0)
    last = jnp.floor(share * (len(surest) - 1)).astype(jnp.int32)
    return (surest <= jnp.sort(surest)[last]).astype(share.dtype)


def rank_of(values: Float[Array, " N"]) -> Int[Array, " N"]:
    """0 for the smallest."""
    places = jnp.arange(len(values), dtype=jnp.int32)
    return jnp.zeros_like(places).at[jnp.argsort(values)].set(places)


def needed_corruption(
    pairs: Pairs, predicted: Float[Array, "E N"], ranks: Int[Array, "E N"]
) -> Float[Array, " E"]:
    """Least share of the pairs that must be corrupt if explanation i is right, as far as cells of pairs show it.

    Pairs fall in `BINS` × `BINS` cells by the `ranks` of what i and what j predict. In a cell the wins differ from i's
    expectation by more than one standard deviation only if as many pairs are corrupt. Summed over cells, the largest
    over j.
    """
    n, size = pairs.n_pairs, BINS
    of = jax.nn.one_hot(ranks * size // n, size, dtype=predicted.dtype)  # [E, N, B]
    wins = (pairs.o > 0).astype(predicted.dtype)

    def needed(inputs):
        p, mine = inputs
        chance = jax.nn.sigmoid(p)
        excess = einsum("nb,enc->ebc", mine * (wins - chance)[:, None], of)
        variance = einsum("nb,enc->ebc", mine * (chance * (1 - chance))[:, None], of)
        surplus = jnp.maximum(jnp.abs(excess) - jnp.sqrt(jnp.maximum(variance, 0.0)), 0.0)
        return jnp.max(jnp.sum(surplus, axis=(1, 2))) / n

    return jax.lax.map(needed, (predicted, of))


def _at_stake(plain: Float[Array, " N"], other: Float[Array, " N"], weights: Float[Array, " N"]):
    """Accuracy that the plain fit loses if `other` is right, on the pairs that it keeps."""
    lost = jnp.abs(2.0 * jax.nn.sigmoid(other) - 1.0) * (plain * other < 0)
    return jnp.dot(weights, lost) / jnp.maximum(jnp.sum(weights), 1.0)
