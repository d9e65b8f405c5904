"""Hölder-DPO, for a linear reward: a loss that lets go of absurd labels, and the share of labels that it let go."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from robust_rlhf_jax.checks import check_labels, check_positive
from robust_rlhf_jax.kernels.divisors import positive_or_one
from robust_rlhf_jax.likelihood.margin_losses import WeighingLoss
from robust_rlhf_jax.rewards.protocol import Entry, RewardEstimate
from robust_rlhf_jax.rewards.several_starts import estimate_from_starts

# The paper's γ.
GAMMA = 2.0


class OwnDensityPower(WeighingLoss):
    """1 − (1 + γ)p^γ + γp^{1+γ}, p = σ(m): the density power of the label given. Not convex; `curvature` is |ρ″|."""

    gamma: Float[Array, ""]

    def value(self, margins: Float[Array, " n"]):
        log_p, g = jax.nn.log_sigmoid(margins), self.gamma
        return 1.0 - (1.0 + g) * jnp.exp(g * log_p) + g * jnp.exp((1.0 + g) * log_p)

    def slope(self, margins: Float[Array, " n"]):
        log_p, log_q = self._logs(margins)
        return -self.gamma * (1.0 + self.gamma) * jnp.exp(self.gamma * log_p + 2.0 * log_q)

    def curvature(self, margins: Float[Array, " n"]):
        log_p, log_q = self._logs(margins)
        return jnp.abs(self.slope(margins) * (self.gamma * jnp.exp(log_q) - 2.0 * jnp.exp(log_p)))

    def weight(self, margins: Float[Array, " n"]) -> Float[Array, " n"]:
        """ρ′(m)/ℓ′(m) ∝ p^γ(1 − p) over its largest value, which it has at p = γ/(1 + γ)."""
        log_p, log_q = self._logs(margins)
        largest = self.gamma * jnp.log(self.gamma) - (1.0 + self.gamma) * jnp.log1p(self.gamma)
        return jnp.minimum(jnp.exp(self.gamma * log_p + log_q - largest), 1.0)


def holder_dpo(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: Float[Array, ""],
    *,
    radius: float | Float[Array, ""],
    gamma: float | Float[Array, ""] = GAMMA,
) -> RewardEstimate:
    """min over θ in the ball of Σ_n γp_n^{1+γ} − (1 + γ)p_n^γ, p_n = σ(o_nθᵀx_n) (Fujisawa, Adachi & Osborne 2025).

    For a linear reward θᵀx takes the place of the policy's log-ratio. The loss of `redescending` has the chance of the
    other label, too, and is consistent for every γ. This one leaves it out: where labels have the chance σ(m), its
    minimum is at m/(2 − γ), and from γ = 2 on, the paper's, only the ball bounds θ. At γ = 1 both are the square loss
    (1 − p)². Not convex: the lowest of several starts. ε is not used; `contamination` estimates it. `weights`: slope
    over the likelihood's slope, 1 at most. Suspicion: the label's surprise.

    **Raises:** ValueError for γ ≤ 0.
    """
    check_labels(labels)
    check_positive(gamma, "gamma")
    return estimate_from_starts(OwnDensityPower(jnp.asarray(gamma, x.dtype)), x, labels, radius)


def contamination(margins: Float[Array, " n"], gamma: float | Float[Array, ""] = GAMMA) -> Float[Array, ""]:
    """The share of wrong labels by Hölder-DPO: max(0, 1 − p̄ · mean p^γ / mean p^{1+γ}), p = σ(m_n), p̄ their mean.

    1 − ε̂ is the scale ξ of the model ξp that minimises the divergence of the loss, the mean over pairs in place of the
    integral (Fujisawa, Adachi & Osborne 2025, Proposition 1 and Appendix F.3). It is the share of pairs with p = 0
    where all others have p = 1, and 0 where all p are alike. Labels that honest people disagree on count as wrong.

    **Arguments:** `margins` [n]: o_nθᵀx_n of the fit.

    **Raises:** ValueError for γ ≤ 0.

    **Example:**

    >>> import jax.numpy as jnp
    >>> from robust_rlhf_jax.rewards.rivals.holder_dpo import contamination
    >>> round(float(contamination(jnp.array([-9.0, 9.0, 9.0, 9.0, 9.0]))), 3)
    0.2
    """
    check_positive(gamma, "gamma")
    p = jax.nn.sigmoid(margins)
    clean = jnp.mean(p) * jnp.mean(p**gamma) / positive_or_one(jnp.mean(p ** (1.0 + gamma)))
    return jnp.maximum(1.0 - clean, 0.0)


ENTRIES = [
    Entry(
        holder_dpo,
        "Hölder-DPO loss",
        None,
        "the density power of the label given (Fujisawa et al. 2025); ε is not used",
        uses_epsilon=False,
        plain_at_zero=False,
        by_surprise=True,
    )
]
