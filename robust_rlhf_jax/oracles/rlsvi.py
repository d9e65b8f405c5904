"""R-LSVI: robust least-squares value iteration (Zhang, Chen, Zhu & Sun 2022)."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from robust_rlhf_jax._iterate import Status, worst_status
from robust_rlhf_jax.checks import are_chances, check_positive, is_traced
from robust_rlhf_jax.kernels.linalg import einsum, pseudo_inverse_root
from robust_rlhf_jax.kernels.regression import huber_mean, huber_multiple
from robust_rlhf_jax.module import Module
from robust_rlhf_jax.moments.regression import RegressionDesign, prepare_design
from robust_rlhf_jax.preferences import PreferenceData

from .backward_induction import backward_induction, rewards_from
from .base import OracleResult
from .transitions import fresh_folds, initial_state_weights, transitions_per_step


class RobustTransitions(eqx.Module):
    """What R-LSVI keeps of a data set: filtered designs, next states and bonuses per step, initial states.

    Pooled data have one design for all steps of the plan.
    """

    designs: RegressionDesign
    following: Int[Array, "H n"]
    bonus: Float[Array, "H S A"]
    initial: Float[Array, " S"]
    initial_multiple: Float[Array, ""]
    table: Float[Array, "S A d"]
    reward_table: Float[Array, "S A p"]
    status: Int[Array, ""]


class RLSVI(Module):
    """Backward induction with robust regression and an optional pessimism bonus.

    ŵ_h = robust least squares of V̂_{h+1}(s') on φ; Q̂_h = clip(r_h + φᵀŵ_h − Γ_h). The covariates are filtered once in
    `prepare`; `solve` only clips residuals. Differentiable in θ with the robust weights as constants: by
    Danskin's theorem the derivative of `value` estimates E_π̂[φ] (ours, not in the paper).

    **Arguments:** `bonus`: "none" (uniform coverage) or "relative" (relative condition number):
    Γ_h = bonus_scale·c·‖φ‖_{Λ⁻¹}, Λ = (3/5)(E[φφᵀ] + (ε+λ)I), c = H√ε + H·d/√n + 2H√d·√(ε+λ). The theory's
    constants saturate the clip at practical sizes, hence `bonus_scale`. `ridge` is λ. `fresh_data`: disjoint
    pairs for every step as in the analysis; the default reuses all. `initial` [S]: the known ρ, else the data's
    `planning_start`, else the Huber mean of V̂_1 over the first states in the data, which may be corrupt too.

    **Raises:** ValueError for another `bonus`, a negative `bonus_scale` or `ridge`, or `initial`
    that is not a distribution.

    **Example:**

    >>> import jax, jax.numpy as jnp
    >>> from robust_rlhf_jax import attacks, oracles, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> clean = sample_preferences(jax.random.key(0), mdp, 200)
    >>> bad = attacks.corrupt_transitions(jax.random.key(1), clean, 0.1, mdp)
    >>> oracle = oracles.RLSVI()
    >>> found = oracle.solve(oracle.prepare(bad, jnp.float32(0.1), key=jax.random.key(2)), mdp.theta)
    >>> float(worlds.normalised_gap(mdp, found.policy)) < 0.05
    True
    """

    bonus: Literal["none", "relative"] = eqx.field(static=True, default="none")
    bonus_scale: float | Float[Array, ""] = 0.01
    ridge: float | Float[Array, ""] = 1e-4
    fresh_data: bool = eqx.field(static=True, default=False)
    initial: Float[Array, " S"] | None = None

    def __check_init__(self):
        if self.bonus not in ("none", "relative"):
            raise ValueError(f'bonus={self.bonus!r} is unknown: it is "none" or "relative".')
        check_positive(self.bonus_scale, "bonus_scale", or_zero=True)
        check_positive(self.ridge, "ridge", or_zero=True)
        if self.initial is None or is_traced(self.initial):
            return
        if np.ndim(self.initial) != 1 or not are_chances(self.initial):
            raise ValueError("initial is not a distribution [S]: its chances must be ≥ 0 and sum to 1.")

    def prepare(
        self, data: PreferenceData, epsilon: Float[Array, ""], *, key: PRNGKeyArray
    ) -> RobustTransitions:
        """**Raises:** ValueError if `initial` is of another number of states than the data."""
        epsilon = jnp.asarray(epsilon, data.features.dtype)
        n_states = len(data.state_features)
        if self.initial is not None and jnp.shape(self.initial) != (n_states,):
            raise ValueError(
                f"initial has shape {jnp.shape(self.initial)}: the data have {n_states} states, give one chance each."
            )
        phi, following = fresh_folds(key, data) if self.fresh_data else transitions_per_step(data)
        designs = jax.vmap(lambda p: prepare_design(p, epsilon))(phi)
        known = data.planning_start if self.initial is None else self.initial
        return RobustTransitions(
            designs,
            following,
            self._bonus(designs, data.state_features, epsilon, data.plan_steps),
            initial_state_weights(data) if known is None else known,
            huber_multiple(epsilon if known is None else jnp.zeros_like(epsilon)),
            data.state_features,
            data.reward_lookup,
            worst_status(*designs.status),
        )

    def solve(self, prepared: RobustTransitions, theta: Float[Array, "H p"]) -> OracleResult:
        rewards = rewards_from(prepared.reward_table, theta)

        def fit(regression, next_value):
            design, following = regression
            return design.fit(next_value[following])

        value, policy = backward_induction(
            (prepared.designs, prepared.following), fit, prepared.table, rewards, prepared.bonus
        )
        total = huber_mean(value, prepared.initial, prepared.initial_multiple)
        status = jnp.where(jnp.isfinite(total), prepared.status, Status.NONFINITE.array())
        return OracleResult(total, policy, status)

    def _bonus(
        self, designs: RegressionDesign, table: Float[Array, "S A d"], epsilon: Float[Array, ""], horizon: int
    ) -> Float[Array, "H S A"]:
        own, dim, n = designs.columns.shape
        if self.bonus == "none":
            return jnp.zeros((own, *table.shape[:2]), table.dtype)
        level = epsilon + self.ridge
        constant = horizon * (jnp.sqrt(epsilon) + dim / n**0.5 + 2 * (dim * level) ** 0.5)
        inflated = 0.6 * (designs.second_moment + level * jnp.eye(dim, dtype=table.dtype))
        root_inverse = jax.vmap(lambda m: pseudo_inverse_root(m)[0])(inflated)
        norms = jnp.linalg.norm(einsum("hde,sae->hsad", root_inverse, table), axis=-1)
        return self.bonus_scale * constant * norms
