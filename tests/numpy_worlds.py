"""Worlds drawn by NumPy: at test sizes JAX's own would take all the time to compile."""

import jax
import numpy as np

from robust_rlhf_jax.mdp import LinearMDP


def numpy_mdp(
    seed: int = 0, n_states: int = 6, n_actions: int = 3, dim: int = 4, horizon: int = 3
) -> LinearMDP:
    """A random linear MDP with simplex features, in the default float of the moment."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(horizon, dim))
    theta *= np.sqrt(dim) / np.linalg.norm(theta, axis=-1, keepdims=True)
    mdp = LinearMDP(
        rng.dirichlet(np.ones(dim), (n_states, n_actions)),
        rng.dirichlet(np.full(n_states, 0.5), (horizon, dim)),
        theta,
        rng.dirichlet(np.ones(n_states)),
    )
    return jax.device_put(mdp)
