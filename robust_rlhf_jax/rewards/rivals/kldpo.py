"""Kullback–Leibler DPO, for a linear reward: badly explained pairs count more, against a shift of preferences."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from robust_rlhf_jax.checks import check_labels, check_positive
from robust_rlhf_jax.likelihood.margin_fit import fit_margin_loss, margin_problem
from robust_rlhf_jax.likelihood.margin_losses import MarginLoss
from robust_rlhf_jax.rewards.protocol import Entry, RewardEstimate, surprise

# The τ that the authors' code begins with; their commands have .05, with the cut that `kldpo` goes without.
TAU = 1.0


class SoftMaximum(MarginLoss):
    """τ(2p)^{−1/τ}, p = σ(m): its sum orders θ as τ log mean exp(ℓ/τ) does. Convex."""

    tau: Float[Array, ""]

    def value(self, margins: Float[Array, " n"]):
        return self.tau * jnp.exp(-(jax.nn.log_sigmoid(margins) + jnp.log(2.0)) / self.tau)

    def slope(self, margins: Float[Array, " n"]):
        return -self.value(margins) / self.tau * jax.nn.sigmoid(-margins)

    def curvature(self, margins: Float[Array, " n"]):
        p, q = jax.nn.sigmoid(margins), jax.nn.sigmoid(-margins)
        return self.value(margins) / self.tau * q * (p + q / self.tau)


def kldpo(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: Float[Array, ""],
    *,
    radius: float | Float[Array, ""],
    tau: float | Float[Array, ""] = TAU,
) -> RewardEstimate:
    """min over θ in the ball of max over P of Σ_n P_nℓ(m_n) − τ KL(P ‖ 1/n) = τ log mean_n exp(ℓ(m_n)/τ) (KLDPO).

    τ is the multiplier of a bound on KL(P ‖ 1/n), and the worst P_n ∝ exp(ℓ(m_n)/τ) (Xu, Vemuri, Panaganti, Kalathil,
    Jain & Ramachandran 2025). For a linear reward m_n = o_nθᵀx_n takes the place of the policy's log-ratio, and all
    pairs are one batch; the authors' code cuts exp((ℓ − mean ℓ)/τ) at 10, this does not. It is Dr. DPO with the sign of
    β′ turned round, and at τ = 1 boosting's exponential loss. It guards against other people, not against wrong labels:
    those count the most. ε is not used. `weights`: P_n over the largest. Suspicion: the label's surprise.

    **Raises:** ValueError for τ ≤ 0.
    """
    check_labels(labels)
    check_positive(tau, "tau")
    return _kldpo(x, labels.astype(x.dtype), jnp.asarray(radius, x.dtype), jnp.asarray(tau, x.dtype))


@eqx.filter_jit
def _kldpo(
    x: Float[Array, "n k"], labels: Float[Array, " n"], radius: Float[Array, ""], tau: Float[Array, ""]
) -> RewardEstimate:
    fit = fit_margin_loss(margin_problem(SoftMaximum(tau), x, labels, radius))
    loss = surprise(fit.theta, x, labels)
    return RewardEstimate(fit.theta, jnp.exp((loss - jnp.max(loss)) / tau), loss, fit.status)


ENTRIES = [
    Entry(
        kldpo,
        "KLDPO loss",
        None,
        "a soft maximum of the losses (Xu et al. 2025); ε is not used",
        uses_epsilon=False,
        plain_at_zero=False,
        by_surprise=True,
    )
]
