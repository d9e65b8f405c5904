"""What every adversary shares: its signature, ways to change pairs, and the part of θ worth attacking."""

from typing import Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from robust_rlhf_jax.corruption_budget import corruption_count
from robust_rlhf_jax.kernels.divisors import positive_or_one
from robust_rlhf_jax.kernels.lapack import eigh
from robust_rlhf_jax.kernels.linalg import matmul, pseudo_inverse_root, relative_tolerance
from robust_rlhf_jax.kernels.ranking import largest
from robust_rlhf_jax.mdp import LinearMDP, segment_mdp
from robust_rlhf_jax.preferences import PreferenceData


class Attack(Protocol):
    """Sees all of the data and the MDP; changes at most ⌊εN⌋ pairs. Jit- and vmap-able, ε traced.

    Exactly ⌊εN⌋ unless its docstring says "at most": one that writes labels may find some of them written already.

    **Example:**

    >>> import dataclasses
    >>> import jax, jax.numpy as jnp
    >>> from robust_rlhf_jax import attacks, changed_pairs, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> clean = sample_preferences(jax.random.key(0), mdp, 200)
    >>> def flip_first(key, data, epsilon, mdp):
    ...     count = attacks.corruption_count(epsilon, data.n_pairs)
    ...     labels = jnp.where(jnp.arange(data.n_pairs) < count, -data.labels, data.labels)
    ...     return dataclasses.replace(data, labels=labels)
    >>> attack: attacks.Attack = flip_first
    >>> int(changed_pairs(clean, attack(jax.random.key(1), clean, 0.1, mdp)).sum())
    20
    """

    def __call__(
        self, key: PRNGKeyArray, data: PreferenceData, epsilon: float | Float[Array, ""], mdp: LinearMDP
    ) -> PreferenceData: ...


def random_pairs(key: PRNGKeyArray, epsilon: float | Float[Array, ""], n_pairs: int) -> Bool[Array, " N"]:
    """Mask of ⌊εN⌋ pairs, all sets of that size alike likely."""
    return largest(jax.random.uniform(key, (n_pairs,)), corruption_count(epsilon, n_pairs))


def replace_rows(mask: Bool[Array, " N"], new: Array, old: Array):
    """Rows of `new` where the mask holds, of `old` elsewhere."""
    return jnp.where(mask.reshape((-1,) + (1,) * (old.ndim - 1)), new, old)


def replace_labels(
    data: PreferenceData, chosen: Bool[Array, " N"], labels: float | Float[Array, "*N"]
) -> PreferenceData:
    """The chosen pairs get these labels ([N] or one for all)."""
    new = jnp.where(chosen, labels, data.labels).astype(data.labels.dtype)
    return eqx.tree_at(lambda d: d.labels, data, new)


def replace_differences(
    data: PreferenceData,
    chosen: Bool[Array, " N"],
    half: Float[Array, "*N H p"],
    labels: float | Float[Array, "*N"],
) -> PreferenceData:
    """In the chosen pairs trajectory 1 shows `half`, trajectory 0 its negative, where rewards look."""
    old = data.observed_reward_features
    planted = jnp.broadcast_to(jnp.stack([-half, half], axis=-3), old.shape).astype(old.dtype)
    observed = replace_rows(chosen, planted, old)
    data = replace_labels(data, chosen, labels)
    if data.reward_features is None:
        return eqx.tree_at(lambda d: d.features, data, observed)
    return eqx.tree_at(lambda d: d.reward_features, data, observed)


def copy_pairs(data: PreferenceData, chosen: Bool[Array, " N"], source: Int[Array, " N"]) -> PreferenceData:
    """Each chosen pair n becomes a copy of pair `source[n]`, label and all."""
    return data.replace_pairs(lambda rows: replace_rows(chosen, rows[source], rows))


def true_margins(data: PreferenceData, mdp: LinearMDP) -> Float[Array, " N"]:
    """θ★ᵀx_n: how much better trajectory 1 is, as observed."""
    return matmul(data.differences(), data.flat(mdp.theta))


def contrary(margins: Float[Array, " N"]) -> Float[Array, " N"]:
    """−sign(margin): the label that says that the worse trajectory won; +1 for a tie."""
    return jnp.where(margins > 0, -1.0, 1.0)


def widen(direction: Float[Array, "*N H p"]) -> Float[Array, "*N H p"]:
    """Scaled so that the longest step has ‖·‖₂ = 1, all that a norm check allows; 0 stays 0."""
    widest = jnp.max(jnp.linalg.norm(direction, axis=-1), axis=-1)[..., None, None]
    return direction / positive_or_one(widest)


def rarest_action(data: PreferenceData, mdp: LinearMDP) -> Int[Array, ""]:
    """The action that the data take least often."""
    return jnp.argmin(jnp.zeros(mdp.n_actions).at[data.actions.reshape(-1)].add(1.0))


def least_eigenvectors(moment: Float[Array, "d d"], count: int = 1) -> Float[Array, "count d"]:
    """Unit eigenvectors of the `count` smallest eigenvalues that are not null (the last repeats if too few)."""
    values, vectors = eigh(moment)
    null = values <= relative_tolerance(values.dtype, values.shape[-1]) * values[-1]
    index = jnp.sum(null) + jnp.arange(count)
    return vectors.T[jnp.minimum(index, values.shape[-1] - 1)]


def identifiable_projector(mdp: LinearMDP) -> Float[Array, "p p"]:
    """Projector on the span of feature differences: what leaves it, no clean pair can show."""
    rows = mdp.reward_table.reshape(-1, mdp.reward_table.shape[-1])
    centred = rows - jnp.mean(rows, axis=0)
    whitener, colourer, _ = pseudo_inverse_root(matmul(centred.T, centred) / rows.shape[0])
    return matmul(whitener, colourer)


def identifiable_theta(mdp: LinearMDP) -> Float[Array, "H p"]:
    """θ★_h projected on the span of feature differences.

    What is left out adds the same reward to every (s,a): no comparison shows it and no policy depends on it.

    **Example:**

    >>> from robust_rlhf_jax import attacks, worlds
    >>> mdp = worlds.chain_mdp()
    >>> rewards = (mdp.features @ (mdp.theta - attacks.identifiable_theta(mdp)).T).reshape(-1, mdp.horizon)
    >>> bool((abs(rewards - rewards.mean(axis=0)) < 1e-4).all())  # what is left out pays the same everywhere
    True
    """
    return matmul(mdp.theta, identifiable_projector(mdp))


def comparable_theta(data: PreferenceData, mdp: LinearMDP) -> Float[Array, "H p"]:
    """`identifiable_theta`, one row per step of a compared trajectory, which may be shorter than an episode."""
    theta = identifiable_theta(mdp)
    return data.per_compared_step(data.flat(theta)) if data.pooled else theta


def compared_mdp(data: PreferenceData, mdp: LinearMDP) -> LinearMDP:
    """The MDP of a compared trajectory: `mdp`, or its steps of a segment, from where the data's segments start."""
    if not data.pooled:
        return mdp
    counts = jnp.zeros(mdp.n_states, mdp.features.dtype).at[data.states[..., 0].reshape(-1)].add(1.0)
    return segment_mdp(mdp, data.horizon, counts / (2 * data.n_pairs))


def mean_step(data: PreferenceData, rows: Float[Array, "H ..."]) -> Float[Array, "P ..."]:
    """One row per step; their mean [1, ...] where the data pool all steps, and one regression serves them all."""
    return jnp.mean(rows, axis=0, keepdims=True) if data.pooled else rows
