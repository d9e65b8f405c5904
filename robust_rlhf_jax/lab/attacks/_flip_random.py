"""Flip labels blindly."""

from jaxtyping import Array, Float, PRNGKeyArray

from robust_rlhf_jax.mdp import LinearMDP
from robust_rlhf_jax.preferences import PreferenceData

from .base import random_pairs, replace_labels
from .listed import ALL_BUT_LABELS, listed


@listed(untouched=ALL_BUT_LABELS)
def flip_random(key: PRNGKeyArray, data: PreferenceData, epsilon: float | Float[Array, ""], mdp: LinearMDP):
    """Flip ⌊εN⌋ random labels: what careless raters do (Angluin & Laird 1988). Sees nothing, changes labels only.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import attacks, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> clean = sample_preferences(jax.random.key(0), mdp, 200)
    >>> bad = attacks.flip_random(jax.random.key(1), clean, 0.1, mdp)
    >>> int((bad.labels != clean.labels).sum())
    20
    """
    return replace_labels(data, random_pairs(key, epsilon, data.n_pairs), -data.labels)
