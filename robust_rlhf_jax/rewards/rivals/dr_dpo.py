"""Distributionally robustified DPO, for a linear reward: pairs count by how well they are explained."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from robust_rlhf_jax.checks import check_labels
from robust_rlhf_jax.likelihood.margin_losses import WeighingLoss
from robust_rlhf_jax.rewards.protocol import Entry, RewardEstimate
from robust_rlhf_jax.rewards.several_starts import estimate_from_starts

# The β′ of the paper's experiments.
BETA = 1.0


class SoftMinimum(WeighingLoss):
    """−βp^{1/β}, p = σ(m): its sum orders θ as −β log mean exp(−ℓ/β) does. Not convex; `curvature` is |ρ″|."""

    beta: Float[Array, ""]

    def value(self, margins: Float[Array, " n"]):
        return -self.beta * jnp.exp(self._logs(margins)[0] / self.beta)

    def slope(self, margins: Float[Array, " n"]):
        log_p, log_q = self._logs(margins)
        return -jnp.exp(log_p / self.beta + log_q)

    def curvature(self, margins: Float[Array, " n"]):
        log_p, log_q = self._logs(margins)
        return jnp.abs(jnp.exp(log_p / self.beta + log_q) * (jnp.exp(log_p) - jnp.exp(log_q) / self.beta))

    def weight(self, margins: Float[Array, " n"]) -> Float[Array, " n"]:
        """ρ′(m)/ℓ′(m) = p^{1/β}, in [0, 1]."""
        return jnp.exp(self._logs(margins)[0] / self.beta)


def dr_dpo(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: Float[Array, ""],
    *,
    radius: float | Float[Array, ""],
    beta: float | Float[Array, ""] = BETA,
) -> RewardEstimate:
    """min over θ in the ball of −β′ log mean_n exp(−ℓ(m_n)/β′) (Dr. DPO: Wu et al. 2024), over all pairs at once.

    Trainers take the mean over a batch instead. β′ → ∞ is the likelihood; at 1 it is the mean chance of a label. Not
    convex: the lowest of several starts. ε is not used. `weights`: p^{1/β′}. Suspicion: the label's surprise.
    """
    check_labels(labels)
    return estimate_from_starts(SoftMinimum(jnp.asarray(beta, x.dtype)), x, labels, radius)


ENTRIES = [
    Entry(
        dr_dpo,
        "Dr. DPO loss",
        None,
        "a soft minimum of the losses (Wu et al. 2024); ε is not used",
        uses_epsilon=False,
        plain_at_zero=False,
        by_surprise=True,
    )
]
