"""Labels that are more surprising than the model itself expects: its two informations then disagree.

The level at which suspect pairs count as contradicted by the rest is in `score_test.py`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from robust_rlhf_jax.kernels.lapack import lower_solve
from robust_rlhf_jax.kernels.linalg import matmul, top_eigenpair, weighted_gram, weighted_sum
from robust_rlhf_jax.kernels.quantile import upper_threshold
from robust_rlhf_jax.kernels.spectral import top_by_power

from .coordinates import WIDE, Pairs
from .weighted_fit import missed

STEPS = 24
# Relative excess of the top eigenvalue that honest data of people show, beyond its sampling error.
TOLERATED, STANDARD_ERRORS = 0.1, 3.0


class Surprise(NamedTuple):
    """`excess`: the top generalised eigenvalue λ of (J, F), 1 if all is well; `shares` [N] of the pairs in it."""

    excess: Float[Array, ""]
    shares: Float[Array, " N"]


def label_surprise(
    pairs: Pairs, weights: Float[Array, " N"], t: Float[Array, " r"], factor: Float[Array, "r r"]
) -> Surprise:
    """How much more the labels of weighted pairs surprise t than it expects; `factor`: the lower factor of F.

    At the true t, J = Σ w r²zzᵀ and F = Σ w P(1 − P)zzᵀ have the same mean, whatever the law of x. (λ, v): the top
    generalised eigenpair of (J, F); pair n has w r²(vᵀz_n)² in it. Blind where margins are near 0: r² = P(1 − P) there
    for any label.

    **Source:** White's information-matrix test (1982).
    """
    wrong = weights * missed(pairs.margins(t)) ** 2

    def unwhiten(axis):
        return jax.scipy.linalg.solve_triangular(factor, axis, trans=1, lower=True)

    if len(t) <= WIDE:
        half = lower_solve(factor, weighted_gram(pairs.z, wrong))
        excess, axis = top_eigenpair(lower_solve(factor, half.T))
    else:
        excess, axis = top_by_power(
            lambda v: lower_solve(
                factor, weighted_sum(wrong * matmul(pairs.z, unwhiten(v)), pairs.z)[:, None]
            )[:, 0],
            pairs.z[jnp.argmax(wrong * jnp.sum(pairs.z**2, axis=1))],
        )
    return Surprise(excess, wrong * matmul(pairs.z, unwhiten(axis)) ** 2)


def without_most_surprising(
    pairs: Pairs,
    weights: Float[Array, " N"],
    surprise: Surprise,
    budget: Float[Array, ""],
    left: Float[Array, ""],
) -> tuple[Float[Array, " N"], Bool[Array, ""]]:
    """(weights without the pairs that have the largest shares, whether none need go or none may).

    A `STEPS`-th of the `budget` goes, one pair at least and no more than is `left`, while λ exceeds 1 by more than
    sampling and people's habits explain. On honest data nothing goes: the fit is maximum likelihood.
    """
    level = 1.0 + TOLERATED + STANDARD_ERRORS * jnp.sqrt(jnp.maximum(pairs.rank, 1) / pairs.n_pairs)
    going = jnp.minimum(left, jnp.maximum(budget / STEPS, 1.0))
    threshold = upper_threshold(surprise.shares, weights, going)
    kept = jnp.where(surprise.shares >= jnp.maximum(threshold, 1e-30), 0.0, weights)
    return kept, (surprise.excess <= level) | (left <= 0.5)
