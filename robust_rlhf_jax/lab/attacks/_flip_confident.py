"""Flip the labels that say the most."""

from jaxtyping import Array, Float, PRNGKeyArray

from robust_rlhf_jax.corruption_budget import corruption_count
from robust_rlhf_jax.kernels.ranking import largest
from robust_rlhf_jax.mdp import LinearMDP
from robust_rlhf_jax.preferences import PreferenceData

from .base import replace_labels, true_margins
from .listed import ALL_BUT_LABELS, listed


@listed(untouched=ALL_BUT_LABELS, draws_pairs=False)
def flip_confident(
    key: PRNGKeyArray, data: PreferenceData, epsilon: float | Float[Array, ""], mdp: LinearMDP
):
    """Flip the ⌊εN⌋ labels with the largest o·θ★ᵀx. Sees θ★, changes labels only; uses no randomness.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import attacks, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> clean = sample_preferences(jax.random.key(0), mdp, 200)
    >>> bad = attacks.flip_confident(jax.random.key(1), clean, 0.1, mdp)
    >>> int((bad.labels != clean.labels).sum())
    20
    """
    margins = data.labels * true_margins(data, mdp)
    return replace_labels(data, largest(margins, corruption_count(epsilon, data.n_pairs)), -data.labels)
