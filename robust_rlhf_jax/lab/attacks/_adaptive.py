"""Plant the pairs that mislead a known estimator most."""

from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from robust_rlhf_jax.kernels.linalg import einsum, matmul
from robust_rlhf_jax.mdp import LinearMDP, normalised_gap, optimal_policy, policy_value
from robust_rlhf_jax.preferences import PreferenceData
from robust_rlhf_jax.rewards.protocol import RewardEstimator
from robust_rlhf_jax.rewards.registry import filtered, maximum_likelihood

from .base import (
    comparable_theta,
    identifiable_projector,
    least_eigenvectors,
    random_pairs,
    replace_differences,
    widen,
)
from .implicit import fitted_theta
from .listed import listed

# Gap of `filtered` on a random world (S=36, A=4, d=6, H=4) with 4,000 pairs, ε = .1, two seeds: .50/.24 with
# 64 templates, .51/.56 with 256; at a learning rate of .1 no more than .32; under `push_features` .02.
MANY_TEMPLATES, SMALL_STEPS = 256, 0.03
# Iterates whose normalised gaps differ by less than this are alike: the first is kept.
ALIKE = 1e-4


def soft_greedy_policy(mdp: LinearMDP, theta: Float[Array, "H p"], temperature: float):
    """π_h(a|s) ∝ exp(Q_h(s,a)/temperature) under θ, Q of that same policy: greedy planning with a derivative.

    θ is first brought to the length of θ★: greedy plans don't depend on its length, the temperature should not.
    """
    target = jnp.linalg.norm(mdp.theta)
    size = jnp.sqrt(jnp.sum(theta**2) + jnp.finfo(theta.dtype).tiny)
    rewards = mdp.rewards(theta * (target / size))

    def backward(value, step):
        measure, reward = step
        q = reward + matmul(mdp.features, matmul(measure, value))
        policy = jax.nn.softmax(q / temperature, axis=-1)
        return jnp.sum(policy * q, axis=-1), policy

    last = jnp.zeros(mdp.n_states, mdp.features.dtype)
    return jax.lax.scan(backward, last, (mdp.transition_measures, rewards), reverse=True)[1]


def starting_points(key: PRNGKeyArray, data: PreferenceData, mdp: LinearMDP, templates: int, restarts: int):
    """Templates to start from [restarts, T, H, p]: those of `push_features`, the least covered directions, random ones.

    All lie in the identifiable span, are as long as norms allow and speak against θ★.
    """
    theta, projector = comparable_theta(data, mdp), identifiable_projector(mdp)
    x = data.differences()
    covered = jax.vmap(data.per_compared_step)(least_eigenvectors(matmul(x.T, x) / data.n_pairs, templates))
    noise = jax.random.normal(key, (max(restarts - 2, 0), templates, *theta.shape), theta.dtype)
    push = jnp.broadcast_to(-theta, (1, templates, *theta.shape))
    starts = jnp.concatenate([push, matmul(jnp.concatenate([covered[None], noise]), projector)])[:restarts]
    agrees = einsum("rthp,hp->rt", starts, theta)[..., None, None] > 0
    return widen(jnp.where(agrees, -starts, starts))


@listed(untouched=("states", "actions"), off_table=True)
def adaptive(
    key: PRNGKeyArray,
    data: PreferenceData,
    epsilon: float | Float[Array, ""],
    mdp: LinearMDP,
    *,
    victim: RewardEstimator = maximum_likelihood,
    templates: int = 4,
    steps: int = 30,
    restarts: int = 3,
    learning_rate: float = 0.1,
    temperature: float = 0.1,
):
    """Replace ⌊εN⌋ random pairs by copies of `templates` pairs x = 2z, o = +1, optimised against `victim`.

    White box: Adam ascends the suboptimality, under θ★ and the true transitions, of the soft-greedy policy for the
    victim's θ̂(z), the derivative of θ̂ by the implicit function theorem; after each step z is put back into the
    identifiable span and ‖z_h‖₂ ≤ 1. Of all iterates of all `restarts` the one is planted whose greedy policy is
    worst; the first start is `push_features` with the same key, so the victim fares no better than under that.
    The victim is a `RewardEstimator` that sees all pairs, which an algorithm that splits its data does not quite.
    Poisoning by gradients through the learner's optimum: Biggio, Nelson & Laskov 2012; Mei & Zhu 2015; few distinct
    points that slip through a defence: Koh, Steinhardt & Liang 2022. Sees everything, changes features and labels.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import attacks, changed_pairs, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> clean = sample_preferences(jax.random.key(0), mdp, 200)
    >>> bad = attacks.adaptive(jax.random.key(1), clean, 0.1, mdp)
    >>> int(changed_pairs(clean, bad).sum())
    20
    """
    dtype = data.features.dtype
    chosen = random_pairs(key, epsilon, data.n_pairs)
    template = (jnp.cumsum(chosen) - 1) % templates
    level, radius = jnp.asarray(epsilon, dtype), jnp.asarray(data.theta_dim**0.5, dtype)
    projector = identifiable_projector(mdp)
    optimiser = optax.adam(learning_rate)

    def plant(z: Float[Array, "T H p"]):
        return replace_differences(data, chosen, z[template], 1.0)

    def soft_value(z: Float[Array, "T H p"]):
        corrupted = plant(z)
        theta = data.per_step(fitted_theta(victim, corrupted.differences(), corrupted.labels, level, radius))
        return policy_value(mdp, soft_greedy_policy(mdp, theta, temperature)), theta

    def feasible(z: Float[Array, "T H p"]):
        z = matmul(z, projector)
        return z / jnp.maximum(jnp.linalg.norm(z, axis=-1, keepdims=True), 1.0)

    def climb(carry, _):
        z, memory, worst, gap = carry
        (_, theta), gradient = jax.value_and_grad(soft_value, has_aux=True)(z)
        new_gap = normalised_gap(mdp, optimal_policy(mdp, theta)[0])
        better = new_gap > gap + ALIKE
        worst, gap = jnp.where(better, z, worst), jnp.where(better, new_gap, gap)
        update, memory = optimiser.update(gradient, memory)
        return (feasible(z + update), memory, worst, gap), None

    def search(start):
        carry = (start, optimiser.init(start), start, jnp.full((), -1.0, dtype))
        return jax.lax.scan(climb, carry, length=steps)[0][2:]

    k_starts = jax.random.fold_in(key, 1)
    ends, gaps = jax.lax.map(search, starting_points(k_starts, data, mdp, templates, restarts))
    return plant(ends[jnp.argmax(jnp.round(gaps / ALIKE))])


@listed(untouched=("states", "actions"), off_table=True)
def adaptive_filtered(
    key: PRNGKeyArray,
    data: PreferenceData,
    epsilon: float | Float[Array, ""],
    mdp: LinearMDP,
    *,
    templates: int = MANY_TEMPLATES,
    learning_rate: float = SMALL_STEPS,
    **options: Any,
):
    """`adaptive` against the filter and trimming of Algorithm 1 (`rewards.registry.filtered`), which it knows.

    Copies of one pair stand together in one direction, where a filter finds them: many that differ slip through.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import attacks, changed_pairs, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> clean = sample_preferences(jax.random.key(0), mdp, 200)
    >>> bad = attacks.adaptive_filtered(jax.random.key(1), clean, 0.1, mdp, steps=5, restarts=1)
    >>> int(changed_pairs(clean, bad).sum())
    20
    """
    options = {"victim": filtered, "templates": templates, "learning_rate": learning_rate, **options}
    return adaptive(key, data, epsilon, mdp, **options)
