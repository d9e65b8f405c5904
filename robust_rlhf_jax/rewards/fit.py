"""How a reward is fitted: maximum likelihood on honest pairs, without what the rest contradicts.

`front_door.py` has `fit_reward`, `score_test.py` the level of a contradiction, `weighted_fit.py` prior and radius.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.checks import check_labels
from robust_rlhf_jax.kernels.lapack import cholesky, lower_solve
from robust_rlhf_jax.kernels.linalg import matmul

from .alternative import Alternative, alternative_to, no_alternative
from .coordinates import Pairs, unit_free
from .corrupt_share import corrupt_share
from .doubt import COVERED, coverage, span_basis, unit_rows
from .explanations import explain, first_fits
from .proposals import doubted_rows
from .selection import judge
from .suspicion import suspicion_of
from .weighted_fit import PRIOR, WeightedFit, fit, information, missed, separable

# Information about a unit of t, in whitened coordinates, that a handful of pairs has: below, a direction is not known.
IDENTIFIED = 1.0
# What ε may be at most where nobody says: beyond a fifth, liars can outvote the honest in whatever matters.
CEILING = 0.2


class RewardFit(NamedTuple):
    """θ̂ [k] and how it came about, in arrays, so that it vmaps; see `RewardModel`.

    `undisputed` [N]: 1 for pairs that every plausible explanation keeps; `doubted` [r, k]: directions of θ, or rows of
    0.
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
    return _fit_differences(x, labels, epsilon, groups, False)[0]


def fit_with_alternative(
    x: Float[Array, "N k"],
    labels: Float[Array, " N"],
    epsilon: Float[Array, ""],
    groups: Int[Array, " N"] | None = None,
) -> tuple[RewardFit, Alternative]:
    """`fit_differences`, and the explanation that contradicts the believed one most, if any fits the data, too.

    **Arguments** and **Raises:** as `fit_differences`.
    """
    check_labels(labels)
    return _fit_differences(x, labels, epsilon, groups, True)


@eqx.filter_jit
def _fit_differences(x, labels, epsilon, groups, compare: bool):
    """(RewardFit, Alternative or None where nobody asks to `compare`)."""
    pairs = unit_free(x, labels)
    rows = doubted_rows(pairs, epsilon)
    starts, plain = first_fits(pairs, rows)
    spread = jnp.ones((), x.dtype) if groups is None else overdispersion(pairs, plain.t, groups)

    def robust():
        explanations = explain(pairs, rows, starts, epsilon, spread)
        found = judge(pairs, explanations, epsilon)
        undisputed = jnp.min(jnp.where(found.plausible[:, None], explanations.weights, 1.0), axis=0)
        trusting = found.chosen == 0
        weights = jnp.where(trusting, 1.0, explanations.weights[found.chosen])
        kept, uncovered = _keep_every_direction(pairs, weights, explanations.t[found.chosen])
        t = jnp.where(trusting, plain.t, kept)
        doubted = span_basis(jnp.concatenate([uncovered * ~trusting, explanations.doubted]))
        share = corrupt_share(pairs, explanations, found, epsilon, spread)
        other = alternative_to(found.chosen, pairs, explanations, plain.t, epsilon) if compare else None
        return _Outcome(t, weights, undisputed, doubted, *share, other)

    def classical():
        ones, r = jnp.ones_like(labels), len(plain.t)
        nothing = jnp.zeros((r, r), x.dtype), jnp.zeros((), x.dtype), jnp.zeros(2, x.dtype)
        return _Outcome(plain.t, ones, ones, *nothing, no_alternative(pairs) if compare else None)

    # Labels that a reward explains one and all contradict nothing.
    explained = jnp.min(pairs.margins(plain.t)) > 0
    found = jax.lax.cond((epsilon > 0) & ~explained, robust, classical)
    fitted = RewardFit(
        theta=matmul(pairs.to_theta, found.t),
        weights=found.weights,
        undisputed=found.undisputed,
        suspicion=suspicion_of(pairs, found.t, found.weights, epsilon),
        epsilon=found.epsilon,
        interval=found.interval,
        rank=pairs.rank,
        doubted=matmul(found.doubted, pairs.to_theta.T),
        at_radius=plain.at_radius,
        status=_status(pairs, plain, found.t),
    )
    return fitted, found.alternative


class _Outcome(NamedTuple):
    """A fit in unit-free coordinates."""

    t: Float[Array, " r"]
    weights: Float[Array, " N"]
    undisputed: Float[Array, " N"]
    doubted: Float[Array, "r r"]
    epsilon: Float[Array, ""]
    interval: Float[Array, "2"]
    alternative: Alternative | None


def overdispersion(pairs: Pairs, t: Float[Array, " r"], groups: Int[Array, " N"]) -> Float[Array, ""]:
    """How much more the scores of whole groups vary than if a group's labels were independent, at least 1.

    tr(F⁻¹Σ_g s_g s_gᵀ)/rank with s_g = Σ_{n∈g} r_n o_n z_n: the design effect of Moulton 1986.
    """
    margins = pairs.margins(t)
    ones, r = jnp.ones_like(margins), len(t)
    scores = (missed(margins) * pairs.o)[:, None] * pairs.z
    by_group = jax.ops.segment_sum(scores, groups, pairs.n_pairs)
    known = information(pairs, ones, margins) + 0.5 * PRIOR * jnp.eye(r, dtype=t.dtype)
    whitened = lower_solve(cholesky(known), by_group.T)
    return jnp.maximum(jnp.sum(whitened**2) / jnp.maximum(pairs.rank, 1), 1.0)


def _keep_every_direction(pairs: Pairs, weights: Float[Array, " N"], t: Float[Array, " r"]):
    """(t, basis [r, r]): the directions about which the kept pairs know next to nothing are fitted to the pairs that
    were left out, which speak of nothing else.
    """
    found = coverage(pairs, weights, pairs.margins(t))
    # By what the kept pairs know in themselves: beside rows that lie far out, any honest pair knows little.
    alone = found.share / jnp.maximum(jnp.sum(found.directions**2, axis=1), 1e-30)
    basis = span_basis(unit_rows(found.directions, (found.share < COVERED) & (alone < IDENTIFIED)))
    shown = matmul(matmul(pairs.z, basis.T), basis)
    z = weights[:, None] * pairs.z + (1.0 - weights)[:, None] * shown
    every = eqx.tree_at(lambda p: p.z, pairs, z)
    return jnp.where(jnp.any(basis != 0), fit(every, jnp.ones_like(weights), t).t, t), basis


def _status(pairs: Pairs, plain: WeightedFit, t) -> Int[Array, ""]:
    status = jnp.where(separable(pairs, plain), Status.SEPARABLE.array(), plain.status)
    return jnp.where(jnp.all(jnp.isfinite(t)), status, Status.NONFINITE.array())
