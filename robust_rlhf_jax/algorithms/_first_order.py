"""Robust RLHF with a first-order oracle (paper: Algorithm 4, sign corrected)."""

import equinox as eqx
from jaxtyping import Array, Float, PRNGKeyArray

from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.oracles import Oracle, PrimalDual
from robust_rlhf_jax.preferences import PreferenceData

from .checked_input import check_oracle, checked
from .pessimism import DescentConfig, Phase, check_radius, check_zeta, robust_pessimism
from .pessimism_objective import require_warm
from .solution import Solution
from .table_evidence import solve_asked


class FirstOrderConfig(eqx.Module):
    """`zeta`, `reuse_data`, `radius`, `ask_table`: as in `ConditionNumberConfig`; `descent`: with `gradient="oracle"`.

    `warm_steps` T of the oracle's game within the descent, where each game begins at the end of the last one
    (`descent.warm_start`; ours: the paper starts afresh every time); the oracle's own `steps` are for the last plan.
    So short a game may send the descent astray: after it come `polish_steps` more, of `polish_warm_steps` T each, from
    its average (with warm starts; 0: none).

    **Example:**

    >>> from robust_rlhf_jax.algorithms import DescentConfig, FirstOrderConfig
    >>> config = FirstOrderConfig(descent=DescentConfig(gradient="oracle", steps=20, warm_start=True), polish_steps=0)
    >>> config.warm_steps, config.descent.steps
    (100, 20)
    """

    zeta: str | float | Float[Array, ""] = "explained"
    descent: DescentConfig = DescentConfig(gradient="oracle", steps=50, warm_start=True)
    warm_steps: int = eqx.field(static=True, default=100)
    polish_steps: int = eqx.field(static=True, default=20)
    polish_warm_steps: int = eqx.field(static=True, default=400)
    reuse_data: bool = eqx.field(static=True, default=False)
    radius: float | Float[Array, ""] | None = None
    ask_table: bool = eqx.field(static=True, default=True)

    def __check_init__(self):
        check_zeta(self.zeta)
        check_radius(self.radius)
        for name, least in (("warm_steps", 1), ("polish_warm_steps", 1), ("polish_steps", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name}={getattr(self, name)}: give {least} or more.")
        if self.descent.gradient != "oracle":
            raise ValueError(f'gradient={self.descent.gradient!r}: first_order takes gradient="oracle".')


def first_order(
    key: PRNGKeyArray,
    data: Pairs | PreferenceData,
    epsilon: float | Float[Array, ""],
    *,
    oracle: Oracle | None = None,
    reference: Float[Array, "H p"] | None = None,
    config: FirstOrderConfig | None = None,
) -> Solution:
    """Corruption-robust RLHF by pessimism with an oracle that gives subgradients (paper: Algorithm 4, Theorem 5.1).

    As Algorithm 3, but θ_{t+1} = Proj(θ_t − η(v̂_t − E_ref[φ(τ)])) with the oracle's v̂_t ∈ ∂V★(θ_t), one call a step.
    Minus: the box prints plus, which is not the gradient of V★(θ) − E_ref[φ]·θ.

    **Arguments:** as `condition_number`; `oracle`: default `PrimalDual()`, whose policy is a `SoftmaxMixture`.

    **Returns:** `Solution` with the diagnostics of `condition_number`.

    **Raises:** ValueError for what is not one key, ε outside [0, ½), malformed data, a reference of another shape, too
    few pairs, or what is no oracle, or one without subgradients.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import algorithms, attacks, sample_preferences, worlds
    >>> mdp, behaviour = worlds.partial_coverage_mdp(jax.random.key(0))
    >>> clean = sample_preferences(jax.random.key(1), mdp, 1000, behaviour=behaviour)
    >>> bad = attacks.praise_rare(jax.random.key(2), clean, 0.1, mdp)
    >>> found = algorithms.first_order(jax.random.key(3), bad, 0.1)
    >>> int(found.diagnostics["oracle_calls"]), float(worlds.normalised_gap(mdp, found.policy)) < 0.1
    (71, True)
    """
    data, level = checked(key, data, epsilon, reference)
    config = FirstOrderConfig() if config is None else config
    oracle = PrimalDual() if oracle is None else oracle
    check_oracle(oracle)
    return solve_asked(data, config, lambda asked, config: _run(key, asked, level, oracle, reference, config))


@eqx.filter_jit
def _run(
    key: PRNGKeyArray,
    data: PreferenceData,
    epsilon: Float[Array, ""],
    oracle: Oracle,
    reference: Float[Array, "H p"] | None,
    config,
) -> Solution:
    if not config.descent.warm_start:
        return robust_pessimism(key, data, epsilon, reference, config, oracle)
    phases = _phases(config)
    game = require_warm(oracle).shortened(*(phase.oracle_steps for phase in phases if phase.oracle_steps))
    return robust_pessimism(key, data, epsilon, reference, config, game, oracle, phases)


def _phases(config: FirstOrderConfig) -> tuple[Phase, ...]:
    """The descent and, if any, its polish: the steps of each, and the iterations of every game in it."""
    descent = Phase(config.descent.steps, config.warm_steps)
    polish = Phase(config.polish_steps, config.polish_warm_steps)
    return (descent, polish) if polish.steps else (descent,)
