"""Pairs that a fit can take: shapes, types and values, each mistake in one sentence."""

import reprlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from robust_rlhf_jax.checks import check_known, is_traced

from .given_arrays import are_truths, as_floats
from .pairs import BY_PAIR, Pairs, check_length

# Rows that are looked at in one go.
_BLOCK = 4096


def check_pairs(pairs: Pairs) -> None:
    """Check shapes, dtypes and values of `pairs` on the host; return nothing. Traced features are taken as they are.

    **Raises:** ValueError that names the file, if any, and the first field that is wrong.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax import Pairs, check_preferences
    >>> check_preferences(Pairs(np.ones((2, 1)), np.ones((2, 1))))
    Traceback (most recent call last):
    ValueError: Both options of every pair have the same features, or as good as the same in float32, so no direction \
of theta can be learnt: give pairs that differ.
    """
    try:
        _check_fields(pairs)
        if not is_traced(pairs.chosen) and not is_traced(pairs.rejected):
            _check_features(pairs)
    except ValueError as error:
        raise ValueError(str(error) if pairs.path == Path("pairs") else f"{pairs.path}: {error}") from None


def _check_fields(pairs: Pairs) -> None:
    for side in ("chosen", "rejected"):
        values = getattr(pairs, side)
        if hasattr(values, "toarray"):
            raise ValueError(f"{side} is a sparse matrix: give {side}.toarray().")
        dtype, shape = getattr(values, "dtype", None) or np.asarray(values).dtype, np.shape(values)
        if dtype.kind not in "biuf" and not jnp.issubdtype(dtype, jnp.floating):
            raise ValueError(
                f"{side} has dtype {dtype}: give an array of numbers{_no_number(values, side, pairs.names)}."
            )
        if len(shape) != 2 or 0 in shape:
            raise ValueError(f"{side} has shape {shape}: give [N, p], with N ≥ 1 pairs of p ≥ 1 features.")
    shapes = np.shape(pairs.chosen), np.shape(pairs.rejected)
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"chosen has shape {shapes[0]} and rejected {shapes[1]}: both must be the same [N, p]."
        )
    if not is_traced(pairs.swapped) and not are_truths(np.asarray(pairs.swapped)):
        raise ValueError("swapped must be true or false for each pair.")
    n, _ = shapes[0]
    for name in BY_PAIR:
        check_length(getattr(pairs, name), name, n)
    check_known(weights=pairs.weights, strength=pairs.strength)
    for name in ("weights", "strength"):
        part = getattr(pairs, name)
        if part is not None and not np.all(good := (part >= 0) & np.isfinite(part)):
            i = int(np.argmin(good))
            raise ValueError(f"{name}[{i}] is {part[i]:g}: every entry must be finite and not negative.")


def _no_number(values: Any, side: str, names: Sequence[str]) -> str:
    """Which entry of an array of objects is the first that is no number, for a message."""
    array = np.asarray(values)
    if array.dtype.kind in "US":
        return "; texts become features by io.load_pairs(rows), with rows of prompt, chosen and rejected"
    for at, cell in np.ndenumerate(array) if array.dtype == object else ():
        if not isinstance(cell, int | float | np.number | np.bool_):
            place = f"[{', '.join(map(str, at))}]" if at else ""
            column = f" ({names[at[1]]})" if len(at) == 2 and len(names) == array.shape[1] else ""
            return f"; {side}{place}{column} is {reprlib.repr(cell)}"
    return ""


def _check_features(pairs: Pairs) -> None:
    """Features, and what they differ by, fit into JAX's floats, somewhere they differ, and no column is lost there."""
    chosen, rejected = np.asarray(as_floats(pairs.chosen)), np.asarray(as_floats(pairs.rejected))
    for side, values in (("chosen", chosen), ("rejected", rejected)):
        wrong = np.argwhere(~np.isfinite(values))
        if len(wrong):
            at = tuple(wrong[0])
            raise ValueError(f"{side}[{at[0]}, {at[1]}] is {values[at]}: every entry must be finite.")
    x = np.asarray(pairs.preferred_differences())
    float_type = jax.dtypes.canonicalize_dtype(x.dtype)
    limits = jnp.finfo(float_type)
    for what, values in (("chosen_", chosen), ("rejected_", rejected), ("chosen − rejected ", x)):
        # In another precision than the difference, a side may not hold the limit.
        with np.errstate(over="ignore"):
            wrong = np.argwhere(np.abs(values) > float(limits.max))
        if len(wrong):
            at = tuple(wrong[0])
            raise ValueError(
                f"column {what}{pairs.names[at[1]]} is {values[at]:g} in row {pairs.rows[at[0]] + 1}, more than a "
                f"float holds ({float(limits.max):.2g}): give the feature in a larger unit."
            )
    # Almost always the first block settles it, so that large data cost nothing here.
    blocks = (x[i : i + _BLOCK] for i in range(0, len(x), _BLOCK))
    if not any((np.abs(block) >= float(limits.tiny)).any() for block in blocks):
        raise ValueError(
            "Both options of every pair have the same features, or as good as the same in "
            f"{float_type}, so no direction of theta can be learnt: give pairs that differ."
        )
    check_columns_kept(x, "chosen − rejected", pairs.names)


def check_columns_kept(x: Float[np.ndarray, "N p"], what: str, names: Sequence[str]) -> None:
    """**Raises:** ValueError for a column of differences that JAX's floats make 0."""
    float_type = jax.dtypes.canonicalize_dtype(x.dtype)
    if x.dtype == float_type:
        return
    lost = np.flatnonzero(x.any(axis=0) & ~(np.abs(x) >= jnp.finfo(float_type).tiny).any(axis=0))
    if len(lost):
        raise ValueError(
            f"column {what} {names[lost[0]]} is as good as 0 in {float_type}: give the feature in a smaller unit."
        )
