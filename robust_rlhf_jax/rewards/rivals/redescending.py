"""Logistic regression whose influence falls back to zero: the density power divergence."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from robust_rlhf_jax.checks import check_labels
from robust_rlhf_jax.likelihood.margin_losses import DensityPower
from robust_rlhf_jax.rewards.protocol import Entry, RewardEstimate
from robust_rlhf_jax.rewards.several_starts import estimate_from_starts

# The squared L₂ distance 2(1 − p)²; γ → 0 is the likelihood. Measured on random MDPs at ε = .1 (planted pairs,
# confident and random flips, noisy and nearly certain labels): no worse than ¼ or ½ on any.
GAMMA = 1.0


def redescending(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: Float[Array, ""],
    *,
    radius: float | Float[Array, ""],
    gamma: float | Float[Array, ""] = GAMMA,
) -> RewardEstimate:
    """min over θ in the ball of Σ_n (1 + 1/γ)(1 − p_n^γ) + p_n^{1+γ} + (1 − p_n)^{1+γ}, p_n = σ(o_nθᵀx_n).

    Basu et al. 1998 and, for logistic regression, Ghosh & Basu 2016; the family of divergences with which Hölder-DPO
    redescends (Fujisawa, Adachi & Osborne 2025): a label that θ finds absurd pulls no longer. Not convex: started from
    the plain fit and from two row-normalised ones, the lowest value wins. ε is not used; `gamma` in (0, 1].

    `weights`: slope over the likelihood's slope, 1 at p = ½. Suspicion: the label's surprise.
    """
    check_labels(labels)
    return estimate_from_starts(DensityPower(jnp.asarray(gamma, x.dtype)), x, labels, radius)


ENTRIES = [
    Entry(
        redescending,
        "density power",
        "#6fa8dc",
        "the density power divergence (Ghosh & Basu 2016); ε is not used",
        uses_epsilon=False,
        plain_at_zero=False,
        by_surprise=True,
    )
]
