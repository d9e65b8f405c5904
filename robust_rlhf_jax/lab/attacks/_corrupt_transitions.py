"""Plant transitions that say: the least explored direction leads to the worst state."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from robust_rlhf_jax.kernels.linalg import einsum
from robust_rlhf_jax.mdp import LinearMDP, occupancy, optimal_policy, optimal_state_values
from robust_rlhf_jax.preferences import PreferenceData

from .base import least_eigenvectors, mean_step, random_pairs, replace_rows
from .listed import listed


def least_covered_directions(data: PreferenceData):
    """Unit v_h [H, d]: the eigenvector of the smallest eigenvalue of mean φ_hφ_hᵀ that is not null.

    Pooled data: [1, d], of the mean over all steps.
    """
    n = 2 * data.n_pairs
    moments = mean_step(data, einsum("njhd,njhe->hde", data.features, data.features) / n)
    return jax.vmap(least_eigenvectors)(moments)[:, 0]


@listed(untouched=("actions", "labels"), off_table=True)
def corrupt_transitions(
    key: PRNGKeyArray, data: PreferenceData, epsilon: float | Float[Array, ""], mdp: LinearMDP
):
    """Both trajectories of ⌊εN⌋ random pairs: features ±v_h of the least covered direction, next state the worst.

    The worst next state minimises V★_{h+1} over the states that occur in the data. A regression that believes
    the planted tuples has ±v_hᵀw = V★_{h+1}(worst); the sign is the one that lowers the predicted value of
    optimal play, E_π★[φ_h]ᵀw. Pooled data take the mean over the steps of an episode of all three.
    Sees the MDP and the clean data; changes `features` and `states`, not labels.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import attacks, changed_pairs, off_table, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> clean = sample_preferences(jax.random.key(0), mdp, 200)
    >>> bad = attacks.corrupt_transitions(jax.random.key(1), clean, 0.1, mdp)
    >>> int(changed_pairs(clean, bad).sum()), int(off_table(bad).sum())
    (20, 20)
    """
    directions = least_covered_directions(data)
    played = mean_step(data, einsum("hsa,sad->hd", occupancy(mdp, optimal_policy(mdp)[0]), mdp.features))
    seen = jnp.zeros(mdp.n_states, bool).at[data.states.reshape(-1)].set(True)
    values = jnp.where(seen, mean_step(data, optimal_state_values(mdp)[1:]), jnp.inf)
    worst = jnp.argmin(values, axis=1)
    pull = einsum("hd,hd->h", directions, played) * jnp.min(values, axis=1)
    planted = jnp.broadcast_to(directions * jnp.where(pull > 0, -1.0, 1.0)[:, None], data.features.shape)
    chosen = random_pairs(key, epsilon, data.n_pairs)
    following = jnp.broadcast_to(worst, data.states[..., 1:].shape).astype(data.states.dtype)
    states = data.states.at[..., 1:].set(replace_rows(chosen, following, data.states[..., 1:]))
    features = replace_rows(chosen, planted, data.features)
    return eqx.tree_at(lambda d: (d.states, d.features), data, (states, features))
