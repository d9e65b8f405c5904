"""Trajectories of a linear MDP, sampled without a Python loop and without a transition matrix."""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from robust_rlhf_jax.checks import check_key
from robust_rlhf_jax.kernels.linalg import einsum

from .linear_mdp import LinearMDP

# Trajectories per block: bounds the [block, d] gathers of the inverse-CDF search at any number of rollouts.
BLOCK = 65_536


def _sample_rows(uniform: Float[Array, " n"], cdf_rows: Float[Array, "n A"]):
    """Inverse CDF for explicit rows [n, k]."""
    return jnp.minimum(jnp.sum(uniform[:, None] >= cdf_rows, axis=1), cdf_rows.shape[1] - 1)


def _sample_next_state(
    uniform: Float[Array, " n"], phi: Float[Array, "n d"], measure_cdf: Float[Array, "S d"]
):
    """s' ~ φᵀμ_h by bisection on its CDF φᵀ·cumsum(μ_h): log₂S gathers of d numbers, no row of P formed.

    Holds for signed measures too, since the CDF of a distribution is monotone.
    """
    n_states = measure_cdf.shape[0]

    def halve(_, bounds):
        low, high = bounds
        middle = (low + high) // 2
        go_right = (einsum("nd,nd->n", phi, measure_cdf[middle]) <= uniform) & (low < high)
        return jnp.where(go_right, middle + 1, low), jnp.where(go_right, high, middle)

    low = jnp.zeros(uniform.shape, jnp.int32)
    high = jnp.full(uniform.shape, n_states - 1, jnp.int32)
    return jax.lax.fori_loop(0, max(1, (n_states - 1).bit_length()), halve, (low, high))[0]


def _rollout_block(key: PRNGKeyArray, mdp: LinearMDP, policy: Float[Array, "H S A"], n: int):
    key_start, key_steps = jax.random.split(key)
    dtype = mdp.features.dtype
    uniform = jax.random.uniform(key_start, (n,), dtype)
    start = jnp.searchsorted(jnp.cumsum(mdp.initial_distribution), uniform, side="right").astype(jnp.int32)
    start = jnp.minimum(start, mdp.n_states - 1)

    def advance(states, step):
        key, action_probabilities, measure_cdf = step
        u_action, u_state = jax.random.uniform(key, (2, n), dtype)
        actions = _sample_rows(u_action, jnp.cumsum(action_probabilities, axis=-1)[states])
        following = _sample_next_state(u_state, mdp.features[states, actions], measure_cdf)
        return following, (states, actions.astype(jnp.int32))

    measure_cdf = jnp.swapaxes(jnp.cumsum(mdp.transition_measures, axis=-1), 1, 2)  # [H, S, d]
    steps = (jax.random.split(key_steps, mdp.horizon), policy, measure_cdf)
    last, (states, actions) = jax.lax.scan(advance, start, steps)
    return jnp.concatenate([states, last[None]]).T, actions.T


def rollout(
    key: PRNGKeyArray, mdp: LinearMDP, policy: Float[Array, "H S A"], n: int
) -> tuple[Int[Array, "n H+1"], Int[Array, "n H"]]:
    """n episodes under π.

    Blocks of 65,536 trajectories run one after the other, so that memory beyond the result does not grow with n.

    **Returns:** (states [n, H+1], actions [n, H]), int32.

    **Raises:** ValueError for n < 1, or what is not one key.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import worlds
    >>> from robust_rlhf_jax.mdp import rollout, uniform_policy
    >>> chain = worlds.chain_mdp()
    >>> states, actions = rollout(jax.random.key(0), chain, uniform_policy(chain), 5)
    >>> states.shape, actions.shape, states[:, 0].tolist()
    ((5, 11), (5, 10), [0, 0, 0, 0, 0])
    """
    if n < 1:
        raise ValueError(f"n={n} trajectories were asked for: give 1 or more.")
    check_key(key)
    return _rollout(key, mdp, policy, n)


@partial(jax.jit, static_argnames="n")
def _rollout(key: PRNGKeyArray, mdp: LinearMDP, policy: Float[Array, "H S A"], n: int):
    blocks = -(-n // BLOCK)
    size = -(-n // blocks)
    keys = jax.random.split(key, blocks)
    states, actions = jax.lax.map(lambda k: _rollout_block(k, mdp, policy, size), keys)
    return states.reshape(-1, mdp.horizon + 1)[:n], actions.reshape(-1, mdp.horizon)[:n]
