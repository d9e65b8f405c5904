"""Checks of preference data on the host, before anything is compiled."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from jaxtyping import Float

from robust_rlhf_jax.checks import check_labels, is_traced
from robust_rlhf_jax.io import Pairs, check_pairs

from .data import PreferenceData

# `actions` comes before `states`, so that H is known when H+1 is checked.
_AXES = {
    "state_features": ("S", "A", "d"),
    "actions": ("N", 2, "H"),
    "states": ("N", 2, "H+1"),
    "features": ("N", 2, "H", "d"),
    "labels": ("N",),
    "reward_table": ("S", "A", "p"),
    "reward_features": ("N", 2, "H", "p"),
    "planning_start": ("S",),
}
_REALS = ("state_features", "features", "reward_table", "reward_features", "planning_start", "rounding")
_BY_PAIR = ("features", "reward_features", "rounding")
_BLOCK = 4096


def no_preferences(data: Any, sources: bool = True) -> TypeError:
    """The error for `data` of another type, such as a path or a tuple of arrays; whether `sources` will do."""
    given = "Pairs(chosen, rejected), what load(path) or io.load_pairs(rows) reads"
    ways = f"{given}, or what sources.open_pairs(path) opens" if sources else f"{given}, or PreferenceData"
    return TypeError(f"data is of the type {type(data).__name__}: give {ways}.")


def check_source(data: Any) -> None:
    """**Raises:** TypeError for what is no `PairSource`."""
    if not hasattr(data, "blocks"):
        raise no_preferences(data)


def check_decided(pairs: Pairs) -> None:
    """**Raises:** ValueError for ties and pairs of weight 0."""
    if not pairs.fitted.all():
        raise ValueError(
            f"{pairs.path} has {int((~pairs.fitted).sum())} ties or pairs of weight 0, which say nothing: give "
            "pairs.decided()."
        )


def check_preferences(data: PreferenceData | Pairs) -> None:
    """Check shapes, dtypes and values of `data` on the host; return nothing.

    Shapes must agree with the table in `PreferenceData`, reals must be finite float32 or float64, labels +1
    or −1, states < S, actions < A, and the x_n = φ(τ¹_n) − φ(τ⁰_n) finite and not all zero (else no direction of
    θ can be learnt). A planning horizon needs one θ for all steps; a planning start, which needs a planning horizon, is
    a distribution. Values of traced leaves are skipped, shapes and dtypes never: a function that is jitted or vmapped
    may call this. Pairs are checked by `io.check_pairs`.

    **Raises:** ValueError that names the first field, and the first entry of it, that is wrong; for a `PairSource`;
    TypeError for what holds no preferences.

    **Example:**

    >>> import dataclasses
    >>> from robust_rlhf_jax import check_preferences, load_rail_choices
    >>> rail = load_rail_choices()
    >>> check_preferences(dataclasses.replace(rail, labels=rail.labels + 1))
    Traceback (most recent call last):
    ValueError: labels[0] is 0.0: every label must be +1 or -1 (+1 means that trajectory 1 is preferred).
    """
    if isinstance(data, Pairs):
        return check_pairs(data)
    if hasattr(data, "blocks"):
        raise ValueError(
            "this takes pairs in memory, and not a PairSource, which fit_reward, estimate_epsilon and audit.flag read "
            "by passes: give Pairs or PreferenceData."
        )
    if not isinstance(data, PreferenceData):
        raise no_preferences(data, sources=False)
    _check_shapes(data)
    _check_rounding(data)
    if data.names and len(data.names) != data.reward_dim:
        raise ValueError(
            f"names has length {len(data.names)}: give one for each of the {data.reward_dim} reward features, or ()."
        )
    for name in _REALS:
        _check_real(name, getattr(data, name))
    _check_labels(data.labels)
    n_states, n_actions, _ = data.state_features.shape
    _check_indices("states", data.states, n_states)
    _check_indices("actions", data.actions, n_actions)
    _check_plans(data)
    _check_differences(data)
    _check_directions(data)


def _values(leaf: Any):
    """The leaf as a NumPy array, or None where it is absent or traced."""
    return None if leaf is None or is_traced(leaf) else np.asarray(leaf)


def _check_shapes(data: PreferenceData):
    if (data.reward_table is None) != (data.reward_features is None):
        raise ValueError("reward_table and reward_features come together: give both, or neither.")
    sizes = {}
    for name, axes in _AXES.items():
        leaf = getattr(data, name)
        if leaf is not None:
            if not hasattr(leaf, "dtype"):
                raise ValueError(f"{name} is a {type(leaf).__name__}: give a NumPy or JAX array.")
            _check_shape(name, leaf.shape, axes, sizes)
        if name == "actions":
            sizes["H+1"] = sizes["H"] + 1


def _check_rounding(data: PreferenceData):
    if data.rounding is None:
        return
    n, _, *rest = data.observed_reward_features.shape
    if getattr(data.rounding, "shape", None) != (n, *rest):
        raise ValueError(f"rounding must have shape {(n, *rest)}, one entry for each difference.")


def _check_shape(name: str, shape: tuple[int, ...], axes: tuple[str | int, ...], sizes: dict[Any, int]):
    """Match `shape` with `axes`: named sizes are fixed by the first field that has them."""
    known = tuple(axis if isinstance(axis, int) else sizes.get(axis, axis) for axis in axes)
    fits = len(shape) == len(axes) and all(
        k == n for k, n in zip(known, shape, strict=True) if isinstance(k, int)
    )
    if not fits:
        raise ValueError(f"{name} has shape {shape}; it must be [{_join(axes)}], here [{_join(known)}].")
    if 0 in shape:
        missing = axes[shape.index(0)]
        hint = (
            "no pairs: give at least one"
            if missing == "N"
            else f"{missing} = 0: every size must be 1 or more"
        )
        raise ValueError(f"{name} has shape {shape}, that is {hint}.")
    sizes.update(zip(axes, shape, strict=True))


def _join(axes: Iterable[Any]):
    return ", ".join(map(str, axes))


def _check_float(name: str, leaf: Any):
    # The bisection kernels read the bits of a float, and know those of two dtypes.
    if leaf.dtype not in (np.float32, np.float64):
        raise ValueError(f"{name} has dtype {leaf.dtype}: convert it with .astype('float32') (or 'float64').")


def _check_real(name: str, leaf: Any):
    if leaf is None:
        return
    _check_float(name, leaf)
    values = _values(leaf)
    if values is not None and not np.isfinite(values).all():
        where = np.argwhere(~np.isfinite(values))[0]
        raise ValueError(
            f"{name}[{_join(where)}] is {values[tuple(where)]}: every entry must be finite; mend or drop "
            f"{'pair' if name in _BY_PAIR else 'state'} {where[0]}."
        )


def _check_labels(labels: Any):
    values = _values(labels)
    if values is not None and values.dtype.kind in "biuf":
        check_labels(values)
    _check_float("labels", labels)


def _check_indices(name: str, leaf: Any, size: int):
    if not np.issubdtype(leaf.dtype, np.integer):
        raise ValueError(f"{name} has dtype {leaf.dtype}: convert it with .astype('int32').")
    values = _values(leaf)
    if values is None or (values.min() >= 0 and values.max() < size):
        return
    where = np.argwhere((values < 0) | (values >= size))[0]
    raise ValueError(
        f"{name}[{_join(where)}] is {values[tuple(where)]}, but state_features has {size} {name}: "
        f"indices run from 0 to {size - 1}."
    )


def _check_plans(data: PreferenceData):
    steps = data.planning_horizon
    if steps is None:
        if data.planning_start is not None:
            raise ValueError("planning_start is given without planning_horizon: give both, or drop it.")
        return
    if not isinstance(steps, int | np.integer) or steps < 1:
        raise ValueError(f"planning_horizon={steps} must be a whole number, 1 or more, or None.")
    if not data.stationary:
        raise ValueError(
            f"planning_horizon={steps} needs one theta for all steps: set stationary=True, or drop it."
        )
    start = _values(data.planning_start)
    if start is not None and (start.min() < 0 or abs(start.astype(np.float64).sum() - 1) > 1e-3):
        raise ValueError("planning_start is not a distribution: it must be ≥ 0 and sum to 1.")


def _check_differences(data: PreferenceData):
    """x overflows where options of both signs are near the largest float, or sums over steps of them."""
    observed = _values(data.observed_reward_features)
    if observed is None or np.abs(observed).max() < np.finfo(observed.dtype).max / (4 * observed.shape[2]):
        return
    with np.errstate(over="ignore", invalid="ignore"):
        x = observed[:, 1] - observed[:, 0]
        x = x.sum(axis=1) if data.stationary else x
    bad = np.argwhere(~np.isfinite(x))
    if bad.size:
        raise ValueError(
            f"the trajectories of pair {bad[0][0]} differ by more than {observed.dtype} holds "
            f"({np.finfo(observed.dtype).max:.2g}) in feature {bad[0][-1]}: give it in a larger unit."
        )


def _check_directions(data: PreferenceData):
    observed = _values(data.observed_reward_features)
    if observed is None or data.rounding is not None:  # which is there only where pairs differ
        return
    # Almost always the first block settles it, so that large data cost nothing here.
    blocks = (observed[i : i + _BLOCK] for i in range(0, len(observed), _BLOCK))
    if not any(_any_difference(block, data.stationary) for block in blocks):
        raise ValueError(
            "Both trajectories of every pair have the same reward features, or as good as the same in "
            f"{observed.dtype}, so no direction of theta can be learnt: give pairs that differ."
        )


def _any_difference(block: Float[np.ndarray, "n 2 H p"], stationary: bool):
    """Whether any x of a block [n, 2, H, p] is a number that XLA does not flush to 0; sums over steps are compared
    with their rounding.
    """
    x = block[:, 1] - block[:, 0]
    if not stationary:
        return bool((np.abs(x) >= np.finfo(block.dtype).tiny).any())
    rounding = block.shape[2] * np.finfo(block.dtype).eps * np.abs(block).max(axis=(1, 2))
    with np.errstate(over="ignore", invalid="ignore"):
        return bool((np.abs(x.sum(axis=1)) > rounding).any())
