"""The robust reward estimate that Algorithms 1, 3 and 4 start from: whiten, filter, trim."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from robust_rlhf_jax._iterate import worst_status
from robust_rlhf_jax.checks import as_epsilon, as_floats
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.kernels.units import typical_powers
from robust_rlhf_jax.likelihood.trimmed import TrimmedFit, trimmed_mle
from robust_rlhf_jax.moments import robust_covariance
from robust_rlhf_jax.moments.influence import bounded_rows, floored_weights
from robust_rlhf_jax.moments.mean import estimated_span_filter
from robust_rlhf_jax.row_order import check_rows

# A difference with more than this share of its length off the identifiable subspace is suspect.
OFF_SUBSPACE = 1e-2


class FilteredReward(eqx.Module):
    """θ̂ and what its stages saw.

    `fit`: the trimmed fit (`fit.theta` [k] is the estimate); `survivors` [n]: the filter's weights; `covariance`
    [k, k] and its `rank`; `suspicion` [n]: squared whitened length of each difference over the rank; `status`.

    **Example:**

    >>> import jax, jax.numpy as jnp
    >>> from robust_rlhf_jax import rewards
    >>> x = jax.random.normal(jax.random.key(0), (100, 2))
    >>> found = rewards.robust_reward(x, x, jnp.sign(x[:, 0]), jnp.float32(0.1), radius=5.0)
    >>> found.covariance.shape, int(found.rank), found.suspicion.shape
    ((2, 2), 2, (100,))
    """

    fit: TrimmedFit
    survivors: Float[Array, " n"]
    covariance: Float[Array, "k k"]
    rank: Int[Array, ""]
    suspicion: Float[Array, " n"]
    status: Int[Array, ""]


def robust_reward(
    covariance_rows: Float[Array, "m k"],
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: Float[Array, ""],
    *,
    radius: float | Float[Array, ""],
    robust_start: bool = True,
    doubt: float | Float[Array, ""] = 0.0,
) -> FilteredReward:
    """Algorithm 1, first two thirds: Σ̂ from one sample, filter and trimmed likelihood on another.

    Σ̂ = robust second moment of `covariance_rows`; x whitened by it and filtered; Algorithm 2 on x with the
    filter's weights as capacities. Filtered rows keep a thousandth of their weight (far ones less, `floored_weights`),
    so that a direction which only they cover stays identified. Only the filter sees whitened rows: the likelihood is in
    terms of x. `doubt`: share of honest rows that the filter may lose beyond its budget 2ε (`filter_mean`).

    **Example:**

    >>> import jax, jax.numpy as jnp
    >>> from robust_rlhf_jax.rewards import robust_reward
    >>> x = jax.random.normal(jax.random.key(0), (100, 2))
    >>> labels = jnp.sign(x[:, 0]).at[:5].set(-1.0)
    >>> found = robust_reward(x, x.at[:5].set(jnp.array([50.0, 0.0])), labels, jnp.float32(0.1), radius=5.0)
    >>> bool(found.fit.theta[0] > 0), float(found.survivors[:5].max())
    (True, 0.0)
    """
    check_rows(x=x, labels=labels)
    covariance_rows, x = as_floats(covariance_rows), as_floats(x)
    epsilon = as_epsilon(epsilon, x.dtype)
    # The filter in columns of typical size 1, so that no unit is lost in rounding.
    size = typical_powers(covariance_rows)
    covariance_rows, rows = (bounded_rows(part, epsilon) / size for part in (covariance_rows, x))
    moments = robust_covariance(covariance_rows, epsilon, assume_centered=True, doubt=doubt)
    # Σ̂ is known to a relative O(ε log 1/ε) only: a filter that asked for more would eat clean rows.
    slack = -2.0 * epsilon * jnp.log(jnp.maximum(epsilon, 1e-6))
    filtered = estimated_span_filter(rows, epsilon, moments.covariance, slack=slack, doubt=doubt)
    whitened = matmul(rows, moments.whitener)
    off = jnp.sum((rows - matmul(whitened, moments.colourer)) ** 2, axis=1)
    leaks = (off > OFF_SUBSPACE**2 * jnp.sum(rows**2, axis=1)) & (epsilon > 0)
    survivors = jnp.where(leaks, 0.0, filtered.weights)
    fit = trimmed_mle(
        x,
        labels,
        epsilon,
        radius=radius,
        weights=floored_weights(x, survivors, epsilon),
        robust_start=robust_start,
    )
    return FilteredReward(
        fit,
        survivors,
        moments.covariance * size[:, None] * size,
        moments.rank,
        jnp.sum(whitened**2, axis=1) / jnp.maximum(moments.rank, 1),
        worst_status(moments.status, filtered.status, fit.status),
    )
