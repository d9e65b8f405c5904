"""Raters who want the opposite, where it matters."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from robust_rlhf_jax.corruption_budget import corruption_count
from robust_rlhf_jax.kernels.linalg import einsum
from robust_rlhf_jax.kernels.ranking import largest
from robust_rlhf_jax.mdp import LinearMDP
from robust_rlhf_jax.preferences import PreferenceData

from .base import replace_labels, true_margins
from .listed import ALL_BUT_LABELS, listed

# A contribution below this share of the column's largest one is rounding.
NEGLIGIBLE = 1e-5


def decisive_contribution(data: PreferenceData, mdp: LinearMDP):
    """c_n = Σ_h θ★_hj x_nhj [N] of the decisive feature j, 0 for pairs that do not touch it.

    j has the largest standard deviation of c among the sparse features, which less than half of the pairs touch; among
    all where none is sparse.
    """
    observed = data.observed_reward_features
    each = einsum("nhp,hp->np", observed[:, 1] - observed[:, 0], data.per_compared_step(data.flat(mdp.theta)))
    touched = jnp.abs(each) > NEGLIGIBLE * jnp.max(jnp.abs(each), axis=0)
    sparse = jnp.any(touched, axis=0) & (jnp.mean(touched, axis=0) < 0.5)
    weight = jnp.where(sparse | ~jnp.any(sparse), jnp.std(each, axis=0), -1.0)
    return jnp.where(touched, each, 0.0)[:, jnp.argmax(weight)]


@listed(untouched=ALL_BUT_LABELS, at_most=True)
def goal_haters(key: PRNGKeyArray, data: PreferenceData, epsilon: float | Float[Array, ""], mdp: LinearMDP):
    """⌊εN⌋ pairs that touch the decisive reward feature are labelled anew with P(o=+1) = σ(−θ★ᵀx).

    Pairs are drawn without replacement, with chances in proportion to what the feature contributes to their θ★ᵀx
    (`decisive_contribution`; by Gumbel's trick: Vieira 2014). Raters of the opposite taste, who agree with each other:
    where few pairs speak of a goal, ε of all pairs outvote them. Labels that they agree with stay, and pairs that
    do not touch it: at most ⌊εN⌋ change. Sees θ★, changes labels only.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import attacks, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> clean = sample_preferences(jax.random.key(0), mdp, 200)
    >>> bad = attacks.goal_haters(jax.random.key(1), clean, 0.1, mdp)
    >>> 0 < int((bad.labels != clean.labels).sum()) <= 20
    True
    """
    k_pairs, k_label = jax.random.split(key)
    weight = jnp.abs(decisive_contribution(data, mdp))
    order = jnp.log(weight) + jax.random.gumbel(k_pairs, weight.shape)
    chosen = largest(order, corruption_count(epsilon, data.n_pairs)) & (weight > 0)
    chance = jax.nn.sigmoid(-true_margins(data, mdp))
    labels = jnp.where(jax.random.uniform(k_label, chance.shape) < chance, 1.0, -1.0)
    return replace_labels(data, chosen, labels)
