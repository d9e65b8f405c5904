"""Stretch honest differences as far as the world goes, and turn their labels round."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from robust_rlhf_jax.corruption_budget import corruption_count
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.kernels.ranking import largest
from robust_rlhf_jax.mdp import LinearMDP
from robust_rlhf_jax.preferences import PreferenceData

from .base import contrary
from .listed import listed
from .pool import plant, trajectory_pool

# Trajectories to choose from, and pairs at a time: each pair looks at all of them.
CANDIDATES, BLOCK = 1024, 256


def farthest(x: Float[Array, "N k"], z: Float[Array, "M k"]):
    """For each row of x [N, k] the rows of z [M, k] with the largest and the smallest xᵀz."""

    def both(row):
        along = matmul(z, row)
        return jnp.argmax(along), jnp.argmin(along)

    return jax.lax.map(both, x, batch_size=min(BLOCK, x.shape[0]))


@listed(at_most=True)
def scale_on_table(
    key: PRNGKeyArray,
    data: PreferenceData,
    epsilon: float | Float[Array, ""],
    mdp: LinearMDP,
    *,
    candidates: int = CANDIDATES,
):
    """⌊εN⌋ random pairs show the longest difference along their own x, and the label that contradicts θ★.

    `scale_features` on the table: of `candidates` trajectories of `trajectory_pool`, τ¹ has the largest xᵀz and τ⁰
    the smallest. Pairs without a difference come last; of one that says so already nothing changes, so at most ⌊εN⌋
    do. Sees θ★ and the world, changes whole pairs.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import attacks, changed_pairs, off_table, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> clean = sample_preferences(jax.random.key(0), mdp, 200)
    >>> bad = attacks.scale_on_table(jax.random.key(1), clean, 0.1, mdp)
    >>> 0 < int(changed_pairs(clean, bad).sum()) <= 20, int(off_table(bad).sum())
    (True, 0)
    """
    k_pool, k_some = jax.random.split(jax.random.fold_in(key, 1))
    pool = trajectory_pool(k_pool, data, mdp)
    some = jax.random.permutation(k_some, pool.size)[:candidates]
    x = data.differences()
    order = jax.random.uniform(key, (data.n_pairs,)) - jnp.all(x == 0, axis=1)
    chosen = largest(order, corruption_count(epsilon, data.n_pairs))
    first, second = (some[i] for i in farthest(x, pool.z[some]))
    labels = contrary(matmul(pool.z[first] - pool.z[second], data.flat(mdp.theta)))
    return plant(data, chosen, pool, first, second, labels)
