"""Likelihoods that know the rate of random label flips: conservative and robust DPO's losses, for a linear reward."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from robust_rlhf_jax.checks import check_labels
from robust_rlhf_jax.likelihood.margin_fit import fit_margin_loss, margin_problem
from robust_rlhf_jax.likelihood.margin_losses import TiltedLogistic
from robust_rlhf_jax.rewards.protocol import Entry, RewardEstimate, surprise


def cdpo(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: Float[Array, ""],
    *,
    radius: float | Float[Array, ""],
) -> RewardEstimate:
    """min of Σ_n (1 − ε)ℓ(m_n) + εℓ(−m_n) = ℓ(m_n) + εm_n: labels smoothed by ε (cDPO: Mitchell 2023).

    Its minimiser under random flips is a shrunken θ; ε = 0 is maximum likelihood. Suspicion: the label's surprise.
    """
    check_labels(labels)
    epsilon = jnp.asarray(epsilon, x.dtype)
    return _tilted(x, labels, epsilon, radius)


def rdpo(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: Float[Array, ""],
    *,
    radius: float | Float[Array, ""],
) -> RewardEstimate:
    """min of Σ_n [(1 − ε)ℓ(m_n) − εℓ(−m_n)]/(1 − 2ε) = ℓ(m_n) − εm_n/(1 − 2ε) (rDPO: Chowdhury, Kini & Natarajan 2024).

    An unbiased estimate of the clean likelihood where each label is flipped with probability ε < ½ (Natarajan et al.
    2013); unbounded below without the ball. ε = 0 is maximum likelihood. Suspicion: the label's surprise.
    """
    check_labels(labels)
    epsilon = jnp.asarray(epsilon, x.dtype)
    return _tilted(x, labels, -epsilon / (1.0 - 2.0 * epsilon), radius)


@eqx.filter_jit
def _tilted(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    tilt: Float[Array, ""],
    radius: float | Float[Array, ""],
) -> RewardEstimate:
    fit = fit_margin_loss(margin_problem(TiltedLogistic(tilt), x, labels, radius))
    return RewardEstimate(fit.theta, jnp.ones_like(fit.margins), surprise(fit.theta, x, labels), fit.status)


ENTRIES = [
    Entry(cdpo, "cDPO loss", "#17a398", "labels smoothed by ε (Mitchell 2023)", by_surprise=True),
    Entry(
        rdpo,
        "rDPO loss",
        "#b5b800",
        "the likelihood debiased for flips (Chowdhury, Kini & Natarajan 2024)",
        by_surprise=True,
    ),
]
