"""Pairs of single options, described by their features, as data of horizon 1 with a table, which planning needs."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Float

from robust_rlhf_jax.checks import check_known, check_labels
from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.io.frames import aligned_frames, unmasked, usual_names
from robust_rlhf_jax.io.pair_checks import check_columns_kept
from robust_rlhf_jax.io.pairs import given_names
from robust_rlhf_jax.row_order import check_rows

from .data import PreferenceData
from .rounding import lost_to_rounding
from .validation import check_preferences


def preferences_from_options(
    option0: Float[ArrayLike, "N p"], option1: Float[ArrayLike, "N p"], labels: Float[ArrayLike, " N"]
) -> PreferenceData:
    """Preference data of H = 1 from the features of two options per pair: x_n = option1_n − option0_n.

    The table has one row (and one action) per distinct option; a state is an option, and its next state is
    the option itself. Runs on the host, since the number of distinct options is a shape.

    **Arguments:** `option0`, `option1` [N, p] numbers, columns of data frames by their names; `labels` [N], +1 where
    option 1 is preferred, else −1.

    **Returns:** `PreferenceData` with N pairs, H = 1, A = 1, d = p, in float32 (float64 for float64 input if
    JAX has x64 enabled). Options are subtracted before they are cast (`rounding`): x is right where they are large.
    `names` are those of the columns of data frames.

    **Raises:** ValueError for shapes that differ, entries that are not numbers, data frames of other columns or of the
    same index in another order, traced arrays, columns whose differences are 0 in those floats alone, and all that
    `check_preferences` refuses.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax import preferences_from_options
    >>> data = preferences_from_options(np.array([[3.0], [0.0]]), np.array([[1.0], [1.0]]), np.array([-1.0, 1.0]))
    >>> data.differences()[:, 0].tolist(), data.labels.tolist()
    ([-2.0, 1.0], [-1.0, 1.0])
    """
    exact, names = _stack({"option0": option0, "option1": option1}, labels)
    return _from_stack(exact, labels, names)


def _from_stack(exact: Float[np.ndarray, "N 2 p"], labels: Any, names: tuple[str, ...]) -> PreferenceData:
    dtype = jax.dtypes.canonicalize_dtype(np.result_type(exact, np.float32))
    rounding = lost_to_rounding(exact[:, :, None, :], dtype)
    with np.errstate(over="ignore"):  # what overflows float32 becomes inf, which check_preferences names
        options = exact.astype(dtype)
    signs = _label_array(labels, len(options), options.dtype)
    n, _, p = options.shape
    table, rows = np.unique(options.reshape(-1, p), axis=0, return_inverse=True)
    states = np.repeat(rows.reshape(n, 2, 1).astype(np.int32), 2, axis=2)
    actions = np.zeros((n, 2, 1), np.int32)
    fields = (table[:, None, :], states, actions, options[:, :, None, :], signs)
    data = PreferenceData(*fields, rounding=rounding, names=names)  # pyright: ignore[reportArgumentType]
    check_preferences(data)
    check_columns_kept(exact[:, 1] - exact[:, 0], "option1 − option0", names or usual_names(p))
    return jax.device_put(data)  # may share memory: every array above is a copy of its own


def preferences_from_features(
    chosen: Float[ArrayLike, "N p"],
    rejected: Float[ArrayLike, "N p"],
    labels: Float[ArrayLike, " N"] | None = None,
) -> PreferenceData:
    """Preference data of H = 1 from the features of the chosen and of the rejected option of each pair.

    o_n·x_n = chosen_n − rejected_n whatever `labels` are, so the likelihood does not depend on them. They say where the
    chosen option stands: trajectory 1 for +1, trajectory 0 for −1. By default all are +1, so the position reveals the
    label: pass random labels ±1 if you use a method that looks at x alone, such as its mean.

    **Arguments:** `chosen`, `rejected` [N, p] numbers, columns of data frames by their names; `labels` [N] of ±1 or
    None.

    **Raises:** ValueError as `preferences_from_options`.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax import preferences_from_features
    >>> data = preferences_from_features(np.array([[3.0, 1.0], [0.0, 2.0]]), np.array([[1.0, 1.0], [1.0, 0.0]]))
    >>> data.differences().tolist()
    [[2.0, 0.0], [-1.0, 2.0]]
    """
    options, names = _stack({"chosen": chosen, "rejected": rejected}, labels)
    signs = np.ones(len(options)) if labels is None else labels
    signs = _label_array(signs, len(options), options.dtype)
    first = (signs == 1)[:, None, None]
    return _from_stack(np.where(first, options[:, ::-1], options), signs, names)


def _stack(named: dict[str, Any], labels: Any) -> tuple[Float[np.ndarray, "N 2 p"], tuple[str, ...]]:
    """Two named arrays [N, p] as one [N, 2, p], integers in float64, and the names of their features.

    The rows of frames stand as those of `labels`.
    """
    check_rows(**named, labels=labels)
    check_known(**named, labels=labels)
    (first_name, first), (second_name, second) = named.items()
    pairs = Pairs(first, aligned_frames(first, second, (first_name, second_name))[0])
    arrays = dict(zip(named, map(np.asarray, (pairs.chosen, pairs.rejected)), strict=True))
    for name, x in arrays.items():
        if x.dtype.kind not in "biuf" and not jnp.issubdtype(x.dtype, jnp.floating):
            raise ValueError(f"{name} has dtype {x.dtype}: give an array of numbers.")
        if x.ndim != 2 or 0 in x.shape:
            raise ValueError(f"{name} has shape {x.shape}: give [N, p], with N ≥ 1 pairs of p ≥ 1 features.")
    (name0, a), (name1, b) = arrays.items()
    if a.shape != b.shape:
        raise ValueError(f"{name0} has shape {a.shape} and {name1} {b.shape}: both must be the same [N, p].")
    return np.stack([a, b], axis=1).astype(np.result_type(a, b, np.float32)), given_names(pairs)


def _label_array(labels: Any, n: int, dtype: Any):
    labels = np.asarray(unmasked(labels))
    if labels.shape != (n,):
        raise ValueError(f"labels has shape {labels.shape}: give one label for each of the {n} pairs.")
    if labels.dtype.kind in "biuf":
        return labels.astype(dtype)
    check_labels(labels)  # names the first that is no number
    return labels.astype(dtype) if labels.dtype == object else labels
