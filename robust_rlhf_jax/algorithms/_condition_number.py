"""Robust RLHF with a low relative condition number (paper: Algorithm 3)."""

import equinox as eqx
from jaxtyping import Array, Float, PRNGKeyArray

from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.oracles import RLSVI, Oracle
from robust_rlhf_jax.preferences import PreferenceData

from .checked_input import check_oracle, checked
from .pessimism import DescentConfig, check_radius, check_zeta, robust_pessimism
from .solution import Solution
from .table_evidence import solve_asked


class ConditionNumberConfig(eqx.Module):
    """`zeta`: the confidence set. "explained" (ours): rewards that fit the pairs that no plausible explanation of the
    data disputes; or the paper's likelihood ratio with a radius in nats per pair: a number, "calibrated" or "theory".

    `descent`: how the pessimistic objective is minimised. `reuse_data`: all pairs for both stages instead of the
    two-way split. `radius`: bound on ‖θ‖₂, None for the paper's √(Hd). `ask_table`: leave out the pairs that the
    table contradicts (ours), before all else.

    **Example:**

    >>> from robust_rlhf_jax.algorithms import ConditionNumberConfig, DescentConfig
    >>> config = ConditionNumberConfig(zeta="calibrated", descent=DescentConfig(gradient="autodiff", steps=50))
    >>> config.zeta, config.descent.steps, config.ask_table
    ('calibrated', 50, True)
    """

    zeta: str | float | Float[Array, ""] = "explained"
    descent: DescentConfig = DescentConfig()
    reuse_data: bool = eqx.field(static=True, default=False)
    radius: float | Float[Array, ""] | None = None
    ask_table: bool = eqx.field(static=True, default=True)

    def __check_init__(self):
        check_zeta(self.zeta)
        check_radius(self.radius)


def condition_number(
    key: PRNGKeyArray,
    data: Pairs | PreferenceData,
    epsilon: float | Float[Array, ""],
    *,
    oracle: Oracle | None = None,
    reference: Float[Array, "H p"] | None = None,
    config: ConditionNumberConfig | None = None,
) -> Solution:
    """Corruption-robust RLHF under partial coverage, by pessimism (paper: Algorithm 3, Theorem 4.3).

    Pairs whose features are not the table's give way to copies of others (ours: `preferences.ask_table`).
    Split D in two. D₁ → robust θ̂ and Θ(D₁) = {‖θ‖ ≤ √(Hd), likelihood ratio to θ̂ ≥ −ζ on the pairs that the
    filter and the trimming left}. Minimise V̂(θ) − E_ref[φ(τ)]·θ over Θ(D₁) by projected subgradient descent
    (Algorithm 5), V̂ by `oracle` on D₂; the subgradient by Gaussian smoothing (Algorithm 6) or, ours, by
    differentiating the oracle. Plan at the average θ̄.

    **Arguments:** `epsilon` in [0, ½); `oracle`: RobRL, default `RLSVI(bonus="relative")`; `reference` [H, p]:
    E_ref[φ_h] of a reference policy (`expected_features`), default the robust mean over D₂: the behaviour itself.

    **Returns:** `Solution` (`theta` is θ̄) with diagnostics `zeta`, `rank`, `theta_estimate` (θ̂), `objective` at θ̄,
    `best_objective` seen, `oracle_calls`, `projection_solves`, `removed_mass`, `off_table` (share of pairs that the
    table contradicts), `reward_status`, `descent_status`, `oracle_status`; `history_*` on request.

    **Raises:** ValueError for what is not one key, ε outside [0, ½), malformed data, a reference of another shape, what
    is no oracle, or too few pairs.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import algorithms, attacks, sample_preferences, worlds
    >>> mdp, behaviour = worlds.partial_coverage_mdp(jax.random.key(0))
    >>> clean = sample_preferences(jax.random.key(1), mdp, 1000, behaviour=behaviour)
    >>> bad = attacks.praise_rare(jax.random.key(2), clean, 0.1, mdp)
    >>> found = algorithms.condition_number(jax.random.key(3), bad, 0.1)
    >>> int(found.diagnostics["oracle_calls"]), float(worlds.normalised_gap(mdp, found.policy)) < 0.1
    (3301, True)
    """
    data, level = checked(key, data, epsilon, reference)
    config = ConditionNumberConfig() if config is None else config
    oracle = RLSVI(bonus="relative") if oracle is None else oracle
    check_oracle(oracle)
    return solve_asked(data, config, lambda asked, config: _run(key, asked, level, reference, config, oracle))


_run = eqx.filter_jit(robust_pessimism)
