"""Actions so rare that an attacker can rewrite all that the data say about them."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from robust_rlhf_jax.corruption_budget import corruption_count
from robust_rlhf_jax.preferences import PreferenceData


class HiddenActions(eqx.Module):
    """`pairs` [A]: in how many pairs an action occurs at all; `hidden` [A]: whether ⌊εN⌋ covers them all;
    `pairs_at_step` [H, A], `hidden_at_step` [H, A]: the same step by step, for θ that differs from step to step.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import diagnostics, sample_preferences, worlds
    >>> data = sample_preferences(jax.random.key(0), worlds.chain_mdp(), 200)
    >>> found = diagnostics.hidden_actions(data, 0.1)
    >>> found.pairs.tolist(), bool(found.hidden.any()), found.pairs_at_step.shape
    ([200, 200], False, (10, 2))
    """

    pairs: Int[Array, " A"]
    hidden: Bool[Array, " A"]
    pairs_at_step: Int[Array, "H A"]
    hidden_at_step: Bool[Array, "H A"]


def hidden_actions(data: PreferenceData, epsilon: float | Float[Array, ""]) -> HiddenActions:
    """Which actions occur in at most ⌊εN⌋ pairs: there an attacker can hide or reverse their reward unseen.

    The argument of the lower bound Ω(εHd) (Zhang, Chen, Zhu & Sun 2022). An action that never occurs is hidden at
    every ε, by the data themselves. Jit- and vmap-able in ε.

    **Raises:** ValueError for ε outside [0, ½).

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import sample_preferences, worlds
    >>> from robust_rlhf_jax.lab.diagnostics import hidden_actions
    >>> mdp, behaviour = worlds.hard_instance(jax.random.key(0), n_actions=4, horizon=3, rare_probability=0.01)
    >>> data = sample_preferences(jax.random.key(1), mdp, 200, behaviour=behaviour)
    >>> hidden_actions(data, 0.1).hidden.tolist()
    [False, False, False, True]
    """
    budget = corruption_count(epsilon, data.n_pairs)
    n_actions = data.state_features.shape[1]
    # One action at a time: no [N, 2, H, A] one-hot array.
    occurs = lambda a: jnp.any(data.actions == a, axis=1)  # noqa: E731
    at_step = jnp.stack([jnp.sum(occurs(a), axis=0) for a in range(n_actions)], axis=1)
    pairs = jnp.stack([jnp.sum(jnp.any(occurs(a), axis=1)) for a in range(n_actions)])
    return HiddenActions(pairs, pairs <= budget, at_step, at_step <= budget)
