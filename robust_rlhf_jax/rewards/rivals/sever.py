"""Filtering by gradients: Sever of Diakonikolas, Kamath, Kane, Li, Steinhardt & Stewart 2019."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from robust_rlhf_jax._iterate import worst_status
from robust_rlhf_jax.checks import check_labels
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.kernels.quantile import keep_top
from robust_rlhf_jax.kernels.spectral import linear_scores
from robust_rlhf_jax.likelihood.trimmed import plain_mle
from robust_rlhf_jax.rewards.protocol import Entry, RewardEstimate, surprise

ROUNDS = 4


def sever(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: Float[Array, ""],
    *,
    radius: float | Float[Array, ""],
    rounds: int = ROUNDS,
) -> RewardEstimate:
    """Fit, score each pair by its gradient along the top singular direction of all, remove, again (Sever, 2019).

    g_n = o_nσ(−m_n)x_n; τ_n = ⟨v, g_n − ḡ⟩², v the top eigenvector of the gradients' covariance. Each of `rounds` = 4
    rounds takes the εn/2 pairs of largest τ_n, 2εn in all, as much as our own filters may take; maximum
    likelihood on the rest. At ε = 0 that is maximum likelihood. Suspicion: the label's surprise, of removed pairs
    raised above that of all others.
    """
    check_labels(labels)
    dtype = x.dtype
    return _sever(x, labels.astype(dtype), jnp.asarray(epsilon, dtype), jnp.asarray(radius, dtype), rounds)


@eqx.filter_jit
def _sever(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: Float[Array, ""],
    radius: Float[Array, ""],
    rounds: int,
) -> RewardEstimate:
    fit = partial(plain_mle, x, labels, radius=radius)

    def remove(weights, _):
        found = fit(weights)
        missed = labels * jax.nn.sigmoid(-labels * matmul(x, found.theta))
        scores = linear_scores(x * missed[:, None], weights)[0]
        left = jnp.maximum(jnp.sum(weights) - 0.5 * epsilon * len(x), 0.0)
        return keep_top(-scores, weights, left), found.status

    weights, statuses = jax.lax.scan(remove, jnp.ones_like(labels), length=rounds)
    last = fit(weights)
    loss = surprise(last.theta, x, labels)
    status = worst_status(last.status, *statuses)
    return RewardEstimate(last.theta, weights, loss + (1.0 - weights) * jnp.max(loss), status)


ENTRIES = [Entry(sever, "Sever", "#4a2c1a", "pairs filtered by their gradients (Diakonikolas et al. 2019)")]
