"""Lists, columns and arrays of any type that a user gives, as arrays of numbers; what is traced stays as it is."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from robust_rlhf_jax.checks import is_traced

from .frames import is_arrow, unmasked


def same(one: Any, other: Any) -> bool:
    arrays = any(hasattr(value, "shape") for value in (one, other))
    return np.array_equal(one, other) if arrays else bool(one == other)


def same_parts(one: tuple, other: object) -> bool:
    """Whether they are tuples of one type with the same parts, arrays among them, which `==` of tuples cannot ask."""
    return isinstance(other, type(one)) and len(one) == len(other) and all(map(same, one, other))


def other_parts(one: tuple, other: object) -> bool:
    return not same_parts(one, other)


def traced_or_host(values: Any) -> Any:
    """Values that only the compiler knows as they are, others as an array of NumPy."""
    return values if is_traced(values) else np.asarray(unmasked(values))


def where(condition: Any, one: Any, other: Any) -> Any:
    """`np.where`, also of what only the compiler knows."""
    return (jnp if any(map(is_traced, (condition, one, other))) else np).where(condition, one, other)


def array_of(values: Any, name: str) -> Any:
    """Lists, and columns and frames of pandas, Arrow and the like, as arrays; arrays and None as they are.

    **Raises:** ValueError for a list of lists of several lengths.
    """
    if isinstance(values, list | tuple):
        try:
            return np.asarray([unmasked(value) for value in values])
        except ValueError:
            raise ValueError(
                f"{name} is a list whose entries have several lengths: give entries of one length."
            ) from None
    if is_arrow(values):  # a column of words goes into NumPy by a copy alone, which its `to_numpy` refuses
        return np.asarray(values)
    return values.to_numpy() if hasattr(values, "to_numpy") else unmasked(values)


def of_numbers(side: Any) -> Any:
    """Options that are columns of lists as a matrix, and true, false and numbers of several types as floats."""
    if not isinstance(side, np.ndarray) or side.dtype != object or not side.size:
        return side
    if side.ndim == 1 and len({np.shape(row) for row in side}) == 1 and np.ndim(side[0]) == 1:
        side = np.stack(list(side))
    if side.dtype == object and all(
        isinstance(cell, int | float | np.number | np.bool_) for cell in side.flat
    ):
        return side.astype(float)
    return side


def are_truths(values: np.ndarray) -> bool:
    """Whether they are true and false, or 0 and 1: −1 and words count as true."""
    if values.dtype == object:
        return all(isinstance(value, bool | np.bool_) for value in values.flat)
    return values.dtype.kind in "biuf" and bool(np.isin(values, (0, 1)).all())


def as_floats(side: Any) -> Any:
    """Features as an array of at least float32; JAX arrays stay where they are."""
    side = side if isinstance(side, jax.Array) else np.asarray(side)
    if side.dtype in (np.float32, np.float64):
        return side
    # JAX has no longer floats than float64.
    wanted = np.float64 if side.dtype == np.longdouble else np.result_type(side.dtype, np.float32)
    return side.astype(wanted)
