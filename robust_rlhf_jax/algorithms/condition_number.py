"""Robust RLHF with a low relative condition number (paper: Algorithm 3)."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from robust_rlhf_jax.checks import check_epsilon, is_traced
from robust_rlhf_jax.estimators.confidence_set import calibrated_zeta, confidence_set, theory_zeta
from robust_rlhf_jax.estimators.regression import SUSPECT_WEIGHT
from robust_rlhf_jax.estimators.reward import robust_reward
from robust_rlhf_jax.oracles import RLSVI, Oracle
from robust_rlhf_jax.preferences import PreferenceData, check_preferences, random_split

from .pessimism import (
    DescentConfig,
    check_reference,
    minimise_pessimistically,
    pessimistic_solution,
    resolve_reference,
)
from .solution import Solution

ZETAS = ("calibrated", "theory")


class ConditionNumberConfig(eqx.Module):
    """`zeta`: radius of the confidence set in nats per pair, a number, "calibrated" or "theory" (`estimators`).

    `descent`: how the pessimistic objective is minimised. `reuse_data`: all pairs for both stages instead of the
    two-way split. `radius`: bound on ‖θ‖₂, None for the paper's √(Hd).
    """

    zeta: str | float | Float[Array, ""] = "calibrated"
    descent: DescentConfig = DescentConfig()
    reuse_data: bool = eqx.field(static=True, default=False)
    radius: float | Float[Array, ""] | None = None

    def __check_init__(self):
        check_zeta(self.zeta)


def check_zeta(zeta) -> None:
    """**Raises:** ValueError for an unknown name, or ζ < 0, which would leave out the estimate itself."""
    if isinstance(zeta, str):
        if zeta not in ZETAS:
            raise ValueError(f"zeta={zeta!r} is unknown: it is one of {', '.join(ZETAS)}, or a number.")
    elif not is_traced(zeta) and isinstance(zeta, int | float) and not zeta >= 0:
        raise ValueError(f"zeta={zeta} must not be negative: the estimate itself would lie outside the set.")


def condition_number(
    key: PRNGKeyArray,
    data: PreferenceData,
    epsilon: float | Float[Array, ""],
    *,
    oracle: Oracle | None = None,
    reference: Float[Array, "H p"] | None = None,
    config: ConditionNumberConfig | None = None,
) -> Solution:
    """Corruption-robust RLHF under partial coverage, by pessimism (paper: Algorithm 3, Theorem 4.1).

    Split D in two. D₁ → robust θ̂ and Θ(D₁) = {‖θ‖ ≤ √(Hd), likelihood ratio to θ̂ ≥ −ζ}. Minimise
    V̂(θ) − E_ref[φ(τ)]·θ over Θ(D₁) by projected subgradient descent (Algorithm 5), V̂ by `oracle` on D₂; the
    subgradient by Gaussian smoothing (Algorithm 6) or, ours, by differentiating the oracle. Plan at the average θ̄.

    **Arguments:** `epsilon` in [0, ½); `oracle`: RobRL, default `RLSVI(bonus="relative")`; `reference` [H, p]:
    E_ref[φ_h] of a reference policy (`expected_features`), default the robust mean over D₂: the behaviour itself.

    **Returns:** `Solution` (`theta` is θ̄) with diagnostics `zeta`, `rank`, `theta_estimate` (θ̂), `objective` at θ̄,
    `best_objective` seen, `oracle_calls`, `projection_solves`, `removed_mass`, `reward_status`, `descent_status`,
    `oracle_status`; `history_*` on request.

    **Raises:** ValueError for ε outside [0, ½), malformed data, a reference of another shape, too few pairs.
    """
    check_epsilon(epsilon)
    check_preferences(data)
    check_reference(reference, data)
    config = ConditionNumberConfig() if config is None else config
    oracle = RLSVI(bonus="relative") if oracle is None else oracle
    return _run(key, data, jnp.asarray(epsilon, data.features.dtype), oracle, reference, config)


@eqx.filter_jit
def _run(key, data, epsilon, oracle, reference, config) -> Solution:
    k_split, k_descend = jax.random.split(key)
    d1, d2 = (data,) * 2 if config.reuse_data else random_split(k_split, data, 2)
    radius = data.theta_dim**0.5 if config.radius is None else config.radius
    x = d1.differences()
    reward = robust_reward(x, x, d1.labels, epsilon, radius=radius)
    # Pairs that the filter took say next to nothing about where θ may lie either.
    weights = jnp.maximum(reward.survivors, SUSPECT_WEIGHT)
    zeta = _zeta(config.zeta, epsilon, reward.rank, jnp.sum(weights), data)
    allowed = confidence_set(x, d1.labels, reward.fit.theta, zeta, radius=radius, weights=weights)
    target = resolve_reference(reference, d2, epsilon)
    found = minimise_pessimistically(k_descend, d2, epsilon, oracle, allowed, target, config.descent)
    extra = {"zeta": zeta, "rank": reward.rank, "removed_mass": 1.0 - jnp.mean(reward.survivors)}
    return pessimistic_solution(data, found, reward.status, allowed, extra)


def _zeta(zeta, epsilon, rank, n_pairs, data):
    if isinstance(zeta, str) and zeta == "theory":
        return theory_zeta(epsilon, data.horizon, data.reward_dim, n_pairs)
    if isinstance(zeta, str):
        return calibrated_zeta(epsilon, rank, n_pairs)
    return jnp.asarray(zeta, epsilon.dtype)
