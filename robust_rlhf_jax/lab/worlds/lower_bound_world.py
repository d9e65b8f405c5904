"""The lower bound's instance: everything hangs on the least-visited action."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from robust_rlhf_jax.checks import check_key
from robust_rlhf_jax.mdp import LinearMDP


def hard_instance(
    key: PRNGKeyArray,
    *,
    n_actions: int = 4,
    horizon: int = 5,
    rare_probability: float = 0.1,
    advantage: float = 0.5,
) -> tuple[LinearMDP, tuple[Float[Array, "H S A"], Float[Array, "H S A"]]]:
    """One-hot actions (d = A); the last is worth ±`advantage` a step, at random per step, and is taken rarely.

    An attacker who owns ε ≥ `rare_probability` of the data can rewrite all there is about the rare action: no
    algorithm then beats Ω(εHd) (Zhang, Chen, Zhu & Sun 2022, *Corruption-robust offline RL*, lower bound).
    Transitions do not depend on the action: only the reward is at stake.

    **Returns:** (mdp, (policy0, policy1)).

    **Raises:** ValueError for fewer than two actions, no step, `rare_probability` or `advantage` outside (0, 1], or
    what is not one key.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import worlds
    >>> mdp, (policy, _) = worlds.hard_instance(jax.random.key(0), n_actions=4, horizon=3)
    >>> mdp.dim, [round(float(p), 2) for p in policy[0, 0]]
    (4, [0.3, 0.3, 0.3, 0.1])
    """
    check_key(key)
    if n_actions < 2 or not (0 < rare_probability <= 1 and 0 < advantage <= 1):
        raise ValueError(
            f"n_actions={n_actions}, rare_probability={rare_probability}, advantage={advantage}: needs at least "
            "two actions, and both numbers in (0, 1]."
        )
    if horizon < 1:
        raise ValueError(f"horizon={horizon}: give 1 or more.")
    n_states = 2
    phi = jnp.broadcast_to(jnp.eye(n_actions), (n_states, n_actions, n_actions))
    mu = jnp.full((horizon, n_actions, n_states), 1.0 / n_states)
    sign = jax.random.rademacher(key, (horizon,), jnp.float32)
    theta = jnp.zeros((horizon, n_actions)).at[:, -1].set(advantage * sign)
    mdp = LinearMDP(phi, mu, theta, jnp.full(n_states, 1.0 / n_states))
    common = jnp.full(n_actions - 1, (1 - rare_probability) / (n_actions - 1))
    chances = jnp.concatenate([common, jnp.array([rare_probability])])
    policy = jnp.broadcast_to(chances, (horizon, n_states, n_actions))
    return mdp, (policy, policy)
