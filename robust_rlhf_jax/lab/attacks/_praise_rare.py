"""Praise the action that the data hardly ever show."""

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from robust_rlhf_jax.corruption_budget import corruption_count
from robust_rlhf_jax.kernels.ranking import largest
from robust_rlhf_jax.mdp import LinearMDP
from robust_rlhf_jax.preferences import PreferenceData

from .base import rarest_action, replace_rows
from .listed import listed


@listed(untouched=("states",))
def praise_rare(key: PRNGKeyArray, data: PreferenceData, epsilon: float | Float[Array, ""], mdp: LinearMDP):
    """Let ⌊εN⌋ random pairs say that always taking the rarest action beats what the other trajectory did.

    Trajectory 1 keeps its states and takes the action that the data take least often in every one of them, with
    the features that it really has, so that no look at a single step shows the lie; o = +1. Sees the actions,
    changes actions, features and labels. The few honest pairs with that action cannot outvote the lies: an
    estimate believes them or knows nothing, pessimism need not care.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import attacks, changed_pairs, off_table, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> clean = sample_preferences(jax.random.key(0), mdp, 200)
    >>> bad = attacks.praise_rare(jax.random.key(1), clean, 0.1, mdp)
    >>> int(changed_pairs(clean, bad).sum()), int(off_table(bad).sum())
    (20, 0)
    """
    states = data.states[:, 1, :-1]
    rarest = jnp.broadcast_to(rarest_action(data, mdp), states.shape)
    # A pair that says so already is no lie: it comes last.
    honest = jnp.all(data.actions[:, 1] == rarest, axis=1) & (data.labels == 1)
    order = jax.random.uniform(key, (data.n_pairs,)) - honest
    chosen = largest(order, corruption_count(epsilon, data.n_pairs))

    def praised(old, new):
        return old.at[:, 1].set(replace_rows(chosen, new.astype(old.dtype), old[:, 1]))

    reward = data.reward_features
    return dataclasses.replace(
        data,
        actions=praised(data.actions, rarest),
        features=praised(data.features, mdp.features[states, rarest]),
        labels=jnp.where(chosen, 1.0, data.labels).astype(data.labels.dtype),
        reward_features=None if reward is None else praised(reward, mdp.reward_table[states, rarest]),
    )
