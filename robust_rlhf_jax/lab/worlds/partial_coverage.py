"""A world whose data leave holes: actions that the behaviour almost never takes have their own directions."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from robust_rlhf_jax.checks import check_key, check_positive
from robust_rlhf_jax.mdp import LinearMDP

from .family import Family, World
from .sizes import SMALL, SURE


def partial_coverage_mdp(
    key: PRNGKeyArray,
    *,
    n_states: int = 60,
    n_actions: int = 4,
    dim: int = 6,
    horizon: int = 5,
    n_rare: int = 2,
    rare_probability: float = 0.004,
    feature_concentration: float = 1.0,
) -> tuple[LinearMDP, tuple[Float[Array, "H S A"], Float[Array, "H S A"]]]:
    """A random linear MDP whose last `n_rare` actions each own a feature direction, and its behaviour policy.

    Common actions mix the first d − n_rare directions; rare action j puts weight ≥ ½ on its own direction, whose
    reward is bad, so that believing praise of it is costly. Behaviour (both trajectories): the rare actions
    together with probability `rare_probability`, the others uniformly. A smaller `feature_concentration` makes the
    common features sparser, and so labels surer.

    **Returns:** (mdp, (policy0, policy1)).

    **Raises:** ValueError unless 1 ≤ n_rare < n_actions, dim − n_rare ≥ 2 and 0 < rare_probability < 1, and for no
    state or step, a concentration that is not positive, or what is not one key.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import worlds
    >>> mdp, (behaviour, _) = worlds.partial_coverage_mdp(jax.random.key(0), n_states=8, n_actions=3, dim=3, n_rare=1)
    >>> mdp.dim, [round(float(p), 3) for p in behaviour[0, 0]]
    (3, [0.498, 0.498, 0.004])
    """
    check_key(key)
    if not (1 <= n_rare < n_actions and dim - n_rare >= 2 and 0 < rare_probability < 1):
        raise ValueError(
            f"n_rare={n_rare}, n_actions={n_actions}, dim={dim}, rare_probability={rare_probability}: needs "
            "1 ≤ n_rare < n_actions, dim ≥ n_rare + 2 and a probability in (0, 1)."
        )
    if n_states < 1 or horizon < 1:
        raise ValueError(f"n_states={n_states}, horizon={horizon}: give 1 or more of both.")
    check_positive(feature_concentration, "feature_concentration")
    k_phi, k_own, k_mu, k_theta, k_rho = jax.random.split(key, 5)
    n_common = dim - n_rare
    common = jax.random.dirichlet(k_phi, jnp.full(n_common, feature_concentration), (n_states, n_actions))
    own = jnp.concatenate([jnp.zeros(n_actions - n_rare), jnp.ones(n_rare)])
    own = own * jax.random.uniform(k_own, (n_states, n_actions), minval=0.5, maxval=1.0)
    direction = jnp.eye(n_actions, n_rare, -(n_actions - n_rare))
    phi = jnp.concatenate([common * (1 - own)[..., None], own[..., None] * direction], axis=-1)
    mu = jax.random.dirichlet(k_mu, jnp.full(n_states, 0.3), (horizon, dim))
    theta = jax.random.normal(k_theta, (horizon, dim))
    theta = theta.at[:, n_common:].set(-jnp.abs(theta[:, n_common:]) - 1.0)
    theta *= jnp.sqrt(dim) / jnp.linalg.norm(theta, axis=-1, keepdims=True)
    mdp = LinearMDP(phi, mu, theta, jax.random.dirichlet(k_rho, jnp.ones(n_states)))
    rare = jnp.arange(n_actions) >= n_actions - n_rare
    chances = jnp.where(rare, rare_probability / n_rare, (1 - rare_probability) / (n_actions - n_rare))
    policy = jnp.broadcast_to(chances, (horizon, n_states, n_actions))
    return mdp, (policy, policy)


def world_with_holes(key: PRNGKeyArray, **sizes: Any) -> World:
    """`partial_coverage_mdp` with the policy that both of its trajectories follow."""
    mdp, (behaviour, _) = partial_coverage_mdp(key, **sizes)
    return World(mdp, behaviour)


# One rare action, and not so rare: tiny worlds have few pairs.
FEW = {"n_rare": 1, "rare_probability": 0.02}
FAMILIES = [
    Family(
        "partial_coverage",
        {
            "quick": lambda key: world_with_holes(key, n_states=36, n_actions=4, dim=6, horizon=4),
            "full": lambda key: world_with_holes(key),
            "tiny": lambda key: world_with_holes(key, n_states=8, n_actions=2, dim=3, horizon=2, **FEW),
        },
        usual=True,
    ),
    Family(
        "condition_number",
        {
            "coverage": lambda key: world_with_holes(key, **SURE),
            "coverage_tiny": lambda key: world_with_holes(key, **FEW, **SMALL),
        },
        usual=True,
    ),
]
