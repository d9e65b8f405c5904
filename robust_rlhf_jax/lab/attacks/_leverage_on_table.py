"""Speak where hardly anyone else does, with trajectories that the world can show."""

import jax
from jaxtyping import Array, Float, PRNGKeyArray

from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.mdp import LinearMDP
from robust_rlhf_jax.preferences import PreferenceData

from .base import contrary, least_eigenvectors, random_pairs
from .listed import listed
from .pool import extremes, plant, spread, trajectory_pool

VARIETY = 64


@listed()
def leverage_on_table(
    key: PRNGKeyArray,
    data: PreferenceData,
    epsilon: float | Float[Array, ""],
    mdp: LinearMDP,
    *,
    variety: int = VARIETY,
):
    """Replace ⌊εN⌋ random pairs by those of `trajectory_pool` farthest out in the least covered direction.

    v as in `leverage_points`; τ¹ is one of the `variety` trajectories with the largest vᵀz, τ⁰ one of those with the
    smallest, and the label is −sign(θ★ᵀx). Sees θ★, the world and the clean data, changes whole pairs; exactly ⌊εN⌋
    unless one says so already.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import attacks, changed_pairs, off_table, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> clean = sample_preferences(jax.random.key(0), mdp, 200)
    >>> bad = attacks.leverage_on_table(jax.random.key(1), clean, 0.1, mdp)
    >>> int(changed_pairs(clean, bad).sum()), int(off_table(bad).sum())
    (20, 0)
    """
    x, pool = data.differences(), trajectory_pool(jax.random.fold_in(key, 1), data, mdp)
    direction = least_eigenvectors(matmul(x.T, x) / data.n_pairs)[0]
    low, high = extremes(matmul(pool.z, direction), variety)
    chosen = random_pairs(key, epsilon, data.n_pairs)
    first, second = spread(chosen, high, low)
    labels = contrary(matmul(pool.z[first] - pool.z[second], data.flat(mdp.theta)))
    return plant(data, chosen, pool, first, second, labels)
