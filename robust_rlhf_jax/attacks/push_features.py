"""Replace pairs by the strongest evidence against the true reward."""

import equinox as eqx
import jax
import jax.numpy as jnp

from .base import corruption_count, identifiable_theta, largest, replace_rows


def push_features(key, data, epsilon, mdp, scale=None):
    """Replace ⌊εN⌋ random pairs by x = −L·θ★/‖θ★‖ with o = +1, inside the identifiable subspace.

    Trajectory 1 shows −½L·θ★/‖θ★‖ and trajectory 0 its negative. `scale` is L; by default the largest that
    keeps every ‖φ_h‖₂ ≤ 1, so that no norm check sees it. Sees θ★, changes features and labels.
    """
    theta = identifiable_theta(mdp)
    direction = theta / jnp.linalg.norm(theta)
    widest = jnp.max(jnp.linalg.norm(direction, axis=-1))
    half = direction / widest if scale is None else 0.5 * scale * direction
    chosen = largest(jax.random.uniform(key, (data.n_pairs,)), corruption_count(epsilon, data.n_pairs))
    planted = jnp.broadcast_to(jnp.stack([half, -half]), data.observed_reward_features.shape)
    observed = replace_rows(chosen, planted, data.observed_reward_features)
    labels = jnp.where(chosen, 1.0, data.labels).astype(data.labels.dtype)
    if data.reward_features is None:
        return eqx.tree_at(lambda d: (d.features, d.labels), data, (observed, labels))
    return eqx.tree_at(lambda d: (d.reward_features, d.labels), data, (observed, labels))
