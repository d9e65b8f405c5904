"""What an attack on labelled differences takes and returns, and what all of them share.

One signature: `attack(rng, pairs, epsilon, theta) -> pairs`. It sees the data and the reward θ of the clean pairs, and
changes at most ⌊εN⌋ pairs. Lengths are those of x over its columns' root mean squares.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int


class AttackedPairs(NamedTuple):
    """Differences `x` and labels ±1; `options` [M, k]: what the differences are made of; `raters` [N]: numbers from 0
    of who labelled each pair, None where nobody says.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax.lab.pair_attacks import PAIR_ATTACKS, AttackedPairs
    >>> clean = AttackedPairs(np.eye(4), np.ones(4), np.eye(4))
    >>> found = PAIR_ATTACKS["random_flips"](np.random.default_rng(0), clean, 0.25, np.ones(4))
    >>> int(found.changed(clean).sum())
    1
    """

    x: Float[np.ndarray, "N k"]
    labels: Float[np.ndarray, " N"]
    options: Float[np.ndarray, "M k"]
    raters: Int[np.ndarray, " N"] | None = None

    def changed(self, clean: "AttackedPairs") -> Bool[np.ndarray, " N"]:
        """Which pairs are not as they were."""
        return np.any(self.x != clean.x, axis=1) | (self.labels != clean.labels)


def count(pairs: AttackedPairs, epsilon: float) -> int:
    """⌊εN⌋ in the arithmetic of the decimal that was meant."""
    return int(epsilon * len(pairs.labels) + 1e-9)


def planted(
    rng: np.random.Generator,
    pairs: AttackedPairs,
    epsilon: float,
    rows: np.ndarray,
    labels: np.ndarray | float,
) -> AttackedPairs:
    """`rows` and `labels` in the place of ⌊εN⌋ random pairs."""
    at = rng.permutation(len(pairs.labels))[: count(pairs, epsilon)]
    x, o = pairs.x.copy(), pairs.labels.copy()
    x[at], o[at] = rows, labels
    return pairs._replace(x=x, labels=o)


def relabelled(pairs: AttackedPairs, at: np.ndarray, labels: np.ndarray | float) -> AttackedPairs:
    """The pairs `at` with other labels."""
    o = pairs.labels.copy()
    o[at] = labels
    return pairs._replace(labels=o)


def flipped(pairs: AttackedPairs, merit: np.ndarray, n: int) -> AttackedPairs:
    """The `n` pairs of largest `merit`, flipped."""
    at = np.argsort(-merit, kind="stable")[:n]
    return relabelled(pairs, at, -pairs.labels[at])


def contrary(margins: np.ndarray) -> np.ndarray:
    """The label against a margin; +1 for a tie."""
    return np.where(margins > 0, -1.0, 1.0)


def sizes(x: np.ndarray) -> np.ndarray:
    """Root mean squares [k] of the columns, 1 for a column of zeros."""
    size = np.sqrt(np.mean(x**2, axis=0))
    return np.where(size > 0, size, 1.0)


def against(pairs: AttackedPairs, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(sizes of the columns, lengths [N] of the rows, unit direction that θ likes least)."""
    size = sizes(pairs.x)
    return size, np.linalg.norm(pairs.x / size, axis=1), -theta * size / np.linalg.norm(theta * size)


def chance(theta: np.ndarray, x: np.ndarray) -> np.ndarray:
    """P(the first option is preferred) = σ(θᵀx)."""
    return 1 / (1 + np.exp(-np.clip(x @ theta, -500, 500)))
