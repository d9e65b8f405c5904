"""Explanations of a data set: which pairs might be corrupt, and the reward that the others then speak for."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from robust_rlhf_jax.kernels.divisors import positive_or_one

from .coordinates import WIDE, Pairs
from .doubt import doubted_directions, span_basis
from .examination import examine
from .proposals import FILTER_UP_TO, DoubtedRows, believed_rows, filtered_rows, lengths
from .weighted_fit import PRIOR, WeightedFit, first_factor, fit

# Share of the pairs that some trimmed fits leave out at first where ε is less: lies may look likely at other starts.
AT_FIRST = 0.2


class Explanations(eqx.Module):
    """`t` [E, r]: rewards; `weights` [E, N]: 0 for the pairs that each holds for corrupt; `by_evidence` [E]: pairs went
    because something contradicts them, not as a quota. Row 0 trusts all pairs. `doubted` [r, r]: orthonormal directions
    as rows that only suspects cover of whom some are contradicted (`doubted_directions`), 0 beyond.
    """

    t: Float[Array, "E r"]
    weights: Float[Array, "E N"]
    by_evidence: Bool[Array, " E"]
    doubted: Float[Array, "r r"]


class Starts(NamedTuple):
    """Fits to all pairs: `plain`; `bounded`: rows weighted by 1/length; `short`: the shorter half of the rows."""

    plain: Float[Array, " r"]
    bounded: Float[Array, " r"]
    short: Float[Array, " r"]


def explain(
    pairs: Pairs,
    rows: DoubtedRows,
    starts: Starts,
    epsilon: Float[Array, ""],
    overdispersion: Float[Array, ""] | float = 1.0,
) -> Explanations:
    """Every explanation that some way of doubting leads to, at most 2ε of the pairs left out.

    Each proposal of suspects (the longest rows, the most crowded points, what the covariance filter takes, the pairs of
    which one of three fits is surest) is examined: whom nothing contradicts comes back, label outliers go (`examine`).
    To these come trimmed fits (Algorithm 2) from five starts.
    """
    ones, plain = jnp.ones_like(pairs.o), starts.plain
    budget = 2.0 * epsilon * pairs.n_pairs
    unsure, trimmed = _by_margins(pairs, starts, epsilon)
    doubts = [ones, *rows.weights]
    if pairs.z.shape[1] <= FILTER_UP_TO:
        doubts.append(filtered_rows(pairs, epsilon))
    from_plain = jnp.broadcast_to(plain, (len(doubts), len(plain)))

    def examined(proposal):
        weights, start = proposal
        clean = examine(pairs, weights, budget, start, overdispersion)
        return clean.t, clean.weights, doubted_directions(pairs, weights, clean.weights, clean.t)

    proposals = (jnp.concatenate([jnp.stack(doubts), unsure[0]]), jnp.concatenate([from_plain, unsure[1]]))
    t, weights, doubted = jax.lax.map(examined, proposals)
    return Explanations(
        jnp.concatenate([plain[None], t, trimmed[1]]),
        jnp.concatenate([ones[None], weights, trimmed[0]]),
        jnp.arange(1 + len(t) + len(trimmed[1])) <= len(t),
        span_basis(doubted.reshape(-1, len(plain))),
    )


def first_fits(pairs: Pairs, rows: DoubtedRows) -> tuple[Starts, WeightedFit]:
    """The `Starts`, and the plain fit with its status: maximum likelihood on all pairs, no prior."""
    weights = jnp.stack([jnp.ones_like(pairs.o), _inverse_lengths(pairs), rows.short_half])
    priors = jnp.asarray([0.0, PRIOR, PRIOR], pairs.z.dtype)
    zero = jnp.zeros(pairs.z.shape[1], pairs.z.dtype)
    fits = jax.lax.map(
        lambda given: fit(pairs, given[0], zero, given[1], first_factor(zero)), (weights, priors)
    )
    return Starts(*fits.t), jax.tree.map(lambda leaf: leaf[0], fits)


def _by_margins(pairs: Pairs, starts: Starts, epsilon):
    """((weights, t) of the pairs about which fits are unsure, of trimmed fits from there and from the first fits).

    Two stages of one program: the second starts where the first one's unsure fits ended.
    """
    plain, bounded, short = starts
    wide = pairs.z.shape[1] > WIDE
    trusting, trimming = 1.0 - 2.0 * epsilon, 1.0 - epsilon
    unsure = [(t, trusting, False) for t in ([plain, short] if wide else [plain, bounded, short])]
    likely = (
        []
        if wide
        else [
            (t, share, True)
            for share in (trimming, jnp.minimum(trimming, 1.0 - AT_FIRST))
            for t in (plain, short)
        ]
    )
    begin, share, kind = (
        jnp.stack([jnp.asarray(v) for v in given]) for given in zip(*unsure, *likely, strict=True)
    )

    def stage(carry, _):
        weights, t = jax.lax.map(lambda g: believed_rows(pairs, *g), carry)
        # What is trimmed to this share already stays as it is.
        return (jnp.full_like(share, trimming), t, jnp.ones_like(kind)), (weights, t)

    _, (weights, t) = jax.lax.scan(stage, (share, begin, kind), length=2)
    count = len(unsure)
    return (weights[0, :count], t[0, :count]), (weights[1], t[1])


def _inverse_lengths(pairs: Pairs) -> Float[Array, " N"]:
    length = lengths(pairs)
    return jnp.where(length > 0, jnp.mean(length) / positive_or_one(length), 1.0)
