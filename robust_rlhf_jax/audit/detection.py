"""How well flags or suspicion scores find pairs that are known to be corrupt."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from robust_rlhf_jax.checks import is_traced
from robust_rlhf_jax.kernels.ranking import highest_first, turned


def precision(flagged: Bool[ArrayLike, " N"], corrupt: Bool[ArrayLike, " N"]) -> Float[Array, ""]:
    """#(flagged and corrupt) / #flagged; NaN where nothing is flagged. Jit- and vmap-able.

    **Raises:** ValueError for masks of different shapes, or of more than true and false.

    **Example:**

    >>> from robust_rlhf_jax.audit import precision
    >>> float(precision([True, True, False, False], [True, False, True, False]))
    0.5
    """
    return _share(flagged, corrupt, of=flagged)


def recall(flagged: Bool[ArrayLike, " N"], corrupt: Bool[ArrayLike, " N"]) -> Float[Array, ""]:
    """#(flagged and corrupt) / #corrupt; NaN where nothing is corrupt. Jit- and vmap-able.

    **Raises:** ValueError for masks of different shapes, or of more than true and false.

    **Example:**

    >>> from robust_rlhf_jax.audit import recall
    >>> float(recall([True, False, False, False], [True, False, True, False]))
    0.5
    """
    return _share(flagged, corrupt, of=corrupt)


def precision_recall_curve(
    scores: Float[ArrayLike, " N"], corrupt: Bool[ArrayLike, " N"]
) -> tuple[Float[Array, " N"], Float[Array, " N"], Float[Array, " N"]]:
    """Precision and recall of "flag every pair with score ≥ t" for each score t, from the highest down.

    Tied scores are flagged together and share one point, so the order of the rows does not matter.

    **Returns:** (precision [N], recall [N], thresholds t [N]); recall never falls along the curve.

    **Raises:** ValueError for shapes that differ, a score that is NaN, or a `corrupt` of more than true and false.

    **Example:**

    >>> from robust_rlhf_jax.audit import precision_recall_curve
    >>> precision, recall, thresholds = precision_recall_curve([0.9, 0.8, 0.3, 0.1], [True, False, True, False])
    >>> recall.tolist()
    [0.5, 0.5, 1.0, 1.0]
    """
    return _curve(*_checked(scores, corrupt))


def average_precision(scores: Float[ArrayLike, " N"], corrupt: Bool[ArrayLike, " N"]) -> Float[Array, ""]:
    """Σ_i (R_i − R_{i−1})·P_i along the precision–recall curve; 1 if every corrupt pair outranks every clean one.

    The expected value for scores that know nothing is the share of corrupt pairs. NaN where nothing is corrupt.

    **Raises:** as `precision_recall_curve`.

    **Example:**

    >>> from robust_rlhf_jax.audit import average_precision
    >>> round(float(average_precision([0.9, 0.8, 0.3, 0.1], [True, False, True, False])), 3)
    0.833
    """
    return _average(*_checked(scores, corrupt))


def _share(flagged: ArrayLike, corrupt: ArrayLike, of: ArrayLike) -> jax.Array:
    flagged, corrupt = _mask(flagged, "flagged"), _mask(corrupt, "corrupt")
    _check_shapes(flagged, corrupt)
    return _count_both(flagged, corrupt, jnp.asarray(of, bool))


# One program each: operation by operation the first call on a new number of pairs compiles up to fifteen.
@jax.jit
def _count_both(flagged: Bool[Array, " N"], corrupt: Bool[Array, " N"], of: Bool[Array, " N"]) -> jax.Array:
    return jnp.sum(flagged & corrupt) / jnp.sum(of)


@jax.jit
def _curve(scores: Float[Array, " N"], corrupt: Bool[Array, " N"]) -> tuple[jax.Array, jax.Array, jax.Array]:
    order = highest_first(scores)
    thresholds = scores[order]
    falling = turned(thresholds)
    flagged = jnp.searchsorted(falling, falling, side="right")
    caught = jnp.cumsum(corrupt[order])[flagged - 1]
    return caught / flagged, caught / jnp.sum(corrupt), thresholds


@jax.jit
def _average(scores: Float[Array, " N"], corrupt: Bool[Array, " N"]) -> jax.Array:
    precisions, recalls, _ = _curve(scores, corrupt)
    return jnp.sum(jnp.diff(recalls, prepend=0.0) * precisions)


def _checked(scores: ArrayLike, corrupt: ArrayLike) -> tuple[Float[Array, " N"], Bool[Array, " N"]]:
    scores, corrupt = jnp.asarray(scores), _mask(corrupt, "corrupt")
    _check_shapes(scores, corrupt)
    if not is_traced(scores) and np.isnan(scores).any():
        raise ValueError(
            f"scores[{int(np.argmax(np.isnan(scores)))}] is NaN, which has no place in an order."
        )
    return scores, corrupt


def _mask(values: ArrayLike, name: str) -> Bool[Array, " N"]:
    """Booleans, or 0 and 1, as booleans.

    **Raises:** ValueError for other values, such as numbers of pairs or labels.
    """
    if not is_traced(values) and not np.isin(np.asarray(values), (0, 1)).all():
        raise ValueError(f"{name} holds more than true and false: say of each pair whether it is {name}.")
    return jnp.asarray(values, bool)


def _check_shapes(a: Any, b: Any):
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(f"shapes {a.shape} and {b.shape} must be the same [N]: give one entry per pair.")
