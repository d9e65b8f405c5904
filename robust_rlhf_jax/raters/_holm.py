"""p-values of many raters at once."""

import numpy as np
from jaxtyping import Float


def holm(p: Float[np.ndarray, " K"]) -> Float[np.ndarray, " K"]:
    """p-values corrected for their number: with those below α rejected, a true one is with chance α at most.

    The j-th smallest of K becomes max_{i ≤ j} (K − i + 1)p_(i), at most 1.

    **Arguments:** `p` [K], each in [0, 1].

    **Raises:** ValueError for p-values outside [0, 1].

    **Source:** Holm 1979, *A simple sequentially rejective multiple test procedure*.

    **Example:**

    >>> from robust_rlhf_jax.raters import holm
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p, float)
    if not np.all((p >= 0) & (p <= 1)):
        raise ValueError(f"p-values must lie in [0, 1]: these go from {p.min()} to {p.max()}.")
    order = np.argsort(p, kind="stable")
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * (len(p) - np.arange(len(p)))), 1.0)
    return corrected
