"""Rewrite what the data say of the action that they show least."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from robust_rlhf_jax.corruption_budget import corruption_count
from robust_rlhf_jax.kernels.ranking import largest
from robust_rlhf_jax.mdp import LinearMDP
from robust_rlhf_jax.preferences import PreferenceData

from .base import rarest_action, replace_labels
from .listed import ALL_BUT_LABELS, listed


@listed(untouched=ALL_BUT_LABELS)
def least_covered(key: PRNGKeyArray, data: PreferenceData, epsilon: float | Float[Array, ""], mdp: LinearMDP):
    """Flip ⌊εN⌋ labels that tell the truth about the rarest action, those first whose trajectories differ most in it.

    The truth is whether the action pays more or less than the mean action in the states of the data; a label lies
    when it prefers the trajectory with more of a bad action or with less of a good one. Whoever must decide on what few
    pairs show can be told anything at the price of those pairs (the lower bound of Zhang, Chen, Zhu & Sun 2022).
    Should the budget outlast them, labels that say nothing about the action are flipped, and none that lies
    already. Sees θ★ and the actions, changes labels only.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import attacks, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> clean = sample_preferences(jax.random.key(0), mdp, 200)
    >>> bad = attacks.least_covered(jax.random.key(1), clean, 0.1, mdp)
    >>> int((bad.labels != clean.labels).sum())
    20
    """
    rarest = rarest_action(data, mdp)
    taken = jnp.sum(data.actions == rarest, axis=-1)
    more = (taken[:, 1] - taken[:, 0]).astype(data.labels.dtype)
    rewards = mdp.rewards(data.per_compared_step(data.flat(mdp.theta)))
    advantage = rewards[..., rarest] - jnp.mean(rewards, axis=-1)
    states = data.states[..., :-1]
    good = jnp.mean(advantage[jnp.arange(data.horizon), states]) > 0
    truth = jnp.sign(more) * jnp.where(good, 1.0, -1.0)
    lies = data.labels * truth < 0
    # Ties go to a random pair; corrupted pairs come last.
    order = jnp.where(lies, -1.0, jnp.abs(more) + jax.random.uniform(key, lies.shape))
    chosen = largest(order, corruption_count(epsilon, data.n_pairs)) & ~lies
    return replace_labels(data, chosen, -data.labels)
