"""The preference data set as a pytree."""

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from robust_rlhf_jax.checks import check_key, is_traced
from robust_rlhf_jax.module import Module


class PreferenceData(Module):
    """N labelled pairs of trajectories over a table of state-action features.

    | field | shape | meaning |
    |---|---|---|
    | `state_features` | [S, A, d] | φ(s,a); next-state features are gathered from it, never stored per sample |
    | `states` | [N, 2, H+1] int | s_1…s_{H+1} of both trajectories |
    | `actions` | [N, 2, H] int | |
    | `features` | [N, 2, H, d] | φ(s_h,a_h) as observed: an attacker may have replaced them |
    | `labels` | [N] | +1: trajectory 1 is preferred; −1: trajectory 0 |
    | `reward_table` | [S, A, p] or None | features that the reward is linear in, None: `state_features` |
    | `reward_features` | [N, 2, H, p] or None | the same as observed, None: `features` |
    | `stationary` | static bool | one θ for all steps, so that x sums over them |
    | `planning_horizon` | static int or None | steps that plans run for, None: H |
    | `planning_start` | [S] or None | distribution of the state that plans start in, None: that of s_1 |
    | `rounding` | [N, H, p] or None | what holding the reward features in float32 took from their differences |
    | `names` | static | of the p reward features; () where nobody named them |

    Pairs of short segments can be used for long episodes: with a `planning_horizon`, rewards and dynamics are taken to
    be the same at every step; it needs `stationary`.
    `rounding` enters `differences`, and so every decision about x: its span, its null directions, the fit. Planners and
    E_ref[φ] use the features as they are held, since a plan needs no differences: subtract a constant from a column of
    large numbers (Unix times) beforehand, which moves the returns of all policies alike.
    Continuous data have one row of `state_features` per distinct state. Trajectory 0 comes first along axis 1.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import sample_preferences, worlds
    >>> data = sample_preferences(jax.random.key(0), worlds.chain_mdp(), 200)
    >>> data.n_pairs, data.horizon, data.reward_dim, data.differences().shape
    (200, 10, 10, (200, 100))
    """

    state_features: Float[Array, "S A d"]
    states: Int[Array, "N 2 H+1"]
    actions: Int[Array, "N 2 H"]
    features: Float[Array, "N 2 H d"]
    labels: Float[Array, " N"]
    reward_table: Float[Array, "S A p"] | None = None
    reward_features: Float[Array, "N 2 H p"] | None = None
    stationary: bool = eqx.field(static=True, default=False)
    planning_horizon: int | None = eqx.field(static=True, default=None)
    planning_start: Float[Array, " S"] | None = None
    rounding: Float[Array, "N H p"] | None = None
    names: tuple[str, ...] = eqx.field(static=True, default=())

    @property
    def n_pairs(self) -> int:
        return self.labels.shape[-1]

    @property
    def horizon(self) -> int:
        return self.actions.shape[-1]

    @property
    def plan_steps(self) -> int:
        """Steps of a plan: the planning horizon, or H."""
        return self.horizon if self.planning_horizon is None else self.planning_horizon

    @property
    def pooled(self) -> bool:
        """Whether the dynamics are one and the same at every step, so that all transitions are pooled."""
        return self.planning_horizon is not None

    @property
    def reward_dim(self) -> int:
        return self.observed_reward_features.shape[-1]

    @property
    def theta_dim(self) -> int:
        """Length of the flat θ: H·p, or p when θ is shared over steps."""
        return self.reward_dim if self.stationary else self.horizon * self.reward_dim

    @property
    def observed_reward_features(self) -> Float[Array, "N 2 H p"]:
        return self.features if self.reward_features is None else self.reward_features

    @property
    def reward_lookup(self) -> Float[Array, "S A p"]:
        return self.state_features if self.reward_table is None else self.reward_table

    def differences(self) -> Float[Array, "N k"]:
        """x = φ(τ¹) − φ(τ⁰), flat: k = H·p, or p (summed over steps) when θ is shared.

        As exact as the file where `rounding` is known: two times in seconds since 1970 are the same in float32.
        """
        return _differences(self.observed_reward_features, self.rounding, self.stationary)

    def per_step(self, theta: Float[Array, " k"]) -> Float[Array, "P p"]:
        """A flat θ as one row per step of a plan."""
        if self.stationary:
            return jnp.broadcast_to(theta, (self.plan_steps, self.reward_dim))
        return self.per_compared_step(theta)

    def per_compared_step(self, theta: Float[Array, " k"]) -> Float[Array, "H p"]:
        """A flat θ as one row per step of a compared trajectory."""
        if self.stationary:
            return jnp.broadcast_to(theta, (self.horizon, self.reward_dim))
        return theta.reshape(self.horizon, self.reward_dim)

    def flat(self, theta: Float[Array, "H p"]) -> Float[Array, " k"]:
        """One row per step as a flat θ (the mean over steps when θ is shared)."""
        return jnp.mean(theta, axis=0) if self.stationary else theta.reshape(-1)

    def take(self, rows: Int[Array, " M"] | Bool[np.ndarray, " N"] | Sequence[int]) -> "PreferenceData":
        """The pairs at `rows`, in that order, or where a mask [N] is true; the table is shared.

        **Raises:** ValueError for rows that are no list of whole numbers below N in size, or a mask of another length.
        """
        rows = rows if is_traced(rows) else _numbers(rows, self.n_pairs)
        return self.replace_pairs(lambda x: _gather(x, rows))

    def replace_pairs(self, change: Callable[[Array], Array]) -> "PreferenceData":
        """Apply `change` to every array that has one row per pair."""
        names = ("states", "actions", "features", "labels", "reward_features", "rounding")
        rows = {name: getattr(self, name) for name in names}
        return dataclasses.replace(
            self, **{name: None if x is None else change(x) for name, x in rows.items()}
        )


def _numbers(rows: Any, n_pairs: int) -> np.ndarray:
    """`rows` of `take` as numbers that exist."""
    rows = np.asarray(rows)
    if rows.dtype == bool:
        if rows.shape != (n_pairs,):
            raise ValueError(
                f"rows is a mask of shape {rows.shape}: give one entry for each of the {n_pairs} pairs."
            )
        return np.flatnonzero(rows)
    if rows.ndim != 1:
        raise ValueError(f"rows has shape {rows.shape}: give one number for each pair, [M], or a mask.")
    if not rows.size:
        return rows.astype(np.int32)
    if rows.dtype.kind not in "iu":
        raise ValueError(f"rows holds {rows.dtype} entries: give whole numbers, or a mask of True and False.")
    bad = rows[(rows < -n_pairs) | (rows >= n_pairs)]
    if bad.size:
        raise ValueError(
            f"rows holds {bad.flat[0]}, but there are {n_pairs} pairs: give numbers from 0 to {n_pairs - 1}."
        )
    return rows


@jax.jit  # one program for each shape; eagerly, each operation in it would be one
def _gather(x: Array, rows: Array):
    return x[rows]


@partial(jax.jit, static_argnames="stationary")
def _differences(observed: Float[Array, "N 2 H p"], rounding: Float[Array, "N H p"] | None, stationary: bool):
    x = observed[:, 1] - observed[:, 0]
    x = x if rounding is None else x + rounding
    return jnp.sum(x, axis=1) if stationary else x.reshape(x.shape[0], -1)


def random_split(key: PRNGKeyArray, data: PreferenceData, parts: int) -> list[PreferenceData]:
    """`parts` random disjoint subsets of N // parts pairs each; up to parts − 1 pairs are left over.

    **Raises:** ValueError for what is not one key, no whole number of parts, or if a part would be empty.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import load_rail_choices, random_split
    >>> [part.n_pairs for part in random_split(jax.random.key(0), load_rail_choices(), 2)]
    [1464, 1464]
    """
    check_key(key)
    if not isinstance(parts, int | np.integer):
        raise ValueError(f"parts={parts!r}: give a whole number.")
    size = data.n_pairs // parts if parts > 0 else 0
    if size < 1:
        raise ValueError(
            f"{data.n_pairs} pairs cannot be split in {parts} parts: give at least one pair a part."
        )
    order = jax.random.permutation(key, data.n_pairs)
    return [data.take(order[i * size : (i + 1) * size]) for i in range(parts)]


def changed_pairs(clean: PreferenceData, other: PreferenceData) -> Bool[Array, " N"]:
    """Which pairs differ in label, features, states or actions; NaN equals NaN.

    **Raises:** ValueError if the two sets do not have the same number of pairs and the same fields; TypeError for
    anything but `PreferenceData`.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import attacks, changed_pairs, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> clean = sample_preferences(jax.random.key(0), mdp, 200)
    >>> int(changed_pairs(clean, attacks.flip_random(jax.random.key(1), clean, 0.1, mdp)).sum())
    20
    """
    for data in (clean, other):
        if not isinstance(data, PreferenceData):
            raise TypeError(
                f"changed_pairs compares PreferenceData, and not {type(data).__name__}: of Pairs give "
                "preferences.with_table(pairs)."
            )
    if clean.n_pairs != other.n_pairs or len(_rows(clean)) != len(_rows(other)):
        raise ValueError(f"The two data sets differ in shape: {clean.n_pairs} and {other.n_pairs} pairs.")
    return _differ(_rows(clean), _rows(other))


@jax.jit
def _differ(some: Sequence[Array], others: Sequence[Array]):
    differs = jnp.zeros(some[0].shape[0], bool)
    for a, b in zip(some, others, strict=True):
        same = (a == b) | (jnp.isnan(a) & jnp.isnan(b))
        differs |= jnp.any(~same.reshape(a.shape[0], -1), axis=1)
    return differs


def _rows(data: PreferenceData):
    fields = (data.states, data.actions, data.features, data.labels, data.reward_features, data.rounding)
    return [x for x in fields if x is not None]
