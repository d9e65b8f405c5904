"""Pruning by influence functions, for a linear reward: pairs that make validation pairs less likely are left out."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from robust_rlhf_jax._iterate import worst_status
from robust_rlhf_jax.checks import check_labels
from robust_rlhf_jax.kernels.linalg import matmul, pseudo_inverse_root
from robust_rlhf_jax.kernels.logistic import curvature, value_gradient
from robust_rlhf_jax.kernels.quantile import keep_top
from robust_rlhf_jax.likelihood.trimmed import plain_mle
from robust_rlhf_jax.rewards.protocol import Entry, RewardEstimate, surprise


def influence_pruning(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: Float[Array, ""],
    *,
    radius: float | Float[Array, ""],
    validation: tuple[Float[Array, "m k"], Float[Array, " m"]] | None = None,
) -> RewardEstimate:
    """A plain fit, the εn pairs left out whose removal lowers a validation loss most, a plain fit to the rest.

    To first order the removal of pair n changes the loss by gᵀH⁻¹∇ℓ_n/n, g the gradient of the validation loss and H
    the Hessian at θ̂ (Koh & Liang 2017; for reward models Min, Lee, Kwon & Lee 2025). For a linear reward one Hessian is
    solved exactly, where the paper approximates. Pairs whose removal raises the loss stay. The paper validates with
    pairs that experts chose: `validation`, differences and labels. Without them each half of the pairs (n even, n odd)
    validates the other; where both are corrupted alike, chance decides whether the corrupted pairs of a half are found.
    A single pair stays. At ε = 0 it is maximum likelihood. Suspicion: the label's surprise.

    **Raises:** ValueError for validation pairs of another width, or without a label each.
    """
    check_labels(labels)
    dtype = x.dtype
    if validation is not None:
        check_labels(validation[1])
        shape, m, k = validation[0].shape, len(validation[1]), x.shape[1]
        if shape != (m, k):
            raise ValueError(f"validation has differences {shape} and {m} labels: give [m, {k}] and m.")
        validation = validation[0].astype(dtype), validation[1].astype(dtype)
    given = jnp.asarray(epsilon, dtype), jnp.asarray(radius, dtype)
    return _influence_pruning(x, labels.astype(dtype), *given, validation)


def harm(
    theta: Float[Array, " k"],
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    weights: Float[Array, " n"],
    upward: Float[Array, " k"],
) -> Float[Array, " n"]:
    """By how much a validation loss falls, to first order, if a pair is removed from a fit to weighted pairs.

    **Arguments:** `upward` [k]: the gradient of the mean validation likelihood.
    """
    whitener = pseudo_inverse_root(curvature(theta, x, labels, weights))[0]
    direction = matmul(whitener, matmul(whitener, upward))
    pull = labels * jax.nn.sigmoid(-labels * matmul(x, theta))
    return -pull * matmul(x, direction) / jnp.sum(weights)


@eqx.filter_jit
def _influence_pruning(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: Float[Array, ""],
    radius: Float[Array, ""],
    validation: tuple[Float[Array, "m k"], Float[Array, " m"]] | None,
) -> RewardEstimate:
    fit = partial(plain_mle, x, labels, radius=radius)

    def of_half(weights):
        found = fit(weights)
        upward = value_gradient(found.theta, x, labels, 1.0 - weights)[1]
        return weights * harm(found.theta, x, labels, weights, upward), found.status

    every = jnp.ones_like(labels)
    if validation is None and len(x) == 1:
        harms, first = jnp.zeros_like(labels), fit(every).status
    elif validation is None:
        odd = (jnp.arange(len(x)) % 2).astype(x.dtype)
        parts, statuses = jax.lax.map(of_half, jnp.stack([odd, 1.0 - odd]))
        harms, first = jnp.sum(parts, axis=0), worst_status(*statuses)
    else:
        found = fit(every)
        upward = value_gradient(found.theta, *validation, jnp.ones_like(validation[1]))[1]
        harms, first = harm(found.theta, x, labels, every, upward), found.status
    kept = keep_top(-harms, every, (1.0 - epsilon) * len(x))
    weights = jnp.where(harms > 0, kept, 1.0)
    last = fit(weights)
    return RewardEstimate(
        last.theta, weights, surprise(last.theta, x, labels), worst_status(first, last.status)
    )


ENTRIES = [
    Entry(
        influence_pruning,
        "influence",
        None,
        "pairs left out that raise the loss of the other half (influence functions: Min et al. 2025)",
        by_surprise=True,
        period=2,
    )
]
