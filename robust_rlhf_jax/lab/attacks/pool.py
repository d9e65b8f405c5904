"""Whole trajectories to plant: those that the world can show, with the features that the table has for them."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from robust_rlhf_jax.mdp import LinearMDP, optimal_policy, rollout, uniform_policy
from robust_rlhf_jax.preferences import PreferenceData

from .base import compared_mdp, replace_rows

ROLLOUTS = 256


class Pool(NamedTuple):
    """M trajectories: `states` [M, H+1], `actions` [M, H], and `z` [M, k], what each adds to a difference x."""

    states: Int[Array, "M H+1"]
    actions: Int[Array, "M H"]
    z: Float[Array, "M k"]

    @property
    def size(self) -> int:
        return self.z.shape[0]


def trajectory_pool(key: PRNGKeyArray, data: PreferenceData, mdp: LinearMDP) -> Pool:
    """The 2N trajectories of the data, then `ROLLOUTS` each of uniform, of the best and of the worst play.

    Where the data are segments, so are these, from where theirs start; best and worst is then what the segment pays.
    """
    world = compared_mdp(data, mdp)
    policies = uniform_policy(world), optimal_policy(world)[0], optimal_policy(world, -world.theta)[0]
    told = (data.states.reshape(-1, data.horizon + 1), data.actions.reshape(-1, data.horizon))
    played = [rollout(k, world, p, ROLLOUTS) for k, p in zip(jax.random.split(key, 3), policies, strict=True)]
    states, actions = (
        jnp.concatenate([a.astype(own.dtype) for a in (own, *new)])
        for own, new in zip(told, zip(*played, strict=True), strict=True)
    )
    rows = data.reward_lookup[states[:, :-1], actions]
    return Pool(states, actions, jnp.sum(rows, axis=1) if data.stationary else rows.reshape(len(rows), -1))


def extremes(scores: Float[Array, " M"], count: int) -> tuple[Int[Array, " K"], Int[Array, " K"]]:
    """Places of the K lowest scores, lowest first, and of the K highest, highest first; K = min(count, M // 2)."""
    order = jnp.argsort(scores)
    k = min(count, scores.shape[0] // 2)
    return order[:k], order[::-1][:k]


def spread(chosen: Bool[Array, " N"], rows: Int[Array, " K"], columns: Int[Array, " K"]):
    """(row [N], column [N]) for the chosen pairs, the first in order: all K² combinations before one comes again."""
    rank = jnp.maximum(jnp.cumsum(chosen) - 1, 0)
    return rows[rank % rows.shape[0]], columns[(rank + rank // rows.shape[0]) % rows.shape[0]]


def plant(
    data: PreferenceData,
    chosen: Bool[Array, " N"],
    pool: Pool,
    first: Int[Array, " N"],
    second: Int[Array, " N"],
    labels: float | Float[Array, "*N"],
) -> PreferenceData:
    """Trajectory 1 of a chosen pair becomes the pool's `first`, trajectory 0 its `second`; x = z_first − z_second."""
    rows = jnp.stack([second, first], axis=1)
    return retell(data, chosen, pool.states[rows], pool.actions[rows], labels)


def retell(
    data: PreferenceData,
    chosen: Bool[Array, " N"],
    states: Int[Array, "N 2 H+1"],
    actions: Int[Array, "N 2 H"],
    labels: float | Float[Array, "*N"],
) -> PreferenceData:
    """The chosen pairs get these states [N, 2, H+1], actions [N, 2, H] and labels, and the table's features of them."""
    told = states[..., :-1], actions
    reward = data.reward_features
    if reward is not None:
        reward = replace_rows(chosen, data.reward_lookup[told], reward).astype(reward.dtype)
    return dataclasses.replace(
        data,
        states=replace_rows(chosen, states, data.states).astype(data.states.dtype),
        actions=replace_rows(chosen, actions, data.actions).astype(data.actions.dtype),
        features=replace_rows(chosen, data.state_features[told], data.features).astype(data.features.dtype),
        labels=jnp.where(chosen, labels, data.labels).astype(data.labels.dtype),
        reward_features=reward,
    )
