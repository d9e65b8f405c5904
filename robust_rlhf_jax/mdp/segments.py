"""The MDP of a segment: some steps of a longer episode, from anywhere."""

import dataclasses

import jax.numpy as jnp
from jaxtyping import Array, Float

from .linear_mdp import LinearMDP


def segment_mdp(mdp: LinearMDP, length: int, start: Float[Array, " S"] | None = None) -> LinearMDP:
    """`length` steps, all with θ and dynamics of the first one of `mdp`, from `start` [S], by default uniform.

    **Example:**

    >>> from robust_rlhf_jax import worlds
    >>> from robust_rlhf_jax.mdp import segment_mdp
    >>> part = segment_mdp(worlds.chain_mdp(), 3)
    >>> part.horizon, round(float(part.initial_distribution[0]), 3)
    (3, 0.05)
    """
    uniform = jnp.full(mdp.n_states, 1.0 / mdp.n_states, mdp.features.dtype)
    measures, theta = mdp.transition_measures, mdp.theta
    return dataclasses.replace(
        mdp,
        transition_measures=jnp.broadcast_to(measures[:1], (length, *measures.shape[1:])),
        theta=jnp.broadcast_to(theta[:1], (length, theta.shape[1])),
        initial_distribution=uniform if start is None else start,
    )
