"""Speak where hardly anyone else does."""

from jaxtyping import Array, Float, PRNGKeyArray

from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.mdp import LinearMDP
from robust_rlhf_jax.preferences import PreferenceData

from .base import contrary, least_eigenvectors, random_pairs, replace_differences, widen
from .listed import listed


@listed(untouched=("states", "actions"), off_table=True)
def leverage_points(
    key: PRNGKeyArray, data: PreferenceData, epsilon: float | Float[Array, ""], mdp: LinearMDP
):
    """Replace ⌊εN⌋ random pairs by x far out in the least covered direction, labelled against θ★.

    The direction is the eigenvector of the smallest eigenvalue of the clean E[xxᵀ] that is not null; the length
    the largest that keeps every ‖φ_h‖₂ ≤ 1. Honest pairs have least to say there, so a fit believes the lies
    (high-leverage outliers: Rousseeuw & Leroy 1987). Sees θ★ and the clean data, changes features and labels.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import attacks, changed_pairs, off_table, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> clean = sample_preferences(jax.random.key(0), mdp, 200)
    >>> bad = attacks.leverage_points(jax.random.key(1), clean, 0.1, mdp)
    >>> int(changed_pairs(clean, bad).sum()), int(off_table(bad).sum())
    (20, 20)
    """
    x = data.differences()
    direction = least_eigenvectors(matmul(x.T, x) / data.n_pairs)[0]
    label = contrary(matmul(direction, data.flat(mdp.theta)))
    half = widen(data.per_compared_step(direction))
    return replace_differences(data, random_pairs(key, epsilon, data.n_pairs), half, label)
