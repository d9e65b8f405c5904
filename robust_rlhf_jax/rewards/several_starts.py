"""Losses that are not convex, minimised from several starts: the plain fit and two row-normalised ones."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from robust_rlhf_jax.kernels.linalg import matmul, pseudo_inverse_root, weighted_second_moment
from robust_rlhf_jax.likelihood.margin_fit import MarginFit, fit_margin_loss, margin_problem
from robust_rlhf_jax.likelihood.margin_losses import MarginLoss, TiltedLogistic, WeighingLoss

from .protocol import RewardEstimate, surprise


@eqx.filter_jit
def estimate_from_starts(
    loss: WeighingLoss,
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    radius: float | Float[Array, ""],
) -> RewardEstimate:
    """`best_of_starts` as an estimate: weights are the loss's, suspicion is the label's surprise."""
    labels = labels.astype(x.dtype)
    fit = best_of_starts(loss, x, labels, jnp.asarray(radius, x.dtype))
    return RewardEstimate(fit.theta, loss.weight(fit.margins), surprise(fit.theta, x, labels), fit.status)


def best_of_starts(
    loss: MarginLoss, x: Float[Array, "n k"], labels: Float[Array, " n"], radius: Float[Array, ""]
) -> MarginFit:
    """The lowest of the minima of Σ_n ρ(o_nθᵀx_n) on the ball that the starts lead to."""
    problem = margin_problem(loss, x, labels, radius)

    def run(weights):
        likelihood = (TiltedLogistic(jnp.zeros((), x.dtype)), weights)
        start = fit_margin_loss(eqx.tree_at(lambda p: (p.loss, p.weights), problem, likelihood)).theta
        return fit_margin_loss(eqx.tree_at(lambda p: p.start, problem, start))

    ends = jax.lax.map(run, jnp.concatenate([problem.weights[None], row_normalised_weights(x)]))
    # A NaN value must win, or its status would be lost.
    best = jnp.argmin(jnp.where(jnp.isnan(ends.value), -jnp.inf, ends.value))
    return jax.tree.map(lambda leaf: leaf[best], ends)


def row_normalised_weights(x: Float[Array, "n k"]) -> Float[Array, "2 n"]:
    """1/‖x_n‖ over the largest of them, and the same for whitened rows: no row pulls harder than another.

    Whitened, the answer doesn't depend on units; as they are, one far row can't shrink all others. Rows of zeros: 0.
    """
    whitener = pseudo_inverse_root(weighted_second_moment(x, jnp.ones(len(x), x.dtype)))[0]
    length = jnp.linalg.norm(jnp.stack([x, matmul(x, whitener)]), axis=2)
    length = jnp.where(length > 0, length, jnp.inf)
    return jnp.min(length, axis=1, keepdims=True) / length
