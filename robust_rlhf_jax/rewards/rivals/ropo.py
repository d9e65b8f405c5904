"""Robust preference optimisation of Liang et al., for a linear reward: the likelihood and a bounded loss together."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from robust_rlhf_jax.checks import check_labels
from robust_rlhf_jax.kernels.logistic import label_variance
from robust_rlhf_jax.likelihood.margin_losses import WeighingLoss
from robust_rlhf_jax.rewards.protocol import Entry, RewardEstimate
from robust_rlhf_jax.rewards.several_starts import estimate_from_starts

# The paper's α.
ALPHA = 14.0


class BoundedAndLogistic(WeighingLoss):
    """(ασ(−m) + ℓ(m))/(1 + α): of pairs far on the wrong side the bounded part no longer pulls. Not convex."""

    alpha: Float[Array, ""]

    def value(self, margins: Float[Array, " n"]):
        return (self.alpha * jax.nn.sigmoid(-margins) - jax.nn.log_sigmoid(margins)) / (1.0 + self.alpha)

    def slope(self, margins: Float[Array, " n"]):
        bounded = self.alpha * label_variance(margins)
        return -(bounded + jax.nn.sigmoid(-margins)) / (1.0 + self.alpha)

    def curvature(self, margins: Float[Array, " n"]):
        odd = jnp.tanh(0.5 * margins)
        return jnp.abs(label_variance(margins) * (1.0 + self.alpha * odd)) / (1.0 + self.alpha)

    def weight(self, margins: Float[Array, " n"]) -> Float[Array, " n"]:
        """ρ′(m)/ℓ′(m) = (1 + ασ(m))/(1 + α), in [0, 1]."""
        return (1.0 + self.alpha * jax.nn.sigmoid(margins)) / (1.0 + self.alpha)


def ropo(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: Float[Array, ""],
    *,
    radius: float | Float[Array, ""],
    alpha: float | Float[Array, ""] = ALPHA,
) -> RewardEstimate:
    """min over θ in the ball of Σ_n ασ(−m_n) + ℓ(m_n) (ROPO: Liang et al. 2025), without its rejection sampling.

    The mean of the bounded part has its minimum where it is without symmetric flips. Not convex: the lowest of several
    starts. ε is not used. `weights`: slope over the likelihood's slope. Suspicion: the label's surprise.
    """
    check_labels(labels)
    return estimate_from_starts(BoundedAndLogistic(jnp.asarray(alpha, x.dtype)), x, labels, radius)


ENTRIES = [
    Entry(
        ropo,
        "ROPO loss",
        None,
        "the likelihood and a bounded loss (Liang et al. 2025); ε is not used",
        uses_epsilon=False,
        plain_at_zero=False,
        by_surprise=True,
    )
]
