"""Maximum likelihood of the likelier or the shorter pairs, and of pairs that count by their length."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.kernels.quantile import keep_top
from robust_rlhf_jax.likelihood.trimmed import plain_mle, trimmed_mle

from .filter_and_trim import robust_reward
from .protocol import RewardEstimate, surprise


def filtered_then_trimmed(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: Float[Array, ""],
    *,
    radius: float | Float[Array, ""],
) -> RewardEstimate:
    """`robust_reward`, then one fit to the (1−ε)-fraction of all pairs that is most likely under it."""
    start = robust_reward(x, x, labels, epsilon, radius=radius).fit.theta
    ones = jnp.ones_like(labels)
    kept = keep_top(labels * matmul(x, start), ones, (1.0 - epsilon) * ones.sum())
    return _weighted(x, labels, kept, radius)


def trimmed_from_row_normalised(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: Float[Array, ""],
    *,
    radius: float | Float[Array, ""],
) -> RewardEstimate:
    """`trimmed_mle` from the row-normalised fit alone."""
    start = row_normalised(x, labels, epsilon, radius=radius).theta
    fit = trimmed_mle(x, labels, epsilon, radius=radius, starts=start[None], robust_start=False)
    return RewardEstimate(fit.theta, fit.weights, surprise(fit.theta, x, labels), fit.status)


def row_normalised(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: Float[Array, ""],
    *,
    radius: float | Float[Array, ""],
) -> RewardEstimate:
    """Rows weighted by 1/‖x‖: bounded influence (Künsch, Stefanski & Carroll 1989); ε is not used."""
    length = jnp.linalg.norm(x, axis=1)
    length = jnp.where(length > 0, length, jnp.inf)  # a row of zeros says nothing about θ
    return _weighted(x, labels, jnp.min(length) / length, radius)


def low_leverage(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: Float[Array, ""],
    *,
    radius: float | Float[Array, ""],
) -> RewardEstimate:
    """Maximum likelihood without the 2ε-fraction of largest ‖x‖: hard Mallows weights (Carroll & Pederson 1993)."""
    ones = jnp.ones_like(labels)
    kept = keep_top(-jnp.linalg.norm(x, axis=1), ones, (1.0 - 2.0 * epsilon) * ones.sum())
    return _weighted(x, labels, kept, radius)


def _weighted(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    weights: Float[Array, " n"],
    radius: float | Float[Array, ""],
) -> RewardEstimate:
    """Maximum likelihood with these weights in [0, 1]."""
    fit = plain_mle(x, labels, weights, radius=radius)
    return RewardEstimate(fit.theta, weights, surprise(fit.theta, x, labels), fit.status)
