"""Random linear MDPs with simplex features."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from robust_rlhf_jax.checks import check_key, check_positive
from robust_rlhf_jax.mdp import LinearMDP, optimal_policy, uniform_policy

from .family import Family, World
from .sizes import SMALL, SURE


def random_linear_mdp(
    key: PRNGKeyArray,
    *,
    n_states: int,
    n_actions: int,
    dim: int,
    horizon: int,
    feature_concentration: float = 1.0,
    next_state_concentration: float = 0.3,
) -> LinearMDP:
    """φ(s,a) uniform on the simplex, μ_h a Dirichlet draw per dimension, θ_h uniform on the sphere of radius √d.

    Simplex features make every P_h(·|s,a) a mixture of d distributions: linear and normalised by construction.
    Traceable, so that one program can build a batch of worlds.

    **Raises:** ValueError for a size below 1, a concentration that is not positive, or what is not one key.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import worlds
    >>> mdp = worlds.random_linear_mdp(jax.random.key(0), n_states=8, n_actions=2, dim=3, horizon=2)
    >>> worlds.check_linear_mdp(mdp)
    >>> mdp.features.shape, round(float((mdp.theta[0] ** 2).sum()), 3)
    ((8, 2, 3), 3.0)
    """
    check_key(key)
    sizes = {"n_states": n_states, "n_actions": n_actions, "dim": dim, "horizon": horizon}
    for name, size in sizes.items():
        if not hasattr(size, "__index__") or size < 1:
            raise ValueError(f"{name}={size}: every size must be a whole number, 1 or more.")
    check_positive(feature_concentration, "feature_concentration")
    check_positive(next_state_concentration, "next_state_concentration")
    k_phi, k_mu, k_theta, k_rho = jax.random.split(key, 4)
    phi = jax.random.dirichlet(k_phi, jnp.full(dim, feature_concentration), (n_states, n_actions))
    mu = jax.random.dirichlet(k_mu, jnp.full(n_states, next_state_concentration), (horizon, dim))
    theta = jax.random.normal(k_theta, (horizon, dim))
    theta *= jnp.sqrt(dim) / jnp.linalg.norm(theta, axis=-1, keepdims=True)
    rho = jax.random.dirichlet(k_rho, jnp.ones(n_states))
    return LinearMDP(phi, mu, theta, rho)


def expert_world(key: PRNGKeyArray, careless: float = 0.2, **sizes: Any) -> World:
    """A random world whose raters compare near-optimal play: π★, but uniform actions with chance `careless`."""
    mdp = random_linear_mdp(key, **sizes)
    best, _ = optimal_policy(mdp)
    return World(mdp, (1 - careless) * best + careless * uniform_policy(mdp))


FAMILIES = [
    Family(
        "random",
        {
            "quick": lambda key: random_linear_mdp(key, n_states=36, n_actions=4, dim=6, horizon=4),
            "full": lambda key: random_linear_mdp(key, n_states=60, n_actions=4, dim=6, horizon=5),
            "tiny": lambda key: random_linear_mdp(key, n_states=8, n_actions=2, dim=3, horizon=2),
        },
        usual=True,
    ),
    Family(
        "uniform",
        {
            "coverage": lambda key: random_linear_mdp(key, **SURE),
            "coverage_tiny": lambda key: random_linear_mdp(key, **SMALL),
        },
        usual=True,
    ),
    Family(
        "coverage_ratio",
        {
            "coverage": lambda key: expert_world(key, **SURE),
            "coverage_tiny": lambda key: expert_world(key, **SMALL),
        },
        usual=True,
    ),
]
