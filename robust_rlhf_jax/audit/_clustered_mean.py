"""A mean and its standard error where rows of one group are dependent."""

import numpy as np
from jaxtyping import Int


def clustered_mean(values: np.ndarray, groups: Int[np.ndarray, " N"]) -> tuple[np.ndarray, np.ndarray]:
    """Mean of `values` [N, …] over rows and its standard error, rows of one group being dependent.

    √(G/(G−1)·Σ_g (Σ_{i∈g}(v_i − v̄))²)/N (Liang & Zeger 1986): for groups of one row, the usual s/√N.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax.audit import clustered_mean
    >>> right = np.array([1.0, 1.0, 0.0, 0.0])
    >>> [round(float(v), 3) for v in clustered_mean(right, np.array([0, 0, 1, 1]))]
    [0.5, 0.5]
    >>> [round(float(v), 3) for v in clustered_mean(right, np.array([0, 1, 2, 3]))]
    [0.5, 0.289]
    """
    _, of_row = np.unique(groups, return_inverse=True)
    count = of_row.max() + 1
    mean = values.mean(axis=0)
    sums = np.zeros((count, *values.shape[1:]))
    np.add.at(sums, of_row, values - mean)
    spread = np.sqrt(count / max(count - 1, 1) * np.sum(sums**2, axis=0))
    return mean, spread / len(values)
