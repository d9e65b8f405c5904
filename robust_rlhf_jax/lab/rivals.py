"""Rivals of the paper's algorithms: other people's robust reward estimates, then a plain planner.

`RIVALS` by name; each is called like an algorithm: `rivals.sever(key, data, epsilon)`.

A new one is a file in `rewards/rivals/`.
"""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from robust_rlhf_jax._iterate import worst_status
from robust_rlhf_jax.algorithms.checked_input import check_oracle
from robust_rlhf_jax.algorithms.solution import Solution
from robust_rlhf_jax.checks import check_epsilon, check_key
from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.oracles import LSVI, Oracle
from robust_rlhf_jax.preferences import PreferenceData, with_table
from robust_rlhf_jax.rewards.protocol import RewardEstimator
from robust_rlhf_jax.rewards.registry import ESTIMATORS, named

__all__ = ["RIVALS", "RivalConfig", "fit_then_plan", "planner"]


class RivalConfig(eqx.Module):
    """`radius`: bound on ‖θ‖₂, None for √(Hd).

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import rivals, sample_preferences, worlds
    >>> data = sample_preferences(jax.random.key(0), worlds.chain_mdp(), 200)
    >>> found = rivals.cdpo(jax.random.key(1), data, 0.1, config=rivals.RivalConfig(radius=1.0))
    >>> float((found.theta**2).sum()) < 1.001
    True
    """

    radius: float | Float[Array, ""] | None = None


def fit_then_plan(
    key: PRNGKeyArray,
    data: Pairs | PreferenceData,
    epsilon: float | Float[Array, ""],
    *,
    estimator: str | RewardEstimator,
    oracle: Oracle | None = None,
    config: RivalConfig | None = None,
) -> Solution:
    """A reward by `estimator` on all pairs, then `oracle` (default: plain LSVI) on all pairs; the table is not asked.

    **Arguments:** `epsilon` in [0, ½): given to both; `estimator`: a name in `REWARD_ESTIMATORS` or a function that is
    called like those, which compiles once for each function.

    **Returns:** `Solution` with diagnostics `removed_mass` (one minus the mean weight of the pairs in the reward's
    fit), `reward_status`, `oracle_status`.

    **Raises:** ValueError for what is not one key, ε outside [0, ½), malformed or non-finite data, an unknown name, or
    what is no oracle.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import sample_preferences, worlds
    >>> from robust_rlhf_jax.lab.rivals import fit_then_plan
    >>> data = sample_preferences(jax.random.key(0), worlds.chain_mdp(), 200)
    >>> found = fit_then_plan(jax.random.key(1), data, 0.1, estimator="cdpo")
    >>> found.theta.shape, round(float(found.diagnostics["removed_mass"]), 3)
    ((10, 10), 0.0)
    """
    check_key(key)
    check_epsilon(epsilon)
    data = with_table(data)
    chosen = named(estimator, epsilon).estimate if isinstance(estimator, str) else estimator
    oracle, config = LSVI() if oracle is None else oracle, RivalConfig() if config is None else config
    check_oracle(oracle)
    return _run(key, data, jnp.asarray(epsilon, data.features.dtype), chosen, oracle, config)


@eqx.filter_jit
def _run(
    key: PRNGKeyArray,
    data: PreferenceData,
    epsilon: Float[Array, ""],
    estimator: RewardEstimator,
    oracle: Oracle,
    config: RivalConfig,
) -> Solution:
    radius = data.theta_dim**0.5 if config.radius is None else config.radius
    fit = estimator(data.differences(), data.labels, epsilon, radius=radius)
    theta = data.per_step(fit.theta)
    answer = oracle.solve(oracle.prepare(data, epsilon, key=key), theta)
    diagnostics = {
        "removed_mass": 1.0 - jnp.mean(fit.weights),
        "reward_status": fit.status,
        "oracle_status": answer.status,
    }
    return Solution(answer.policy, theta, answer.value, worst_status(fit.status, answer.status), diagnostics)


def planner(name: str) -> Callable[..., Solution]:
    """`fit_then_plan` with the estimator of this name, called like every algorithm.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import sample_preferences, worlds
    >>> from robust_rlhf_jax.lab.rivals import planner
    >>> mdp = worlds.chain_mdp()
    >>> data = sample_preferences(jax.random.key(0), mdp, 200)
    >>> found = planner("cdpo")(jax.random.key(1), data, 0.1)
    >>> float(worlds.normalised_gap(mdp, found.policy)) < 0.05
    True
    """

    def plan(
        key: PRNGKeyArray,
        data: Pairs | PreferenceData,
        epsilon: float | Float[Array, ""],
        *,
        oracle: Oracle | None = None,
        config: RivalConfig | None = None,
    ) -> Solution:
        return fit_then_plan(key, data, epsilon, estimator=name, oracle=oracle, config=config)

    plan.__name__ = plan.__qualname__ = name
    plan.__doc__ = f"`fit_then_plan` with {ESTIMATORS[name].line}."
    return plan


RIVALS = {name: planner(name) for name, entry in ESTIMATORS.items() if entry.rival}


def __getattr__(name: str) -> Callable[..., Solution]:
    """`rivals.sever` is `RIVALS["sever"]`."""
    if name in RIVALS:
        return RIVALS[name]
    raise AttributeError(f"There is no rival {name!r}: they are {', '.join(RIVALS)}.")


def __dir__():
    return [*globals(), *RIVALS]
