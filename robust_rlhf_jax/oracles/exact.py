"""The oracle that knows the MDP: a reference for the data-driven ones."""

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.mdp import LinearMDP, expected_features, optimal_policy
from robust_rlhf_jax.module import Module
from robust_rlhf_jax.preferences import PreferenceData

from .base import OracleResult


class ExactOracle(Module):
    """Plans in `mdp` itself; of the data, which may be None, only the numbers of states and actions are looked at.

    Its subgradient is E_π★[φ] (Danskin).

    **Example:**

    >>> import jax, jax.numpy as jnp
    >>> from robust_rlhf_jax import oracles, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> data = sample_preferences(jax.random.key(0), mdp, 200)
    >>> oracle = oracles.ExactOracle(mdp)
    >>> found = oracle.solve(oracle.prepare(data, jnp.float32(0.1), key=jax.random.key(1)), mdp.theta)
    >>> round(float(worlds.normalised_gap(mdp, found.policy)), 3)
    0.0
    """

    mdp: LinearMDP

    def prepare(
        self, data: PreferenceData | None, epsilon: Float[Array, ""], *, key: PRNGKeyArray
    ) -> LinearMDP:
        """**Raises:** ValueError for data of another number of states or actions than the MDP has."""
        known = self.mdp.features.shape[:2]
        seen = known if data is None else data.state_features.shape[:2]
        if known != seen:
            raise ValueError(
                f"The MDP of ExactOracle has [S, A] = {known}, the data {seen}: give the MDP that they come from."
            )
        return self.mdp

    def solve(self, prepared: LinearMDP, theta: Float[Array, "H p"]) -> OracleResult:
        policy, value = optimal_policy(prepared, theta)
        status = jnp.where(jnp.isfinite(value), Status.CONVERGED.array(), Status.NONFINITE.array())
        return OracleResult(value, policy, status, expected_features(prepared, policy))
