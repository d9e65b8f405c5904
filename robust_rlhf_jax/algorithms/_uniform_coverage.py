"""Robust RLHF with uniform coverage (paper: Algorithm 1)."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from robust_rlhf_jax._iterate import worst_status
from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.oracles import RLSVI, Oracle
from robust_rlhf_jax.preferences import PreferenceData, random_split
from robust_rlhf_jax.rewards.filter_and_trim import robust_reward

from .checked_input import check_oracle, checked
from .solution import Solution
from .table_evidence import solve_asked


class UniformCoverageConfig(eqx.Module):
    """`reuse_data`: all pairs for every stage instead of the three-way split that the analysis asks for.

    `radius`: bound on ‖θ‖₂, None for the paper's √(Hd). `robust_start`: also start Algorithm 2 from the
    row-normalised fit. `ask_table`: leave out the pairs that the table contradicts (ours), before all else.

    **Example:**

    >>> from robust_rlhf_jax.algorithms import UniformCoverageConfig
    >>> UniformCoverageConfig(reuse_data=True, radius=10.0).ask_table
    True
    """

    reuse_data: bool = eqx.field(static=True, default=False)
    radius: float | Float[Array, ""] | None = None
    robust_start: bool = eqx.field(static=True, default=True)
    ask_table: bool = eqx.field(static=True, default=True)


def uniform_coverage(
    key: PRNGKeyArray,
    data: Pairs | PreferenceData,
    epsilon: float | Float[Array, ""],
    *,
    oracle: Oracle | None = None,
    config: UniformCoverageConfig | None = None,
) -> Solution:
    """Corruption-robust RLHF when the data cover every direction (paper: Algorithm 1, Theorem 3.3).

    Pairs whose features are not the table's give way to copies of others (ours: `preferences.ask_table`).
    Split D in three. D₁ → robust Σ̂ of the differences. D₂ whitened by Σ̂ and filtered, then the trimmed
    likelihood (Algorithm 2) on the survivors → θ̂. D₃ with reward φᵀθ̂ → `oracle` → policy.

    **Arguments:** `epsilon` in [0, ½): the fraction of pairs that may be corrupt; `oracle`: RobRL, default `RLSVI()`.

    **Returns:** `Solution` with diagnostics `rank` (identifiable dimensions of θ), `trimmed_log_likelihood`,
    `gradient_norm`, `rounds`, `removed_mass` (share of D₂'s weight that the filter took), `off_table` (share of pairs
    that the table contradicts), `reward_status`, `oracle_status`.

    **Raises:** ValueError for what is not one key, ε outside [0, ½), malformed or non-finite data, what is no oracle,
    or too few pairs to split.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import algorithms, attacks, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> clean = sample_preferences(jax.random.key(0), mdp, 2000)
    >>> bad = attacks.push_features(jax.random.key(1), clean, 0.1, mdp)
    >>> found = algorithms.uniform_coverage(jax.random.key(2), bad, 0.1)
    >>> round(float(found.diagnostics["off_table"]), 3), float(worlds.normalised_gap(mdp, found.policy)) < 0.05
    (0.1, True)
    """
    data, level = checked(key, data, epsilon)
    config = UniformCoverageConfig() if config is None else config
    oracle = RLSVI() if oracle is None else oracle
    check_oracle(oracle)
    return solve_asked(data, config, lambda asked, config: _run(key, asked, level, oracle, config))


@eqx.filter_jit
def _run(
    key: PRNGKeyArray,
    data: PreferenceData,
    epsilon: Float[Array, ""],
    oracle: Oracle,
    config: UniformCoverageConfig,
) -> Solution:
    k_split, k_oracle = jax.random.split(key)
    d1, d2, d3 = (data,) * 3 if config.reuse_data else random_split(k_split, data, 3)
    radius = data.theta_dim**0.5 if config.radius is None else config.radius
    options = {"radius": radius, "robust_start": config.robust_start}
    reward = robust_reward(d1.differences(), d2.differences(), d2.labels, epsilon, **options)
    theta = data.per_step(reward.fit.theta)
    answer = oracle.solve(oracle.prepare(d3, epsilon, key=k_oracle), theta)
    diagnostics = {
        "rank": reward.rank,
        "trimmed_log_likelihood": reward.fit.objective,
        "gradient_norm": reward.fit.gradient_norm,
        "rounds": reward.fit.rounds,
        "removed_mass": 1.0 - jnp.mean(reward.survivors),
        "reward_status": reward.status,
        "oracle_status": answer.status,
    }
    status = worst_status(reward.status, answer.status)
    return Solution(answer.policy, theta, answer.value, status, diagnostics)
