"""Plain RLHF: maximum likelihood and least-squares value iteration, the baseline that trusts its data."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from robust_rlhf_jax._iterate import worst_status
from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.likelihood.trimmed import plain_mle
from robust_rlhf_jax.oracles import LSVI, Oracle
from robust_rlhf_jax.preferences import PreferenceData

from .checked_input import check_oracle, checked
from .solution import Solution


class StandardConfig(eqx.Module):
    """`radius`: bound on ‖θ‖₂, None for √(Hd).

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import algorithms, sample_preferences, worlds
    >>> data = sample_preferences(jax.random.key(0), worlds.chain_mdp(), 200)
    >>> config = algorithms.StandardConfig(radius=1.0)
    >>> found = algorithms.standard(jax.random.key(1), data, 0.0, config=config)
    >>> round(float((found.theta**2).sum()), 3)
    1.0
    """

    radius: float | Float[Array, ""] | None = None


def standard(
    key: PRNGKeyArray,
    data: Pairs | PreferenceData,
    epsilon: float | Float[Array, ""],
    *,
    oracle: Oracle | None = None,
    config: StandardConfig | None = None,
) -> Solution:
    """Maximum-likelihood reward on all pairs, then `oracle` (default: plain LSVI) on all pairs; the table is not asked.

    ε is taken so that all algorithms are called alike, and ignored.

    **Returns:** `Solution` with diagnostics `rank`, `log_likelihood`, `gradient_norm`, `reward_status`,
    `oracle_status`.

    **Raises:** ValueError for what is not one key, ε outside [0, ½), malformed or non-finite data, or what
    is no oracle.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import algorithms, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> data = sample_preferences(jax.random.key(0), mdp, 200)
    >>> found = algorithms.standard(jax.random.key(1), data, 0.0)
    >>> float(worlds.normalised_gap(mdp, found.policy)) < 0.05
    True
    """
    data, _ = checked(key, data, epsilon)
    config = StandardConfig() if config is None else config
    oracle = LSVI() if oracle is None else oracle
    check_oracle(oracle)
    return _run(key, data, oracle, config)


@eqx.filter_jit
def _run(key: PRNGKeyArray, data: PreferenceData, oracle: Oracle, config) -> Solution:
    radius = data.theta_dim**0.5 if config.radius is None else config.radius
    nothing = jnp.zeros((), data.features.dtype)
    fit = plain_mle(data.differences(), data.labels, radius=radius)
    theta = data.per_step(fit.theta)
    answer = oracle.solve(oracle.prepare(data, nothing, key=key), theta)
    diagnostics = {
        "rank": fit.rank,
        "log_likelihood": fit.objective,
        "gradient_norm": fit.gradient_norm,
        "reward_status": fit.status,
        "oracle_status": answer.status,
    }
    return Solution(answer.policy, theta, answer.value, worst_status(fit.status, answer.status), diagnostics)
