"""Recorded features beside the table that they are read from: where the two differ, the record is corrupt."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from .data import PreferenceData

# Three of float32's seven digits, for sums in another order and a file's decimals. Numbers in float64 may have come
# through float32, and are held to no more.
ROUNDINGS = 1024
# A table that contradicts a larger share of the data is not believed: it is a placeholder, or another world's.
MOST = 0.5


def off_table(data: PreferenceData) -> Bool[Array, " N"]:
    """Pairs whose recorded φ_h is not the table's φ(s_h, a_h), in any step of either trajectory.

    |φ_hj − φ(s_h, a_h)_j| > 1024·ϵ·max_{s,a} |φ(s,a)_j| for some h and j, ϵ the machine's rounding: a column's unit
    makes no difference. If rewards have features of their own, both kinds are checked. Pairs with NaN, or with states
    or actions that the table does not have, are off the table, too. If φ is known, the mask has every pair with planted
    features and no honest pair. Jit- and vmap-able.

    **Raises:** TypeError for anything but `PreferenceData`; `Pairs` have no table.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import off_table, sample_preferences, worlds
    >>> int(off_table(sample_preferences(jax.random.key(0), worlds.chain_mdp(), 200)).sum())
    0
    """
    _check_table(data)
    return _off_table(data)


def _check_table(data: Any) -> None:
    if not isinstance(data, PreferenceData):
        raise TypeError(
            f"data is of the type {type(data).__name__}, and only PreferenceData hold a table to ask: give what "
            "sample_preferences returns, or load(path) of trajectories."
        )


@jax.jit
def _off_table(data: PreferenceData) -> Bool[Array, " N"]:
    states, actions = data.states[..., :-1], data.actions
    n_states, n_actions = data.state_features.shape[-3:-1]
    off = jnp.any((data.states < 0) | (data.states >= n_states), axis=(1, 2))
    off |= jnp.any((actions < 0) | (actions >= n_actions), axis=(1, 2))
    off |= _differs(data.state_features, states, actions, data.features)
    if data.reward_table is None or data.reward_features is None:
        return off
    return off | _differs(data.reward_table, states, actions, data.reward_features)


def _differs(
    table: Float[Array, "S A d"],
    states: Int[Array, "N 2 H"],
    actions: Int[Array, "N 2 H"],
    recorded: Float[Array, "N 2 H d"],
):
    rounding = ROUNDINGS * max(float(jnp.finfo(t).eps) for t in (jnp.float32, table.dtype, recorded.dtype))
    scale = jnp.max(jnp.abs(table), axis=(0, 1))
    near = jnp.abs(recorded - table[states, actions]) <= rounding * scale
    return ~jnp.all(near, axis=(1, 2, 3))


def believed(off: Bool[Array, " N"]) -> Bool[Array, " N"]:
    """`off`, or nothing at all where it is more than half of the pairs.

    **Example:**

    >>> import jax.numpy as jnp
    >>> from robust_rlhf_jax.preferences import believed
    >>> believed(jnp.array([True, False, False])).tolist()
    [True, False, False]
    >>> believed(jnp.array([True, True, False])).tolist()  # a table that contradicts most pairs is not theirs
    [False, False, False]
    """
    return off & (jnp.mean(off) <= MOST)


def stand_ins(off: Bool[Array, " N"]) -> Int[Array, " N"]:
    """The pair that takes the place of each: itself, or of the mask one outside it, in order, and from the first again.

    A mask of all pairs replaces nothing.
    """
    kept = off.shape[-1] - jnp.sum(off)
    source = jnp.argsort(off, stable=True)[(jnp.cumsum(off) - 1) % jnp.maximum(kept, 1)]
    return jnp.where(off & (kept > 0), source, jnp.arange(off.shape[-1]))


def leave_out(data: PreferenceData, off: Bool[Array, " N"]) -> PreferenceData:
    """The data with each pair of the mask replaced by a copy of one outside it (`stand_ins`).

    Copies, since the number of pairs is a shape: filters, fits, means and splits then work as they are, and the pairs
    that were copied count twice. Others keep place and bits.

    **Raises:** ValueError for what is no mask of the pairs, such as their numbers; TypeError as `off_table`.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import attacks, off_table, preferences, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> clean = sample_preferences(jax.random.key(0), mdp, 200)
    >>> bad = attacks.push_features(jax.random.key(1), clean, 0.1, mdp)
    >>> int(off_table(preferences.leave_out(bad, off_table(bad))).sum())
    0
    """
    _check_table(data)
    off = jnp.asarray(off)
    if off.dtype != bool or off.shape != (data.n_pairs,):
        raise ValueError(
            f"off is {off.dtype}{list(off.shape)}: give true or false for each of the {data.n_pairs} pairs."
        )
    return _without(data, off)


@jax.jit
def _without(data: PreferenceData, off: Bool[Array, " N"]) -> PreferenceData:
    return data.take(stand_ins(off))


def ask_table(data: PreferenceData) -> tuple[PreferenceData, Bool[Array, " N"]]:
    """The data without what the table contradicts (`leave_out`), and the mask of `off_table`.

    If more than half of the pairs are off the table, the table is not believed: nothing is replaced, and the mask shows
    those pairs. If no pair is off the table, the data are returned bit for bit.

    **Raises:** TypeError as `off_table`.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import ask_table, attacks, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> clean = sample_preferences(jax.random.key(0), mdp, 200)
    >>> bad = attacks.push_features(jax.random.key(1), clean, 0.1, mdp)
    >>> int(ask_table(bad)[1].sum())
    20
    """
    _check_table(data)
    return _ask_table(data)


@jax.jit
def _ask_table(data: PreferenceData) -> tuple[PreferenceData, Bool[Array, " N"]]:
    off = _off_table(data)
    return _without(data, believed(off)), off
