"""Whether what a filter removed looks planted: do its labels differ from the rest's, against one model of both?"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from robust_rlhf_jax.kernels.linalg import matmul

# Standard errors between the means; and the removed mass below which there is nothing to compare.
CERTAIN = 5.0
ENOUGH = 20.0


def excess_surprise(theta: Float[Array, " k"], x: Float[Array, "n k"], labels: Float[Array, " n"]):
    """−log P_θ(o_n | x_n) less its expectation under θ, the entropy of the label, [n] in nats: 0 on average if θ is
    right, however sure it is of each label.
    """
    margins = matmul(x, theta)
    sure = jax.nn.sigmoid(margins)
    entropy = -sure * jax.nn.log_sigmoid(margins) - (1.0 - sure) * jax.nn.log_sigmoid(-margins)
    return -jax.nn.log_sigmoid(labels * margins) - entropy


def removal_is_telling(excess: Float[Array, " n"], survivors: Float[Array, " n"]) -> Bool[Array, ""]:
    """Whether `excess` [n] of the removed mass 1 − `survivors` differs in mean from that of the rest.

    Honest rows far out are as surprising as others, whatever share of the labels is wrong. Planted rows are more
    surprising (false labels), or less (they pulled θ towards them). If too few rows are removed to compare, the filter
    is believed.
    """
    removed = 1.0 - survivors

    def moments(weights):
        total = jnp.maximum(jnp.sum(weights), 1.0)
        mean = matmul(weights, excess) / total
        return mean, matmul(weights, (excess - mean) ** 2) / total**2

    (out, out_variance), (rest, rest_variance) = moments(removed), moments(survivors)
    apart = jnp.abs(out - rest) > CERTAIN * jnp.sqrt(out_variance + rest_variance)
    return apart | (jnp.sum(removed) < ENOUGH)
