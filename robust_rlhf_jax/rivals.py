"""Rivals of the paper's algorithms: other people's robust reward estimates, then a plain planner."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from robust_rlhf_jax._iterate import worst_status
from robust_rlhf_jax.algorithms.solution import Solution
from robust_rlhf_jax.checks import check_epsilon
from robust_rlhf_jax.oracles import LSVI, Oracle
from robust_rlhf_jax.preferences import PreferenceData, check_preferences
from robust_rlhf_jax.rewards.protocol import RewardEstimator
from robust_rlhf_jax.rewards.registry import REWARD_ESTIMATORS


class RivalConfig(eqx.Module):
    """`radius`: bound on ‖θ‖₂, None for √(Hd)."""

    radius: float | Float[Array, ""] | None = None


def fit_then_plan(
    key: PRNGKeyArray,
    data: PreferenceData,
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

    **Raises:** ValueError for ε outside [0, ½), malformed or non-finite data, or an unknown name.
    """
    check_epsilon(epsilon)
    check_preferences(data)
    if isinstance(estimator, str) and estimator not in REWARD_ESTIMATORS:
        raise ValueError(f"estimator={estimator!r} is unknown: it is one of {', '.join(REWARD_ESTIMATORS)}.")
    chosen = REWARD_ESTIMATORS[estimator] if isinstance(estimator, str) else estimator
    oracle, config = LSVI() if oracle is None else oracle, RivalConfig() if config is None else config
    return _run(key, data, jnp.asarray(epsilon, data.features.dtype), chosen, oracle, config)


@eqx.filter_jit
def _run(key, data, epsilon, estimator, oracle, config) -> Solution:
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


def r3m(key, data, epsilon, *, oracle=None, config=None) -> Solution:
    """`fit_then_plan` with sparse offsets of single labels (R³M: Bukharin et al. 2024)."""
    return fit_then_plan(key, data, epsilon, estimator="r3m", oracle=oracle, config=config)


def cdpo(key, data, epsilon, *, oracle=None, config=None) -> Solution:
    """`fit_then_plan` with labels smoothed by ε (cDPO's loss: Mitchell 2023)."""
    return fit_then_plan(key, data, epsilon, estimator="cdpo", oracle=oracle, config=config)


def rdpo(key, data, epsilon, *, oracle=None, config=None) -> Solution:
    """`fit_then_plan` with the likelihood debiased for flips (rDPO's loss: Chowdhury, Kini & Natarajan 2024)."""
    return fit_then_plan(key, data, epsilon, estimator="rdpo", oracle=oracle, config=config)


def sever(key, data, epsilon, *, oracle=None, config=None) -> Solution:
    """`fit_then_plan` with pairs filtered by their gradients (Sever: Diakonikolas et al. 2019)."""
    return fit_then_plan(key, data, epsilon, estimator="sever", oracle=oracle, config=config)


def redescending(key, data, epsilon, *, oracle=None, config=None) -> Solution:
    """`fit_then_plan` with the density power divergence (Ghosh & Basu 2016); ε is not used by the reward."""
    return fit_then_plan(key, data, epsilon, estimator="redescending", oracle=oracle, config=config)


def confident_learning(key, data, epsilon, *, oracle=None, config=None) -> Solution:
    """`fit_then_plan` with likely label errors pruned (Northcutt et al. 2021); ε is not used by the reward."""
    return fit_then_plan(key, data, epsilon, estimator="confident_learning", oracle=oracle, config=config)
