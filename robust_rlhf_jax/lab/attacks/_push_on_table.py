"""Plant the strongest evidence against the true reward that the world itself can show."""

import jax
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.mdp import LinearMDP
from robust_rlhf_jax.preferences import PreferenceData

from .base import random_pairs
from .listed import listed
from .pool import Pool, extremes, plant, spread, trajectory_pool

# 64² distinct pairs.
VARIETY = 64


def worst_over_best(chosen: Bool[Array, " N"], pool: Pool, theta: Float[Array, " k"], variety: int):
    """(first, second) [N] for the chosen pairs: one of the pool's `variety` worst returns, one of its best."""
    worst, best = extremes(matmul(pool.z, theta), variety)
    return spread(chosen, worst, best)


@listed()
def push_on_table(
    key: PRNGKeyArray,
    data: PreferenceData,
    epsilon: float | Float[Array, ""],
    mdp: LinearMDP,
    *,
    variety: int = VARIETY,
):
    """Let ⌊εN⌋ random pairs say that one of the `variety` worst trajectories beat one of the best; o = +1.

    `push_features` for whoever writes trajectories and not φ: both come from `trajectory_pool`, with their own states,
    actions and features, and no two planted pairs are alike before all variety² have been told. Sees θ★ and the
    world, changes whole pairs; exactly ⌊εN⌋ unless one says so already.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import attacks, changed_pairs, off_table, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> clean = sample_preferences(jax.random.key(0), mdp, 200)
    >>> bad = attacks.push_on_table(jax.random.key(1), clean, 0.1, mdp)
    >>> int(changed_pairs(clean, bad).sum()), int(off_table(bad).sum())
    (20, 0)
    """
    pool = trajectory_pool(jax.random.fold_in(key, 1), data, mdp)
    chosen = random_pairs(key, epsilon, data.n_pairs)
    first, second = worst_over_best(chosen, pool, data.flat(mdp.theta), variety)
    return plant(data, chosen, pool, first, second, 1.0)
