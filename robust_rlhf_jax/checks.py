"""Host-side checks of single values that every public function shares."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

# How far chances that a caller rounded may be below 0, and their sum from 1.
ROUNDING = 1e-4


def is_traced(x: Any) -> bool:
    """Whether x is known only to the compiler: then its values cannot be checked."""
    return isinstance(x, Tracer)


def check_known(**given: Any) -> None:
    """Check that none of the values is traced, where they must be seen.

    **Raises:** ValueError that names the first that is.
    """
    for name, values in given.items():
        if is_traced(values):
            raise ValueError(
                f"the values of {name} are needed here, and jax.jit, jax.vmap or the like traces them: give an array "
                "that is no argument of the traced function, or call this outside of it."
            )


def check_epsilon(epsilon: Any) -> None:
    """Check that ε is one number in [0, 1/2); the value of a traced ε is not seen.

    **Raises:** ValueError for an array, a text, True, False, None, or a number that is not finite, negative, or 1/2 and
    more: with half of the pairs corrupted, clean data cannot be told from corrupted data.
    """
    shape = np.shape(epsilon) if is_traced(epsilon) else _fractions(epsilon).shape
    if shape:
        raise ValueError(f"epsilon=an array of shape {shape} is not a number: give one fraction in [0, 0.5).")
    check_epsilons(epsilon)


def check_epsilons(epsilon: Any) -> None:
    """Check that every entry of ε, a number or an array of any shape, is in [0, 1/2); skip a traced ε.

    **Raises:** ValueError as `check_epsilon`, arrays apart.
    """
    if is_traced(epsilon):
        return
    values = _fractions(epsilon)
    bad = values[~((values >= 0) & (values < 0.5))]
    if bad.size:
        raise ValueError(
            f"epsilon={bad.flat[0]:g} is outside [0, 0.5): give the fraction of pairs that may be corrupted, "
            "less than one half."
        )


def _fractions(epsilon: Any) -> np.ndarray:
    try:
        # NumPy would read the number in a text, take None for NaN, and False for 0, which switches doubt off.
        if np.asarray(epsilon).dtype.kind in "USb" or epsilon is None:
            raise TypeError
        return np.asarray(epsilon, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"epsilon={epsilon!r} is not a number: give a fraction in [0, 0.5).") from None


def as_epsilon(epsilon: float | Float[Array, "..."], dtype: Any) -> Float[Array, "..."]:
    """ε in a precision, below ½ as it was: .4999999999 is ½ in float32."""
    return jnp.minimum(jnp.asarray(epsilon, dtype), 0.5 - jnp.finfo(dtype).eps)


def as_floats(x: Any) -> Array:
    """An array in the precision in which it is worked with: half-precision floats become float32, others stay."""
    x = jnp.asarray(x)
    return x.astype(jnp.float32) if x.dtype in (jnp.float16, jnp.bfloat16) else x


def check_positive(value: Any, name: str, or_zero: bool = False) -> None:
    """Check that a number is positive and finite, with `or_zero` that it is at least 0; skip a traced one.

    **Raises:** ValueError that names it.
    """
    if not is_traced(value) and np.size(value) != 1:
        raise ValueError(f"{name} is an array of shape {np.shape(value)}: give one number.")
    try:
        if is_traced(value) or (np.isfinite(value) and (value > 0 or (or_zero and value == 0))):
            return
    except TypeError:  # no number
        pass
    least = "at least 0" if or_zero else "positive"
    raise ValueError(f"{name}={value} must be {least} and finite.")


def are_chances(values: Any, rounding: float = ROUNDING) -> bool:
    """Whether values, along the last axis, are at least 0 and sum to 1, but for a caller's rounding."""
    chances = np.asarray(values, np.float64)
    return bool(chances.min() >= -rounding and np.abs(chances.sum(axis=-1) - 1).max() <= rounding)


def check_finite(x: Any, name: str) -> None:
    """Check that no entry of x is NaN or infinite; skip traced x.

    **Raises:** ValueError that names the first such entry.
    """
    if is_traced(x):
        return
    values = np.asarray(x)
    bad = np.argwhere(~np.isfinite(values))
    if bad.size:
        at = tuple(int(i) for i in bad[0])
        place = ", ".join(map(str, at))
        raise ValueError(f"{name}[{place}] is {values[at]}: every entry must be finite.")


def check_labels(labels: Any) -> None:
    """Check that every label is +1 or −1; skip traced labels.

    **Raises:** ValueError for any other value: with labels 0/1 a loss would pass over every pair labelled 0.
    """
    if is_traced(labels):
        return
    values = np.asarray(labels)
    if values.dtype.kind in "USOM" or values.dtype.names:
        other = [label for label in values.ravel().tolist() if not _is_number(label)]
        if other:  # texts, of which NumPy would read the numbers, among them
            raise ValueError(
                f"labels holds {other[0]!r}: every label must be the number +1 or -1; map what you have to these."
            )
    if values.dtype.kind == "c":
        raise ValueError(
            f"labels has dtype {values.dtype}: every label must be the real number +1 or -1; give labels.real."
        )
    bad = np.argwhere(np.abs(values.astype(np.float64)) != 1)
    if bad.size:
        at = tuple(int(i) for i in bad[0])
        place = ", ".join(map(str, at))
        raise ValueError(
            f"labels[{place}] is {values[at]!s}: every label must be +1 or -1 ({_hint(values)})."
        )


def _hint(labels: np.ndarray) -> str:
    """What labels that are not all ±1 look like."""
    if np.isin(labels, (0, 1)).all():
        return "labels look like 0/1, map 0 to -1"
    if np.isin(labels, (-1, 0, 1)).all():
        return "a 0 looks like a tie: leave ties out, or give them a strength of 0 in Pairs"
    return "+1 means that trajectory 1 is preferred"


def _is_number(value: Any) -> bool:
    """Whether a value is one real number, of Python, NumPy or JAX; texts of NumPy have `__float__`, too."""
    return hasattr(value, "__float__") and not isinstance(value, str | bytes) and np.ndim(value) == 0


def check_key(key: Any) -> None:
    """Check that `key` is one key of `jax.random`, of either kind; a traced key is held to it, too.

    **Raises:** ValueError for what is no key, such as a seed, and for an array of keys.
    """
    dtype = getattr(key, "dtype", np.dtype(object))
    new_style = jnp.issubdtype(dtype, jax.dtypes.prng_key)
    if not new_style and dtype != np.uint32:
        raise ValueError(
            f"key={key!r} is no key of JAX: give jax.random.key(seed), with a whole number for seed."
        )
    one = () if new_style else jax.eval_shape(jax.random.PRNGKey, 0).shape
    if key.shape != one:
        raise ValueError(
            f"key has shape {key.shape}, where one key has {one}: give one key of JAX, such as jax.random.key(0); "
            "jax.vmap goes over several."
        )


# JAX's keys hold so many seeds: others would be one of these under another name.
SEEDS = 2**32


def check_seed(seed: int) -> None:
    """**Raises:** ValueError for a seed that is negative, or so large that it would stand for a smaller one."""
    if not 0 <= seed < SEEDS:
        shown = f"{seed}" if abs(seed) < 10**30 else "a number of more than 30 digits"
        raise ValueError(f"seed={shown} is outside 0 to {SEEDS - 1}: give a whole number in between.")
