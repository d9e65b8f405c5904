"""Plain least-squares value iteration: the oracle that trusts its data."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.checks import check_positive
from robust_rlhf_jax.kernels.lapack import cholesky, cholesky_solve
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.module import Module
from robust_rlhf_jax.preferences import PreferenceData

from .backward_induction import backward_induction, rewards_from
from .base import OracleResult
from .transitions import initial_state_weights, transitions_per_step


class FittedModel(eqx.Module):
    """Least-squares transition measures: φᵀ`measures`[h] estimates P_h(·|s,a); one for all steps if data are pooled."""

    measures: Float[Array, "H d S"]
    initial: Float[Array, " S"]
    table: Float[Array, "S A d"]
    reward_table: Float[Array, "S A p"]


class LSVI(Module):
    """Least squares of V̂_{h+1}(s') on φ with a ridge (Jin et al. 2020, without bonus); differentiable in θ.

    Since ŵ_h = (ΦᵀΦ + nλI)⁻¹ Σ_i φ_iV̂(s'_i) is linear in V̂, the N samples collapse to a [d, S] matrix per step in
    `prepare`, and `solve` no longer depends on N.

    **Raises:** ValueError for a negative `ridge`.

    **Example:**

    >>> import jax, jax.numpy as jnp
    >>> from robust_rlhf_jax import oracles, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> data = sample_preferences(jax.random.key(0), mdp, 200)
    >>> oracle = oracles.LSVI()
    >>> found = oracle.solve(oracle.prepare(data, jnp.float32(0.0), key=jax.random.key(1)), mdp.theta)
    >>> float(worlds.normalised_gap(mdp, found.policy)) < 0.05
    True
    """

    ridge: float = 1e-6

    def __check_init__(self):
        check_positive(self.ridge, "ridge", or_zero=True)

    def prepare(self, data: PreferenceData, epsilon: Float[Array, ""], *, key: PRNGKeyArray) -> FittedModel:
        phi, following = transitions_per_step(data)
        n_states, dim = len(data.state_features), phi.shape[-1]

        def fit(phi_h, following_h):
            counts = jnp.zeros((n_states, dim), phi.dtype).at[following_h].add(phi_h).T
            gram = matmul(phi_h.T, phi_h) + self.ridge * len(phi_h) * jnp.eye(dim, dtype=phi.dtype)
            return cholesky_solve(cholesky(gram), counts)

        measures = jax.vmap(fit)(phi, following)
        return FittedModel(measures, initial_state_weights(data), data.state_features, data.reward_lookup)

    def solve(self, prepared: FittedModel, theta: Float[Array, "H p"]) -> OracleResult:
        rewards = rewards_from(prepared.reward_table, theta)
        value, policy = backward_induction(
            prepared.measures, matmul, prepared.table, rewards, jnp.zeros_like(rewards)
        )
        total = matmul(prepared.initial, value)
        status = jnp.where(jnp.isfinite(total), Status.CONVERGED.array(), Status.NONFINITE.array())
        return OracleResult(total, policy, status)
