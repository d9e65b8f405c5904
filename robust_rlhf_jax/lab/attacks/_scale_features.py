"""Blow up honest differences and turn their labels round."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from robust_rlhf_jax.corruption_budget import corruption_count
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.kernels.ranking import largest
from robust_rlhf_jax.mdp import LinearMDP
from robust_rlhf_jax.preferences import PreferenceData

from .base import contrary, identifiable_projector, replace_differences, replace_labels, true_margins, widen
from .listed import listed


@listed(untouched=("states", "actions"), off_table=True)
def scale_features(
    key: PRNGKeyArray, data: PreferenceData, epsilon: float | Float[Array, ""], mdp: LinearMDP
):
    """⌊εN⌋ random pairs show their own difference at the largest length, and the label that contradicts θ★.

    Trajectory 1 shows ½L·x/‖x‖ and trajectory 0 its negative, x projected on the identifiable span and L the
    largest that keeps every ‖φ_h‖₂ ≤ 1: the bad leverage points of Rousseeuw & Leroy 1987, in the directions in
    which data lie anyway. Pairs without a difference come last. Sees θ★, changes features and labels.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import attacks, changed_pairs, off_table, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> clean = sample_preferences(jax.random.key(0), mdp, 200)
    >>> bad = attacks.scale_features(jax.random.key(1), clean, 0.1, mdp)
    >>> int(changed_pairs(clean, bad).sum()), int(off_table(bad).sum())
    (20, 20)
    """
    observed = data.observed_reward_features
    own = matmul(observed[:, 1] - observed[:, 0], identifiable_projector(mdp))
    empty = jnp.all(own == 0, axis=(1, 2))
    order = jax.random.uniform(key, (data.n_pairs,)) - empty
    chosen = largest(order, corruption_count(epsilon, data.n_pairs))
    corrupted = replace_differences(data, chosen, widen(own), data.labels)
    return replace_labels(corrupted, chosen, contrary(true_margins(corrupted, mdp)))
