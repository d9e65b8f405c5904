"""Tell trajectories that end in the worst state that each step could have led to."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.mdp import LinearMDP, optimal_state_values
from robust_rlhf_jax.preferences import PreferenceData

from .base import mean_step, random_pairs
from .listed import listed
from .pool import retell

# P(s'|s,a) up to here is rounding.
IMPOSSIBLE = 1e-6


def worst_following(data: PreferenceData, mdp: LinearMDP):
    """The reachable s' of least V★_{h+1}, P_h(s'|s,a) > 0, for every step, state and action [H, S, A].

    Pooled data: [1, S, A], V★ the mean over the steps of an episode.
    """
    following_values = mean_step(data, optimal_state_values(mdp)[1:])

    def of_step(step):
        measure, values = step

        def of_state(rows):
            reachable = matmul(rows, measure) > IMPOSSIBLE
            return jnp.argmin(jnp.where(reachable, values, jnp.inf), axis=-1)

        # State by state, so that no [S, A, S] array is held.
        return jax.lax.map(of_state, mdp.features)

    measures = mdp.transition_measures[: len(following_values)]
    return jax.lax.map(of_step, (measures, following_values))


@listed(untouched=("actions", "labels"), at_most=True)
def corrupt_transitions_on_table(
    key: PRNGKeyArray, data: PreferenceData, epsilon: float | Float[Array, ""], mdp: LinearMDP
):
    """In both trajectories of ⌊εN⌋ random pairs every step leads to the worst state that it could have led to.

    s_1, actions and labels stay; s_{h+1} is the s' of least V★_{h+1}(s') with P_h(s'|s_h,a_h) > 0, and features are the
    table's at the new states: no single step can be refuted, only how often they come. A regression that believes them
    takes every step for worse than it is. Pooled data take the mean of V★ over the steps of an episode. Pairs with such
    luck already stay: at most ⌊εN⌋ change. Sees the MDP, changes `states` and with them both kinds of features.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import attacks, changed_pairs, off_table, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> clean = sample_preferences(jax.random.key(0), mdp, 200)
    >>> bad = attacks.corrupt_transitions_on_table(jax.random.key(1), clean, 0.1, mdp)
    >>> int(changed_pairs(clean, bad).sum()), int(off_table(bad).sum())
    (20, 0)
    """
    worst = worst_following(data, mdp)
    worst = jnp.broadcast_to(worst, (data.horizon, *worst.shape[1:]))

    def advance(states, step):
        worst, actions = step
        following = worst[states, actions].astype(states.dtype)
        return following, following

    start = data.states[..., 0]
    _, later = jax.lax.scan(advance, start, (worst, jnp.moveaxis(data.actions, -1, 0)))
    states = jnp.concatenate([start[..., None], jnp.moveaxis(later, 0, -1)], axis=-1)
    chosen = random_pairs(key, epsilon, data.n_pairs)
    return retell(data, chosen, states, data.actions, data.labels)
