"""Wasserstein DPO, for a linear reward: a penalty on the gradient of the loss by the features of both options."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from robust_rlhf_jax.checks import check_labels, check_positive
from robust_rlhf_jax.kernels.linalg import matmul, weighted_gram, weighted_sum
from robust_rlhf_jax.likelihood.margin_fit import MarginProblem, fit_margin_loss, margin_problem
from robust_rlhf_jax.likelihood.margin_losses import TiltedLogistic
from robust_rlhf_jax.rewards.protocol import Entry, RewardEstimate, surprise

# The ρ of the authors' commands.
RHO = 0.01


class PenalisedProblem(MarginProblem):
    """mean ℓ(m_n) + 2ρ‖θ‖² mean q_n², q_n = σ(−m_n): −o_nq_nθ and o_nq_nθ are the gradients of ℓ by the two options."""

    rho: Float[Array, ""]

    def at(self, theta: Float[Array, " k"]):
        theta, margins, value, gradient = super().at(theta)
        share, wrong = self.weights / jnp.sum(self.weights), jax.nn.sigmoid(-margins)
        size, square = matmul(theta, theta), matmul(share, wrong**2)
        slope = -2.0 * wrong**2 * jax.nn.sigmoid(margins)
        by_margins = weighted_sum(share * self.labels * slope, self.x)
        pull = 2.0 * self.rho * (size * by_margins + 2.0 * square * theta)
        return theta, margins, value + 2.0 * self.rho * size * square, gradient + matmul(self.projector, pull)

    def curvature(self, theta: Float[Array, " k"], margins: Float[Array, " n"]) -> Float[Array, "k k"]:
        """The likelihood's, and Gauss and Newton's of the squares ‖q_nθ‖²: never negative."""
        share, wrong = self.weights / jnp.sum(self.weights), jax.nn.sigmoid(-margins)
        bend = -wrong * jax.nn.sigmoid(margins)
        cross = jnp.outer(theta, weighted_sum(share * self.labels * wrong * bend, self.x))
        both = cross + cross.T + matmul(theta, theta) * weighted_gram(self.x, share * bend**2)
        own = matmul(share, wrong**2) * jnp.eye(len(theta), dtype=theta.dtype)
        return super().curvature(theta, margins) + 4.0 * self.rho * (own + both)


def wdpo(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: Float[Array, ""],
    *,
    radius: float | Float[Array, ""],
    rho: float | Float[Array, ""] = RHO,
) -> RewardEstimate:
    """min over θ in the ball of mean_n ℓ(m_n) + ρ‖∇ℓ(m_n)‖², the gradient by the features of both options (WDPO).

    The penalty is the first order of the worst case over a Wasserstein ball around the pairs (Xu, Vemuri, Panaganti,
    Kalathil, Jain & Ramachandran 2025), squared, as in the authors' code. For a linear reward it is 2ρσ(−m_n)²‖θ‖²: a
    ridge to which pairs add by how badly they are explained. It depends on the units of the features, and guards
    against options that move a little, not against wrong labels. ε is not used. `weights`: 1. Suspicion: the label's
    surprise.

    **Raises:** ValueError for ρ < 0.
    """
    check_labels(labels)
    check_positive(rho, "rho", or_zero=True)
    return _wdpo(x, labels.astype(x.dtype), jnp.asarray(radius, x.dtype), jnp.asarray(rho, x.dtype))


@eqx.filter_jit
def _wdpo(
    x: Float[Array, "n k"], labels: Float[Array, " n"], radius: Float[Array, ""], rho: Float[Array, ""]
) -> RewardEstimate:
    plain = margin_problem(TiltedLogistic(jnp.zeros((), x.dtype)), x, labels, radius)
    fit = fit_margin_loss(PenalisedProblem(**vars(plain), rho=rho))
    return RewardEstimate(fit.theta, jnp.ones_like(fit.margins), surprise(fit.theta, x, labels), fit.status)


ENTRIES = [
    Entry(
        wdpo,
        "WDPO loss",
        None,
        "the likelihood and the squares of its gradients by the features (Xu et al. 2025); ε is not used",
        uses_epsilon=False,
        plain_at_zero=False,
        by_surprise=True,
    )
]
