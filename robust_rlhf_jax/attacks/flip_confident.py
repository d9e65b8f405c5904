"""Flip the labels that say the most."""

import equinox as eqx
import jax.numpy as jnp

from robust_rlhf_jax.kernels.linalg import matmul

from .base import corruption_count, largest


def flip_confident(key, data, epsilon, mdp):
    """Flip the ⌊εN⌋ labels with the largest o·θ★ᵀx. Sees θ★, changes labels only; uses no randomness."""
    margins = data.labels * matmul(data.differences(), data.flat(mdp.theta))
    chosen = largest(margins, corruption_count(epsilon, data.n_pairs))
    labels = jnp.where(chosen, -data.labels, data.labels)
    return eqx.tree_at(lambda d: d.labels, data, labels)
