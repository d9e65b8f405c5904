"""The front door to rewards: a fit that is maximum likelihood on honest pairs and survives corrupt ones."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from robust_rlhf_jax.checks import check_labels
from robust_rlhf_jax.iterate import Status
from robust_rlhf_jax.kernels.lapack import cholesky, eigh, lower_solve
from robust_rlhf_jax.kernels.linalg import matmul

from .coordinates import Pairs, unit_free
from .explanations import explain
from .selection import judge
from .share import corrupt_share
from .suspicion import suspicion_of
from .weighted_fit import PRIOR, WeightedFit, fit, information, missed, plain_fit

# What ε may be at most where nobody says: beyond a fifth, liars can outvote the honest in whatever matters.
CEILING = 0.2
# A direction is doubted where the pairs that stay know less than this share of what all pairs say.
COVERED = 0.1


class RewardFit(NamedTuple):
    """θ̂ [k] and how it came about, in arrays, so that it vmaps; see `RewardModel`.

    `undisputed` [N]: 1 for pairs that every plausible explanation keeps; `doubted` [r, k]: directions, or 0.
    """

    theta: Float[Array, " k"]
    weights: Float[Array, " N"]
    undisputed: Float[Array, " N"]
    suspicion: Float[Array, " N"]
    epsilon: Float[Array, ""]
    interval: Float[Array, "2"]
    rank: Int[Array, ""]
    doubted: Float[Array, "r k"]
    at_radius: Bool[Array, ""]
    status: Int[Array, ""]


def fit_differences(
    x: Float[Array, "N k"],
    labels: Float[Array, " N"],
    epsilon: Float[Array, ""],
    groups: Int[Array, " N"] | None = None,
) -> RewardFit:
    """The robust reward of labelled differences. Jit- and vmap-able; a new ε compiles nothing.

    1. `plain`: maximum likelihood on all pairs, in coordinates without units.
    2. Explanations: suspects proposed in several ways, those that nothing contradicts brought back (`explain`).
    3. The plain fit stays unless another explanation is better with certainty and consequence (`judge`).
    4. Directions that only left-out pairs cover are fitted to those, and reported.

    **Arguments:** `epsilon` in [0, ½): the largest share of corrupt pairs, a ceiling; `groups` [N]: the rater of each
    pair as a number from 0 to N − 1, or None.

    **Raises:** ValueError for labels other than ±1.
    """
    check_labels(labels)
    return _fit_differences(x, labels, epsilon, groups)


@eqx.filter_jit
def _fit_differences(x, labels, epsilon, groups) -> RewardFit:
    pairs = unit_free(x, labels)
    plain = plain_fit(pairs)
    spread = jnp.ones((), x.dtype) if groups is None else overdispersion(pairs, plain.t, groups)

    def robust():
        explanations = explain(pairs, plain.t, epsilon, spread)
        found = judge(pairs, explanations, epsilon)
        undisputed = jnp.min(jnp.where(found.plausible[:, None], explanations.weights, 1.0), axis=0)
        t, weights = explanations.t[found.chosen], explanations.weights[found.chosen]
        kept, doubted = _keep_every_direction(pairs, weights, t)
        t = jnp.where(found.chosen == 0, plain.t, kept)
        weights = jnp.where(found.chosen == 0, 1.0, weights)
        return (
            t,
            weights,
            undisputed,
            doubted * (found.chosen > 0),
            *corrupt_share(pairs, explanations, found, epsilon, spread),
        )

    def classical():
        ones, r = jnp.ones_like(labels), plain.t.shape[0]
        nothing = jnp.zeros((), x.dtype)
        return plain.t, ones, ones, jnp.zeros((r, r), x.dtype), nothing, jnp.zeros(2, x.dtype)

    t, weights, undisputed, doubted, estimate, interval = jax.lax.cond(epsilon > 0, robust, classical)
    return RewardFit(
        theta=matmul(pairs.to_theta, t),
        weights=weights,
        undisputed=undisputed,
        suspicion=suspicion_of(pairs, t, weights, epsilon),
        epsilon=estimate,
        interval=interval,
        rank=pairs.rank,
        doubted=matmul(doubted, pairs.to_theta.T),
        at_radius=plain.at_radius,
        status=_status(plain, t),
    )


def overdispersion(pairs: Pairs, t: Float[Array, " r"], groups: Int[Array, " N"]) -> Float[Array, ""]:
    """How much more the scores of whole groups vary than if a group's labels were independent, at least 1.

    tr(F⁻¹Σ_g s_g s_gᵀ)/rank with s_g = Σ_{n∈g} r_n o_n z_n: the design effect of Moulton 1986.
    """
    margins = pairs.margins(t)
    ones, r = jnp.ones_like(margins), t.shape[0]
    scores = (missed(margins) * pairs.o)[:, None] * pairs.z
    by_group = jax.ops.segment_sum(scores, groups, pairs.n_pairs)
    known = information(pairs, ones, margins) + 0.5 * PRIOR * jnp.eye(r, dtype=t.dtype)
    whitened = lower_solve(cholesky(known), by_group.T)
    return jnp.maximum(jnp.sum(whitened**2) / jnp.maximum(pairs.rank, 1), 1.0)


def _keep_every_direction(pairs: Pairs, weights: Float[Array, " N"], t: Float[Array, " r"]):
    """(t, doubted [r, r]): directions about which the kept pairs know less than `COVERED` of what all pairs say are
    fitted to the pairs that were left out, the others untouched.
    """
    margins, r = pairs.margins(t), t.shape[0]
    real = jnp.arange(r) >= 0
    everything = information(pairs, jnp.ones_like(weights), margins)
    floor = 0.5 * PRIOR * jnp.eye(r, dtype=t.dtype)
    factor = cholesky(everything + floor)
    half = lower_solve(factor, information(pairs, weights, margins) + floor)
    share, axes = eigh(lower_solve(factor, half.T))
    doubted = (share < COVERED) & real
    directions = jax.scipy.linalg.solve_triangular(factor, axes, trans=1, lower=True)
    unit = directions / jnp.linalg.norm(directions, axis=0)
    span = jnp.where(doubted[None], unit, 0.0)
    # Left-out rows speak in the doubted directions alone.
    q, _ = jnp.linalg.qr(span + 1e-30)
    live = jnp.linalg.norm(matmul(q.T, span), axis=1) > 0.5
    basis = jnp.where(live[None], q, 0.0)
    shown = matmul(matmul(pairs.z, basis), basis.T)
    rows = jnp.concatenate(
        [weights[:, None] * pairs.z + (1.0 - weights)[:, None] * shown, pairs.rows[pairs.n_pairs :]]
    )
    every = Pairs(rows, pairs.labels, pairs.to_theta, pairs.rank, pairs.n_pairs)
    return jnp.where(jnp.any(doubted), fit(every, jnp.ones_like(weights), t).t, t), span.T


def _status(plain: WeightedFit, t) -> Int[Array, ""]:
    separable = jnp.where(plain.at_radius, Status.SEPARABLE.array(), plain.status)
    return jnp.where(jnp.all(jnp.isfinite(t)), separable, Status.NONFINITE.array())
