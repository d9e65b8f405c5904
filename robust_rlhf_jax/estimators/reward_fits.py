"""Ways to estimate a reward from labelled differences, all called alike: what rivals and attacks are run against."""

from typing import Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.kernels.linalg import matmul

from .reward import robust_reward
from .trimmed_mle import trimmed_mle


class RewardFit(eqx.Module):
    """`theta` [k]; `weights` [n] in [0, 1]: what each pair counted in the last fit; `suspicion` [n]: higher is
    likelier to be corrupt; `status`.
    """

    theta: Float[Array, " k"]
    weights: Float[Array, " n"]
    suspicion: Float[Array, " n"]
    status: Int[Array, ""]


class RewardEstimator(Protocol):
    """(x [n, k], labels [n] ±1, ε, radius of the ball that θ lies in) → `RewardFit`. Jit- and vmap-able."""

    def __call__(
        self,
        x: Float[Array, "n k"],
        labels: Float[Array, " n"],
        epsilon: Float[Array, ""],
        *,
        radius: float | Float[Array, ""],
    ) -> RewardFit: ...


def surprise(theta: Float[Array, " k"], x: Float[Array, "n k"], labels: Float[Array, " n"]):
    """−log P_θ(o_n | x_n) [n], in nats: the suspicion of an estimator that looks at labels alone."""
    return -jax.nn.log_sigmoid(labels * matmul(x, theta))


def maximum_likelihood(x, labels, epsilon, *, radius) -> RewardFit:
    """Plain maximum likelihood on the ball; ε is not used."""
    fit = trimmed_mle(x, labels, jnp.zeros((), x.dtype), radius=radius, robust_start=False)
    return RewardFit(fit.theta, fit.weights, surprise(fit.theta, x, labels), fit.status)


def trimmed(x, labels, epsilon, *, radius) -> RewardFit:
    """`trimmed_mle` alone (paper: Algorithm 2)."""
    fit = trimmed_mle(x, labels, epsilon, radius=radius)
    return RewardFit(fit.theta, fit.weights, surprise(fit.theta, x, labels), fit.status)


def filtered(x, labels, epsilon, *, radius) -> RewardFit:
    """`robust_reward`: the filter and trimming of Algorithm 1, all rows used for every stage.

    A pair that the filter removed is more suspicious than any other, by how far out it lies.
    """
    found = robust_reward(x, x, labels, epsilon, radius=radius)
    # Whitened rows of clean data have squared length ~ 1; labels at worst cost the largest surprise of all.
    loss = surprise(found.fit.theta, x, labels)
    removed = 1.0 - found.survivors
    return RewardFit(
        found.fit.theta, found.fit.weights, loss + removed * (jnp.max(loss) + found.suspicion), found.status
    )


REWARD_ESTIMATORS: dict[str, RewardEstimator] = {
    "maximum_likelihood": maximum_likelihood,
    "trimmed": trimmed,
    "filtered": filtered,
}
