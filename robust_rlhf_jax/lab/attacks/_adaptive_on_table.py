"""Choose the trajectories that mislead a known estimator most."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.mdp import LinearMDP, normalised_gap, optimal_policy, policy_value
from robust_rlhf_jax.preferences import PreferenceData
from robust_rlhf_jax.rewards.protocol import RewardEstimator
from robust_rlhf_jax.rewards.registry import filtered, maximum_likelihood

from ._adaptive import ALIKE, soft_greedy_policy
from ._push_on_table import VARIETY, worst_over_best
from .base import random_pairs
from .implicit import response
from .listed import listed
from .pool import extremes, plant, trajectory_pool

CANDIDATES = 4096
# Gaps on the coverage preset's uniform world, 3,000 pairs, ε = .1, median of three seeds: of plain RLHF .63 with the
# farthest 64 (.61 at twice the temperature, .40 for the start), of `uniform_coverage` .17 with pairs from anywhere and
# .02 with the farthest 64.
REACH, ANYWHERE = 64, 1 << 30
SOFT = 0.5


def most_harmful(
    key: PRNGKeyArray,
    z: Float[Array, "M k"],
    theta: Float[Array, " k"],
    towards: Float[Array, " k"],
    reach: int,
    variety: int,
):
    """The `variety` of random pairs of far trajectories whose addition lowers the victim's value most, o = +1.

    Far: τ¹ is among the `reach` with the lowest `towards`ᵀz, τ⁰ among the `reach` with the highest. A pair moves the
    likelihood's gradient by σ(−θ̂ᵀx)x, hence the value by σ(−θ̂ᵀx)·`towards`ᵀx to first order (influence functions: Koh
    & Liang 2017).
    """
    low, high = extremes(matmul(z, towards), reach)
    first, second = jax.random.randint(key, (2, CANDIDATES), 0, low.shape[0])
    first, second = low[first], high[second]
    x = z[first] - z[second]
    harm = -matmul(x, towards) * jax.nn.sigmoid(-matmul(x, theta))
    best = jax.lax.top_k(harm, variety)[1]
    return first[best], second[best]


@listed()
def adaptive_on_table(
    key: PRNGKeyArray,
    data: PreferenceData,
    epsilon: float | Float[Array, ""],
    mdp: LinearMDP,
    *,
    victim: RewardEstimator = maximum_likelihood,
    steps: int = 40,
    reach: int = REACH,
    variety: int = VARIETY,
    temperature: float = SOFT,
):
    """Replace ⌊εN⌋ random pairs by pairs of `trajectory_pool`, chosen to harm `victim`; o = +1.

    White box, and `adaptive` for whoever writes trajectories and not φ: from what `push_on_table` plants with the same
    key, every step t = 1…`steps` refits the victim and puts the `variety` pairs of `most_harmful` (by the implicit
    function theorem; the value is that of the soft-greedy policy under θ★) in the place of a share 2/(t+3) of the
    planted ones: the conditional gradient method of Frank & Wolfe 1956 on the planted distribution. Of all iterates the
    one is planted whose greedy policy is worst, so that the victim, a `RewardEstimator` that sees all pairs, fares no
    better than under `push_on_table`. Sees everything, changes whole pairs; exactly ⌊εN⌋ unless one says so already.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import attacks, changed_pairs, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> clean = sample_preferences(jax.random.key(0), mdp, 200)
    >>> bad = attacks.adaptive_on_table(jax.random.key(1), clean, 0.1, mdp)
    >>> int(changed_pairs(clean, bad).sum())
    20
    """
    dtype = data.features.dtype
    level, radius = jnp.asarray(epsilon, dtype), jnp.asarray(data.theta_dim**0.5, dtype)
    pool = trajectory_pool(jax.random.fold_in(key, 1), data, mdp)
    chosen = random_pairs(key, epsilon, data.n_pairs)
    rank = jnp.maximum(jnp.cumsum(chosen) - 1, 0)

    def value(theta: Float[Array, " k"]):
        return policy_value(mdp, soft_greedy_policy(mdp, data.per_step(theta), temperature))

    def respond(first, second):
        corrupted = plant(data, chosen, pool, first, second, 1.0)
        x, labels = corrupted.differences(), corrupted.labels
        fit = victim(x, labels, level, radius=radius)
        gap = normalised_gap(mdp, optimal_policy(mdp, data.per_step(fit.theta))[0])
        towards = response(fit.theta, fit.weights, x, labels, radius, jax.grad(value)(fit.theta))
        return gap, fit.theta, towards

    def climb(carry, step):
        told, worst, gap = carry
        key, share = step
        new_gap, theta, towards = respond(*told)
        better = new_gap > gap + ALIKE
        worst = jax.tree.map(lambda new, old: jnp.where(better, new, old), told, worst)
        k_found, k_rows = jax.random.split(key)
        found = most_harmful(k_found, pool.z, theta, towards, reach, variety)
        moved = jax.random.uniform(k_rows, chosen.shape) < share
        told = jax.tree.map(lambda new, old: jnp.where(moved, new[rank % variety], old), found, told)
        return (told, worst, jnp.where(better, new_gap, gap)), None

    start = worst_over_best(chosen, pool, data.flat(mdp.theta), variety)
    shares = 2.0 / (jnp.arange(1, steps + 1) + 3.0)
    carry = (start, start, jnp.full((), -1.0, dtype))
    keys = jax.random.split(jax.random.fold_in(key, 2), steps)
    (_, (first, second), _), _ = jax.lax.scan(climb, carry, (keys, shares.astype(dtype)))
    return plant(data, chosen, pool, first, second, 1.0)


@listed()
def adaptive_filtered_on_table(
    key: PRNGKeyArray, data: PreferenceData, epsilon: float | Float[Array, ""], mdp: LinearMDP, **options: Any
):
    """`adaptive_on_table` against the filter and trimming of Algorithm 1 (`rewards.registry.filtered`), which it knows.

    The farthest pairs stand where a filter finds them: from anywhere, they slip through.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import attacks, changed_pairs, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> clean = sample_preferences(jax.random.key(0), mdp, 200)
    >>> bad = attacks.adaptive_filtered_on_table(jax.random.key(1), clean, 0.1, mdp)
    >>> int(changed_pairs(clean, bad).sum())
    20
    """
    options = {"victim": filtered, "reach": ANYWHERE, "steps": 20, **options}
    return adaptive_on_table(key, data, epsilon, mdp, **options)
