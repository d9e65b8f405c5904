"""Replace pairs by the strongest evidence against the true reward."""

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from robust_rlhf_jax.mdp import LinearMDP
from robust_rlhf_jax.preferences import PreferenceData

from .base import comparable_theta, random_pairs, replace_differences, widen
from .listed import listed


@listed(untouched=("states", "actions"), off_table=True)
def push_features(
    key: PRNGKeyArray,
    data: PreferenceData,
    epsilon: float | Float[Array, ""],
    mdp: LinearMDP,
    scale: float | None = None,
):
    """Replace ⌊εN⌋ random pairs by x = −L·θ★/‖θ★‖ with o = +1, inside the identifiable subspace.

    Trajectory 1 shows −½L·θ★/‖θ★‖ and trajectory 0 its negative. `scale` is L; by default the largest that
    keeps every ‖φ_h‖₂ ≤ 1, so that no norm check sees it. Sees θ★, changes features and labels.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import attacks, changed_pairs, off_table, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> clean = sample_preferences(jax.random.key(0), mdp, 200)
    >>> bad = attacks.push_features(jax.random.key(1), clean, 0.1, mdp)
    >>> int(changed_pairs(clean, bad).sum()), int(off_table(bad).sum())
    (20, 20)
    """
    theta = comparable_theta(data, mdp)
    half = widen(theta) if scale is None else 0.5 * scale * theta / jnp.linalg.norm(theta)
    return replace_differences(data, random_pairs(key, epsilon, data.n_pairs), -half, 1.0)
