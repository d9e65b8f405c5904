"""Preference labels drawn from the Bradley–Terry model (paper: Assumption 2.1)."""

import dataclasses
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from robust_rlhf_jax.checks import are_chances, check_key, is_traced
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.mdp import LinearMDP, rollout, segment_mdp, uniform_policy

from .data import PreferenceData


def sample_preferences(
    key: PRNGKeyArray,
    mdp: LinearMDP,
    n_pairs: int,
    *,
    behaviour: tuple[Float[Array, "H S A"], Float[Array, "H S A"]] | None = None,
    temperature: float | Float[Array, ""] = 1.0,
) -> PreferenceData:
    """Roll out pairs τ⁰ ~ μ₀, τ¹ ~ μ₁ and label them with P(o=+1) = σ((r(τ¹) − r(τ⁰))/temperature).

    **Arguments:** `behaviour` (μ₀, μ₁), each [H, S, A]; both uniform by default. `temperature` > 0: the paper's
    model is 1; towards 0 labels become deterministic and carry no information about the scale of θ
    (`label_entropy` shows it).

    **Raises:** ValueError for what is not one key, `n_pairs` < 1, a `behaviour` of a wrong shape or not of chances, or
    a temperature that is no number, or not positive and finite in the precision of `mdp`.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import sample_preferences, worlds
    >>> sample_preferences(jax.random.key(0), worlds.chain_mdp(), 200).n_pairs
    200
    """
    check_key(key)
    _check(n_pairs, temperature, mdp.features.dtype)
    policies = (uniform_policy(mdp), uniform_policy(mdp)) if behaviour is None else behaviour
    _check_behaviour(policies, mdp)
    return _sample(key, mdp, policies, temperature, n_pairs)


def sample_segments(
    key: PRNGKeyArray,
    mdp: LinearMDP,
    n_pairs: int,
    length: int,
    *,
    behaviour: tuple[Float[Array, "L S A"], Float[Array, "L S A"]] | None = None,
    start: Float[Array, " S"] | None = None,
    temperature: float | Float[Array, ""] = 1.0,
) -> PreferenceData:
    """Pairs of segments of `length` steps, labelled as by `sample_preferences`, for plans of all H steps of `mdp`.

    What people compare is shorter than what is planned. θ and the dynamics of `mdp` must be those of its first step
    throughout; the data are `stationary`, with `planning_horizon` = H and `planning_start` = ρ.

    **Arguments:** `behaviour` (μ₀, μ₁), each [length, S, A]; both uniform by default. `start` [S]: distribution of
    both segments' first states, uniform by default. `temperature` > 0.

    **Raises:** ValueError for what is not one key, `n_pairs` or `length` < 1, `behaviour` or a temperature that
    `sample_preferences` refuses, or θ or dynamics that change from step to step.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import sample_segments, worlds
    >>> data = sample_segments(jax.random.key(0), worlds.delivery_grid(jax.random.key(1)), 200, 7)
    >>> data.horizon, data.planning_horizon
    (7, 20)
    """
    check_key(key)
    _check(n_pairs, temperature, mdp.features.dtype)
    if not isinstance(length, int | np.integer) or length < 1:
        raise ValueError(f"length={length} must be a whole number, 1 or more.")
    for name in ("theta", "transition_measures"):
        leaf = getattr(mdp, name)
        if not is_traced(leaf) and (np.asarray(leaf) != np.asarray(leaf[:1])).any():
            raise ValueError(f"{name} changes from step to step: segments need an MDP that is stationary.")
    part = segment_mdp(mdp, length, start)
    policies = (uniform_policy(part), uniform_policy(part)) if behaviour is None else behaviour
    _check_behaviour(policies, part)
    data = _sample(key, part, policies, temperature, n_pairs, stationary=True)
    return dataclasses.replace(data, planning_horizon=mdp.horizon, planning_start=mdp.initial_distribution)


def check_temperature(temperature: float | Float[Array, ""], dtype: Any) -> None:
    """**Raises:** ValueError for a temperature that is no number, or not positive and finite in a precision."""
    if np.ndim(temperature):
        raise ValueError(
            f"temperature=an array of shape {np.shape(temperature)} is not a number: give one above 0."
        )
    if is_traced(temperature):
        return
    value, limits = float(temperature), jnp.finfo(dtype)
    if not 0 < value < np.inf:
        raise ValueError(f"temperature={temperature} must be positive and finite: labels are sampled.")
    least, most = float(limits.tiny), float(limits.max)
    if not least <= value <= most:
        raise ValueError(
            f"temperature={temperature} is {'0' if value < least else 'infinite'} in {jnp.dtype(dtype).name}: give a "
            f"number between {least:.2g} and {most:.2g}."
        )


def _check(n_pairs: Any, temperature: float | Float[Array, ""], dtype: Any):
    if not isinstance(n_pairs, int | np.integer) or n_pairs < 1:
        raise ValueError(f"n_pairs={n_pairs} must be a whole number, 1 or more.")
    check_temperature(temperature, dtype)


def _check_behaviour(policies: Sequence[Float[Array, "H S A"]], mdp: LinearMDP):
    shape = (mdp.horizon, mdp.n_states, mdp.n_actions)
    for i, policy in enumerate(policies):
        if jnp.shape(policy) != shape:
            raise ValueError(
                f"behaviour[{i}] has shape {jnp.shape(policy)}; this MDP needs [H, S, A] = {shape}."
            )
        if not is_traced(policy) and not are_chances(policy):
            raise ValueError(
                f"behaviour[{i}] is not a policy: the chances of the actions in each state must be ≥ 0 and sum to 1."
            )


@partial(jax.jit, static_argnames=("n_pairs", "stationary"))
def _sample(
    key: PRNGKeyArray,
    mdp: LinearMDP,
    behaviour: Sequence[Float[Array, "H S A"]],
    temperature: Float[Array, ""],
    n_pairs: int,
    stationary: bool = False,
):
    k0, k1, k_label = jax.random.split(key, 3)
    rollouts = [rollout(k, mdp, policy, n_pairs) for k, policy in zip((k0, k1), behaviour, strict=True)]
    states, actions = (jnp.stack(parts, axis=1) for parts in zip(*rollouts, strict=True))
    features = mdp.features[states[..., :-1], actions]
    reward = None if mdp.reward_features is None else mdp.reward_features[states[..., :-1], actions]
    data = PreferenceData(
        mdp.features,
        states,
        actions,
        features,
        jnp.ones(n_pairs, features.dtype),
        mdp.reward_features,
        reward,
        stationary,
    )
    chance = preference_probabilities(data, mdp.theta, temperature)
    labels = jnp.where(jax.random.bernoulli(k_label, chance), 1.0, -1.0).astype(features.dtype)
    return dataclasses.replace(data, labels=labels)


def preference_probabilities(
    data: PreferenceData, theta: Float[Array, "H p"], temperature: float | Float[Array, ""] = 1.0
) -> Float[Array, " N"]:
    """P(o_n = +1) = σ(θ·x_n / temperature).

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import preferences, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> data = sample_preferences(jax.random.key(0), mdp, 200)
    >>> preferences.preference_probabilities(data, 0 * mdp.theta)[:3].tolist()
    [0.5, 0.5, 0.5]
    """
    return jax.nn.sigmoid(matmul(data.differences(), data.flat(theta)) / temperature)


def label_entropy(
    data: PreferenceData, theta: Float[Array, "H p"], temperature: float | Float[Array, ""] = 1.0
) -> Float[Array, ""]:
    """Mean entropy of a label given its pair, in bits: 1 is a coin flip, 0 a deterministic rater.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import label_entropy, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> data = sample_preferences(jax.random.key(0), mdp, 200)
    >>> round(float(label_entropy(data, 0 * mdp.theta)), 3)
    1.0
    """
    p = preference_probabilities(data, theta, temperature)
    tiny = jnp.finfo(p.dtype).tiny
    q = 1.0 - p
    return jnp.mean(-p * jnp.log2(jnp.maximum(p, tiny)) - q * jnp.log2(jnp.maximum(q, tiny)))
