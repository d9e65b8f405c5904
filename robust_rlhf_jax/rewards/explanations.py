"""Explanations of a data set: which pairs might be corrupt, and the reward that the others then speak for."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .coordinates import Pairs
from .doubt import doubted_directions, span_basis
from .label_outliers import without_label_outliers
from .proposals import (
    FILTER_UP_TO,
    filtered_rows,
    lengths,
    likely_rows,
    lonely_rows,
    short_rows,
    unsure_rows,
)
from .score_test import readmit
from .weighted_fit import fit


class Explanations(eqx.Module):
    """`t` [E, r]: rewards; `weights` [E, N]: 0 for the pairs that each holds for corrupt; `by_evidence` [E]: pairs went
    because something contradicts them, not as a quota. Row 0 trusts all pairs. `doubted` [r, r]: orthonormal directions
    as rows that only suspects cover of whom some are contradicted (`doubted_directions`), 0 beyond.
    """

    t: Float[Array, "E r"]
    weights: Float[Array, "E N"]
    by_evidence: Bool[Array, " E"]
    doubted: Float[Array, "r r"]


def explain(
    pairs: Pairs,
    plain: Float[Array, " r"],
    epsilon: Float[Array, ""],
    overdispersion: Float[Array, ""] | float = 1.0,
) -> Explanations:
    """Every explanation that some way of doubting leads to, at most 2ε of the pairs left out.

    Each proposal of suspects (the longest rows, the most crowded points, what the covariance filter takes, the pairs of
    which one of three fits is surest) goes through the score test, which brings back whom nothing contradicts, and then
    through the search for label outliers. To these come trimmed fits (Algorithm 2) from five starts.
    """
    ones, zero = jnp.ones_like(pairs.o), jnp.zeros_like(plain)
    most, budget = 1.0 - 2.0 * epsilon, 2.0 * epsilon * pairs.n_pairs
    guarded = jnp.stack([_inverse_lengths(pairs), short_rows(pairs, jnp.asarray(0.5, plain.dtype))])
    bounded, short = jax.lax.map(lambda weights: fit(pairs, weights, zero).t, guarded)
    starts = jnp.stack([plain, bounded, short])
    unsure = jax.lax.map(lambda start: unsure_rows(pairs, most, start), starts)
    doubts = [ones, short_rows(pairs, most), lonely_rows(pairs, most), lonely_rows(pairs, 1.0 - epsilon)]
    if pairs.z.shape[1] <= FILTER_UP_TO:
        doubts.append(filtered_rows(pairs, epsilon))
    from_plain = jnp.broadcast_to(plain, (len(doubts), plain.shape[0]))

    def examine(proposal):
        weights, start = proposal
        back = readmit(pairs, weights, budget, start, overdispersion)
        clean = without_label_outliers(pairs, back.weights, back.t, budget)
        return clean.t, clean.weights, doubted_directions(pairs, weights, clean.weights, clean.t)

    proposals = (jnp.concatenate([jnp.stack(doubts), unsure[0]]), jnp.concatenate([from_plain, unsure[1]]))
    t, weights, doubted = jax.lax.map(examine, proposals)
    again = jnp.stack([plain, short, t[-3], t[-1], t[len(doubts) - 1]])
    trimmed_weights, trimmed_t = jax.lax.map(lambda s: likely_rows(pairs, 1.0 - epsilon, s), again)
    return Explanations(
        jnp.concatenate([plain[None], t, trimmed_t]),
        jnp.concatenate([ones[None], weights, trimmed_weights]),
        jnp.arange(1 + len(t) + len(trimmed_t)) <= len(t),
        span_basis(doubted.reshape(-1, plain.shape[0])),
    )


def _inverse_lengths(pairs: Pairs) -> Float[Array, " N"]:
    length = lengths(pairs)
    return jnp.where(length > 0, jnp.mean(length) / jnp.where(length > 0, length, 1.0), 1.0)
