"""The step-h transitions of a preference data set, or all of them, both trajectories of every pair."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from robust_rlhf_jax.preferences import PreferenceData


def transitions_per_step(
    data: PreferenceData,
) -> tuple[Float[Array, "H n d"], Int[Array, "H n"]]:
    """(φ(s_h,a_h) as observed [H, 2N, d], s_{h+1} [H, 2N]); pooled data: [1, 2N·H, d] and [1, 2N·H]."""
    phi, following = _by_step(data)
    return (_pooled(phi), _pooled(following)) if data.pooled else (phi, following)


def _by_step(data: PreferenceData):
    phi = jnp.moveaxis(data.features, 2, 0).reshape(data.horizon, -1, data.features.shape[-1])
    following = jnp.moveaxis(data.states[..., 1:], 2, 0).reshape(data.horizon, -1)
    return phi, following


def _pooled(rows):
    return rows.reshape(1, -1, *rows.shape[2:])


def fresh_folds(key: PRNGKeyArray, data: PreferenceData) -> tuple[Float[Array, "H n d"], Int[Array, "H n"]]:
    """As `transitions_per_step`, with disjoint random pairs for each step: n = 2·(N // H).

    Pooled data give each step of the plan whole pairs: [P, n·H, d]. The analysis of R-LSVI asks for independence
    between steps; it costs a factor H of the data.

    **Raises:** ValueError for fewer pairs than steps.
    """
    steps = data.plan_steps
    size = data.n_pairs // steps
    if size < 1:
        raise ValueError(f"{data.n_pairs} pairs cannot give {steps} steps a fold each: reuse the data.")
    order = jax.random.permutation(key, data.n_pairs)[: size * steps].reshape(steps, size)
    phi, following = _by_step(data)
    both = jnp.concatenate([2 * order, 2 * order + 1], axis=1)
    if data.pooled:
        folds = jax.vmap(lambda rows: (phi[:, rows], following[:, rows]))(both)
        return jax.tree.map(lambda x: x.reshape(steps, -1, *x.shape[3:]), folds)
    take = jax.vmap(lambda x, rows: x[rows])
    return take(phi, both), take(following, both)


def initial_state_weights(data: PreferenceData) -> Float[Array, " S"]:
    """Distribution of the state that plans start in: as given, else that of s_1 over both trajectories."""
    if data.planning_start is not None:
        return data.planning_start
    n_states = len(data.state_features)
    counts = jnp.zeros(n_states, data.features.dtype).at[data.states[..., 0].reshape(-1)].add(1.0)
    return counts / (2 * data.n_pairs)
