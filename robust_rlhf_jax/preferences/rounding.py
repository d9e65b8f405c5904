"""Subtracts two options in their file's own precision, and keeps what a narrower float would lose of the difference."""

import numpy as np
from jaxtyping import Float

# A loss below this share of a column's usual difference changes no figure, and the data stay as they are.
MATTERS = 2.0**-12


def lost_to_rounding(
    observed: Float[np.ndarray, "N 2 H p"], dtype: np.dtype
) -> Float[np.ndarray, "N H p"] | None:
    """x − (fl(φ(τ¹)) − fl(φ(τ⁰))), x = φ(τ¹) − φ(τ⁰) in the precision of `observed`, fl(·) the cast to `dtype`.

    With it, differences are right to `dtype`'s own digits however large the numbers are. None where it matters in no
    column: where it is nowhere above 2⁻¹² of the column's median non-zero |x|.
    """
    if observed.dtype == dtype or observed.dtype.kind != "f":
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        x = observed[:, 1] - observed[:, 0]
        held = observed.astype(dtype).astype(observed.dtype)
        lost = x - (held[:, 1] - held[:, 0])
    if not any(_matters(lost[..., j], x[..., j]) for j in range(x.shape[-1])):
        return None
    return np.nan_to_num(lost, nan=0.0, posinf=0.0, neginf=0.0).astype(dtype)


def _matters(lost: np.ndarray, x: np.ndarray) -> bool:
    finite = np.isfinite(x) & np.isfinite(lost)
    size = np.abs(x[finite & (x != 0)])
    return size.size > 0 and np.abs(lost[finite]).max() > MATTERS * np.median(size)
