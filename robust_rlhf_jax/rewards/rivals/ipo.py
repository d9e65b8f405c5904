"""Identity preference optimisation, for a linear reward: margins are drawn to one length."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from robust_rlhf_jax.checks import check_labels
from robust_rlhf_jax.likelihood.margin_fit import fit_margin_loss, margin_problem
from robust_rlhf_jax.likelihood.margin_losses import MarginLoss
from robust_rlhf_jax.rewards.protocol import Entry, RewardEstimate, surprise

# The length 1/(2τ) of a margin: at 1 a label is as certain as σ(1) = .73. It scales θ, and changes no order of options.
LENGTH = 1.0


class SquaredMargin(MarginLoss):
    """(m − c)²: convex, and a margin of the right sign costs, too, where it is longer than c."""

    length: Float[Array, ""]

    def value(self, margins: Float[Array, " n"]):
        return (margins - self.length) ** 2

    def slope(self, margins: Float[Array, " n"]):
        return 2.0 * (margins - self.length)

    def curvature(self, margins: Float[Array, " n"]):
        return jnp.full_like(margins, 2.0)


def ipo(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: Float[Array, ""],
    *,
    radius: float | Float[Array, ""],
    length: float | Float[Array, ""] = LENGTH,
) -> RewardEstimate:
    """min over θ in the ball of Σ_n (o_nθᵀx_n − 1/(2τ))² (IPO: Azar et al. 2024); `length` is 1/(2τ).

    Least squares of labels on differences: no label is certain, so that a model does not run away with pairs that all
    raters decide alike. ε is not used. Suspicion: the label's surprise.
    """
    check_labels(labels)
    return _ipo(x, labels.astype(x.dtype), jnp.asarray(radius, x.dtype), jnp.asarray(length, x.dtype))


@eqx.filter_jit
def _ipo(
    x: Float[Array, "n k"], labels: Float[Array, " n"], radius: Float[Array, ""], length: Float[Array, ""]
) -> RewardEstimate:
    fit = fit_margin_loss(margin_problem(SquaredMargin(length), x, labels, radius))
    return RewardEstimate(fit.theta, jnp.ones_like(fit.margins), surprise(fit.theta, x, labels), fit.status)


ENTRIES = [
    Entry(
        ipo,
        "IPO loss",
        None,
        "squared distance of margins to one length (Azar et al. 2024); ε is not used",
        uses_epsilon=False,
        plain_at_zero=False,
        by_surprise=True,
    )
]
