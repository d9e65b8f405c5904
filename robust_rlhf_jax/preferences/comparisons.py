"""Which pairs compare the same two options: by their differences, whichever option stands first."""

import numpy as np
from jaxtyping import Bool, Float, Int, UInt64

# The share of the pairs that has to recur: a fifth may be corrupt copies of one pair (`rewards.CEILING`).
LEAST = 0.2
# Columns that are looked at first: where hardly any pair recurs in these, none does in all.
FEW = 8
# Columns that are copied at once.
BLOCK = 256


def comparisons_of(x: Float[np.ndarray, "N k"], least: float = LEAST) -> Int[np.ndarray, " N"] | None:
    """The number of each pair's comparison, equal where rows are equal up to their sign.

    None where no more than the share `least` of the pairs recurs, or where a number is missing. Equal options are a
    comparison of their own, which does not count.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax.preferences.comparisons import comparisons_of
    >>> first, second, again, _ = comparisons_of(np.array([[1.0, 0.0], [0.0, 2.0], [-1.0, 0.0], [0.0, 3.0]]))
    >>> bool(first == again), bool(first == second)
    (True, False)
    """
    x = np.asarray(x)
    if not len(x) or np.isnan(x).any():
        return None
    unequal = np.asarray(x.any(axis=1))
    if numbers_of(_keys(x[:, :FEW]), unequal, least) is None:
        return None
    return numbers_of(_keys(x), unequal, least)


def numbers_of(
    keys: UInt64[np.ndarray, " N"], unequal: Bool[np.ndarray, " N"], least: float
) -> Int[np.ndarray, " N"] | None:
    """Numbers from 0 of equal keys; None where no more than the share `least` of the `unequal` pairs has one of them
    in common with another.
    """
    _, number, count = np.unique(keys, return_inverse=True, return_counts=True)
    if np.sum((count[number] > 1) & unequal) <= least * max(np.sum(unequal), 1):
        return None
    return number.astype(np.int32)


def _keys(x: Float[np.ndarray, "N k"]) -> UInt64[np.ndarray, " N"]:
    """A number of 64 bits for each row, the same for rows that are equal up to their sign, bit by bit."""
    leading = np.take_along_axis(x, np.argmax(x != 0, axis=1)[:, None], axis=1)
    odd = np.random.default_rng(0).integers(1 << 64, size=x.shape[1], dtype=np.uint64) | np.uint64(1)
    keys = np.zeros(len(x), np.uint64)
    for begin in range(0, x.shape[1], BLOCK):
        part = x[:, begin : begin + BLOCK]
        # Zeros have one sign: −0 + 0 is 0.
        bits = np.ascontiguousarray(np.where(leading < 0, -part, part) + 0.0, np.float64).view(np.uint64)
        # The upper half of a float says most of it: it has to reach the lower bits of the product.
        mixed = (bits ^ (bits >> np.uint64(32))) * odd[begin : begin + BLOCK]
        keys += np.sum(mixed ^ (mixed >> np.uint64(29)), axis=1, dtype=np.uint64)
    return keys
