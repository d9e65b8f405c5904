"""Cleaning by the reward gap, for a linear reward: the labels that a plain fit contradicts most are left out."""

from functools import partial

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from robust_rlhf_jax._iterate import worst_status
from robust_rlhf_jax.checks import check_labels
from robust_rlhf_jax.kernels.logistic import margins_of
from robust_rlhf_jax.kernels.quantile import keep_top
from robust_rlhf_jax.likelihood.trimmed import plain_mle
from robust_rlhf_jax.rewards.protocol import Entry, RewardEstimate, surprise


def reward_gap(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: Float[Array, ""],
    *,
    radius: float | Float[Array, ""],
) -> RewardEstimate:
    """A plain fit, the εn pairs of the smallest gap o_nθᵀx_n left out, a plain fit to the rest (RwGap, removal).

    The gap between the rewards of chosen and rejected is the mean of several models in Wang et al. 2024, *Secrets of
    RLHF II*, and of eight DPO models in PrefCleanBench (Yeh & Li 2025). The fit of a linear reward is unique, and
    stands for them: the rule is one round of Algorithm 2 from the plain fit. At ε = 0 it is maximum likelihood.
    Suspicion: the label's surprise under the first fit, which orders the pairs as the gap does.
    """
    check_labels(labels)
    dtype = x.dtype
    return _reward_gap(x, labels.astype(dtype), jnp.asarray(epsilon, dtype), jnp.asarray(radius, dtype))


@eqx.filter_jit
def _reward_gap(
    x: Float[Array, "n k"], labels: Float[Array, " n"], epsilon: Float[Array, ""], radius: Float[Array, ""]
) -> RewardEstimate:
    fit = partial(plain_mle, x, labels, radius=radius)
    every = jnp.ones_like(labels)
    first = fit(every)
    weights = keep_top(margins_of(first.theta, x, labels), every, (1.0 - epsilon) * len(x))
    last = fit(weights)
    status = worst_status(first.status, last.status)
    return RewardEstimate(last.theta, weights, surprise(first.theta, x, labels), status)


ENTRIES = [
    Entry(
        reward_gap,
        "reward gap",
        None,
        "labels that a plain fit contradicts most left out (RwGap: Wang et al. 2024)",
    )
]
