"""What a reward estimate is: how every estimator is called and what it returns."""

from typing import Protocol

import equinox as eqx
import jax
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.kernels.linalg import matmul


class RewardEstimate(eqx.Module):
    """`theta` [k]; `weights` [n] in [0, 1]: what each pair counted in the last fit; `suspicion` [n]: higher is
    likelier to be corrupt; `status`.
    """

    theta: Float[Array, " k"]
    weights: Float[Array, " n"]
    suspicion: Float[Array, " n"]
    status: Int[Array, ""]


class RewardEstimator(Protocol):
    """(x [n, k], labels [n] ±1, ε, radius of the ball that θ lies in) → `RewardEstimate`. Jit- and vmap-able."""

    def __call__(
        self,
        x: Float[Array, "n k"],
        labels: Float[Array, " n"],
        epsilon: Float[Array, ""],
        *,
        radius: float | Float[Array, ""],
    ) -> RewardEstimate: ...


def surprise(theta: Float[Array, " k"], x: Float[Array, "n k"], labels: Float[Array, " n"]):
    """−log P_θ(o_n | x_n) [n], in nats: the suspicion of an estimator that looks at labels alone."""
    return -jax.nn.log_sigmoid(labels * matmul(x, theta))
