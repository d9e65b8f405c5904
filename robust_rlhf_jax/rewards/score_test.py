"""Whether the labels of suspect pairs contradict the rest: those that do not come back, whatever the law of x."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from robust_rlhf_jax.estimators.confidence_set import chi_square_quantile
from robust_rlhf_jax.kernels.lapack import cholesky, cholesky_solve
from robust_rlhf_jax.kernels.linalg import matmul, weighted_sum

from .coordinates import Pairs
from .weighted_fit import PRIOR, fit, information, missed

# Chance that honest suspects are contradicted, one test at a time.
MISS = 1e-3
# Honest suspects may follow slopes that differ from the rest's by this share: people's choices are not quite linear.
NONLINEARITY = 0.25
ROUNDS, CHUNKS = 8, 40


class Readmission(NamedTuple):
    """`weights` [N]: 0 for suspects that stay out; `t` [r]: the fit to what counts; `contradicted`: any stayed out."""

    weights: Float[Array, " N"]
    t: Float[Array, " r"]
    contradicted: Bool[Array, ""]


class _Round(NamedTuple):
    kept: Float[Array, " N"]
    suspects: Float[Array, " N"]
    t: Float[Array, " r"]
    round: Int[Array, ""]


def readmit(
    pairs: Pairs,
    proposal: Float[Array, " N"],
    budget: Float[Array, ""],
    start: Float[Array, " r"],
    overdispersion: Float[Array, ""] | float = 1.0,
) -> Readmission:
    """Suspects c = 1 − `proposal` come back unless the score test finds that they contradict the pairs that are left.

    With t fitted to the rest, information F_K, an honest suspect's score r·o·z has mean 0 and the suspects' sum S has
    covariance F_C + F_C F_K⁻¹ F_C (the second term: t is uncertain itself), times `overdispersion` where labels of one
    rater hang together. T = Sᵀ(…)⁻¹S is about χ² with rank(z) degrees if they follow the same t. While T is above its
    .999 quantile, raised by `NONLINEARITY`, the suspects with the largest share in it stay out, a fortieth at a time,
    up to a mass of `budget`. A direction that suspects alone cover has no F_K: nothing in it is ever contradicted.

    **Source:** Rao's score test (1948); White 1982 for its covariance.
    """
    first = _Round(proposal, 1.0 - proposal, start, jnp.zeros((), jnp.int32))

    def unfinished(state: _Round):
        # Once nobody is suspect, one more round fits what counts.
        return state.round <= ROUNDS

    def decide(state: _Round) -> _Round:
        t = fit(pairs, state.kept, state.t).t
        left = budget - (pairs.n_pairs - jnp.sum(state.kept) - jnp.sum(state.suspects))
        out, settled = _contradicting(pairs, state.kept, state.suspects, t, left, overdispersion)
        remaining = state.suspects * (1.0 - out)
        back = settled | (state.round >= ROUNDS - 1)
        kept = jnp.where(back, state.kept + remaining, state.kept)
        decided = jnp.sum(state.suspects) <= 1e-6
        following = jnp.where(decided, ROUNDS + 1, jnp.minimum(state.round + 1, ROUNDS))
        return _Round(
            jnp.where(decided, state.kept, kept),
            jnp.where(back | decided, 0.0, remaining),
            t,
            following.astype(jnp.int32),
        )

    end = jax.lax.while_loop(unfinished, decide, first)
    return Readmission(end.kept, end.t, jnp.sum(end.kept) < pairs.n_pairs - 0.5)


def _contradicting(pairs: Pairs, kept, suspects, t, left, overdispersion):
    """(mask [N] of suspects that go now, whether the rest of them may come back)."""
    margins = pairs.margins(t)
    known = information(pairs, kept, margins) + 0.5 * PRIOR * jnp.eye(t.shape[0], dtype=t.dtype)
    theirs = information(pairs, suspects, margins)
    scores = suspects * missed(margins) * pairs.o
    total = weighted_sum(scores, pairs.z)
    covariance = theirs + matmul(theirs, cholesky_solve(cholesky(known), theirs))
    scale = jnp.trace(covariance) / t.shape[0]
    ridge = 16 * jnp.finfo(t.dtype).eps * t.shape[0] * jnp.where(scale > 0, scale, 1.0)
    factor = cholesky(overdispersion * covariance + ridge * jnp.eye(t.shape[0], dtype=t.dtype))
    direction = cholesky_solve(factor, total[:, None])[:, 0]
    share = scores * matmul(pairs.z, direction)
    # Suspects in the order of their share, in CHUNKS parts of equal mass: what the test says when each part is out.
    order = jnp.argsort(jnp.where(suspects > 0, -share, jnp.inf))
    mass = jnp.cumsum(suspects[order])
    chunk = jnp.minimum((mass / jnp.maximum(mass[-1], 1e-30) * CHUNKS).astype(jnp.int32), CHUNKS - 1)
    sums = jax.ops.segment_sum(scores[order][:, None] * pairs.z[order], chunk, CHUNKS)
    masses = jax.ops.segment_sum(suspects[order], chunk, CHUNKS)
    rest = total - jnp.concatenate([jnp.zeros_like(sums[:1]), jnp.cumsum(sums, axis=0)])
    statistic = jnp.sum(rest * cholesky_solve(factor, rest.T).T, axis=1)
    tilt = matmul(theirs, t)
    shift = NONLINEARITY * jnp.sqrt(jnp.dot(tilt, cholesky_solve(factor, tilt[:, None])[:, 0]))
    level = (jnp.sqrt(chi_square_quantile(1.0 - MISS, pairs.rank)) + shift) ** 2
    gone = jnp.concatenate([jnp.zeros(1, mass.dtype), jnp.cumsum(masses)])
    affordable = gone <= left + 1e-3
    accepted = (statistic <= level) & affordable
    settled = jnp.any(accepted)
    least = jnp.argmin(jnp.where(affordable, statistic, jnp.inf))
    cut = jnp.where(settled, jnp.argmax(accepted), least)
    # Nothing more to gain in this direction, or nothing left to spend: the others come back.
    settled = settled | (cut == 0)
    out = jnp.zeros_like(suspects).at[order].set((chunk < cut).astype(suspects.dtype))
    return jnp.where(suspects > 0, out, 0.0), settled
