"""Irrational teachers in the place of ⌊εN⌋ raters.

Four of the simulated teachers of Lee, Smith, Dragan & Abbeel 2021, "B-Pref: Benchmarking Preference-Based
Reinforcement Learning", each answering for an ε-share of the pairs. None of them means harm.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from robust_rlhf_jax.corruption_budget import corruption_count
from robust_rlhf_jax.kernels.linalg import einsum
from robust_rlhf_jax.kernels.ranking import largest
from robust_rlhf_jax.mdp import LinearMDP
from robust_rlhf_jax.preferences import PreferenceData

from .base import contrary, copy_pairs, random_pairs, replace_labels, true_margins
from .listed import ALL_BUT_LABELS, listed


def observed_rewards(data: PreferenceData, mdp: LinearMDP):
    """θ★_hᵀφ_h of every step that the data show [N, 2, H]."""
    return einsum("njhp,hp->njh", data.observed_reward_features, data.per_compared_step(data.flat(mdp.theta)))


@listed(untouched=ALL_BUT_LABELS, at_most=True)
def teacher_stochastic(
    key: PRNGKeyArray,
    data: PreferenceData,
    epsilon: float | Float[Array, ""],
    mdp: LinearMDP,
    *,
    rationality: float = 0.1,
):
    """⌊εN⌋ random pairs are labelled anew with P(o=+1) = σ(rationality·θ★ᵀx); 1 would be honest, 0 tosses a coin.

    Many new labels coincide with the old ones: at most ⌊εN⌋ pairs change. Sees θ★, changes labels only.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import attacks, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> clean = sample_preferences(jax.random.key(0), mdp, 200)
    >>> bad = attacks.teacher_stochastic(jax.random.key(1), clean, 0.1, mdp)
    >>> 0 < int((bad.labels != clean.labels).sum()) <= 20
    True
    """
    k_pairs, k_label = jax.random.split(key)
    chance = jax.nn.sigmoid(rationality * true_margins(data, mdp))
    labels = jnp.where(jax.random.uniform(k_label, chance.shape) < chance, 1.0, -1.0)
    return replace_labels(data, random_pairs(k_pairs, epsilon, data.n_pairs), labels)


@listed(untouched=ALL_BUT_LABELS, at_most=True)
def teacher_myopic(
    key: PRNGKeyArray,
    data: PreferenceData,
    epsilon: float | Float[Array, ""],
    mdp: LinearMDP,
    *,
    discount: float = 0.5,
):
    """⌊εN⌋ random pairs go to the larger Σ_h discount^{H−h}·r_h: the teacher recalls how a trajectory ended.

    B-Pref discounts by .9 over segments of 50 steps; episodes here are shorter. At most ⌊εN⌋ pairs change.
    Sees θ★, changes labels only.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import attacks, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> clean = sample_preferences(jax.random.key(0), mdp, 200)
    >>> bad = attacks.teacher_myopic(jax.random.key(1), clean, 0.1, mdp)
    >>> 0 < int((bad.labels != clean.labels).sum()) <= 20
    True
    """
    recalled = discount ** jnp.arange(data.horizon - 1, -1, -1)
    returns = einsum("njh,h->nj", observed_rewards(data, mdp), recalled.astype(data.features.dtype))
    labels = contrary(returns[:, 0] - returns[:, 1])
    return replace_labels(data, random_pairs(key, epsilon, data.n_pairs), labels)


@listed(untouched=ALL_BUT_LABELS, at_most=True)
def teacher_mistake(
    key: PRNGKeyArray, data: PreferenceData, epsilon: float | Float[Array, ""], mdp: LinearMDP
):
    """⌊εN⌋ random pairs go to the worse trajectory: a rational teacher whose answer is noted the wrong way round.

    Labels that chance had made wrong already stay: at most ⌊εN⌋ pairs change. Sees θ★, changes labels only.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import attacks, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> clean = sample_preferences(jax.random.key(0), mdp, 200)
    >>> bad = attacks.teacher_mistake(jax.random.key(1), clean, 0.1, mdp)
    >>> 0 < int((bad.labels != clean.labels).sum()) <= 20
    True
    """
    chosen = random_pairs(key, epsilon, data.n_pairs)
    return replace_labels(data, chosen, contrary(true_margins(data, mdp)))


@listed(draws_pairs=False)
def teacher_skip(key: PRNGKeyArray, data: PreferenceData, epsilon: float | Float[Array, ""], mdp: LinearMDP):
    """The ⌊εN⌋ pairs whose better trajectory pays least go unanswered.

    A data set has a fixed size, so each gives way to a copy of a random pair that was answered. Sees θ★, changes
    whole pairs; exactly ⌊εN⌋ unless a copy equals what it replaces.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import attacks, changed_pairs, off_table, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> clean = sample_preferences(jax.random.key(0), mdp, 200)
    >>> bad = attacks.teacher_skip(jax.random.key(1), clean, 0.1, mdp)
    >>> int(changed_pairs(clean, bad).sum()), int(off_table(bad).sum())
    (20, 0)
    """
    better = jnp.max(jnp.sum(observed_rewards(data, mdp), axis=-1), axis=1)
    count = corruption_count(epsilon, data.n_pairs)
    skipped = largest(-better, count)
    answered = jnp.argsort(skipped)  # stable: the answered pairs come first
    pick = jax.random.randint(key, (data.n_pairs,), 0, data.n_pairs - count)
    return copy_pairs(data, skipped, answered[pick])
