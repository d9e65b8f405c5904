"""Lie with pairs that look exactly like honest ones."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from robust_rlhf_jax.mdp import LinearMDP
from robust_rlhf_jax.preferences import PreferenceData

from .base import contrary, copy_pairs, random_pairs, replace_labels, true_margins
from .listed import listed


@listed()
def mimicry(key: PRNGKeyArray, data: PreferenceData, epsilon: float | Float[Array, ""], mdp: LinearMDP):
    """Replace ⌊εN⌋ random pairs by copies of other random pairs, labelled against θ★: o = −sign(θ★ᵀx).

    The planted x are a bootstrap sample of the clean ones: mean, covariance and all other moments agree, so that
    no filter of features has anything to remove; only labels tell. (To hide within the honest spread: Baruch,
    Baruch & Goldberg 2019, "A Little Is Enough".) Sees θ★, changes whole pairs; exactly ⌊εN⌋ unless a copy
    equals what it replaces.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import attacks, changed_pairs, off_table, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> clean = sample_preferences(jax.random.key(0), mdp, 200)
    >>> bad = attacks.mimicry(jax.random.key(1), clean, 0.1, mdp)
    >>> int(changed_pairs(clean, bad).sum()), int(off_table(bad).sum())
    (20, 0)
    """
    k_pairs, k_source = jax.random.split(key)
    n = data.n_pairs
    shift = jax.random.randint(k_source, (n,), 1, max(n, 2))
    chosen = random_pairs(k_pairs, epsilon, n)
    corrupted = copy_pairs(data, chosen, (jnp.arange(n) + shift) % n)
    return replace_labels(corrupted, chosen, contrary(true_margins(corrupted, mdp)))
