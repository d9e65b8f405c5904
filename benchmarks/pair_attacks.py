"""Adversaries on labelled differences, for data that have no decision problem behind them; `PAIR_ATTACKS` by name.

One signature, `attack(rng, pairs, epsilon, theta) -> pairs`: all sees the data and θ, changes ⌊εN⌋ pairs. Lengths are
those of x over its columns' root mean squares.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float


class Pairs(NamedTuple):
    """Differences, labels, and the options [M, k] that the differences are made of."""

    x: Float[np.ndarray, "N k"]
    labels: Float[np.ndarray, " N"]
    options: Float[np.ndarray, "M k"]


def count(pairs: Pairs, epsilon: float) -> int:
    return int(epsilon * len(pairs.labels) + 1e-9)


def planted(rng, pairs: Pairs, epsilon: float, rows, labels) -> Pairs:
    """`rows` and `labels` in the place of ⌊εN⌋ random pairs."""
    at = rng.permutation(len(pairs.labels))[: count(pairs, epsilon)]
    x, o = pairs.x.copy(), pairs.labels.copy()
    x[at], o[at] = rows, labels
    return pairs._replace(x=x, labels=o)


def contrary(margins):
    """The label against a margin; +1 for a tie."""
    return np.where(margins > 0, -1.0, 1.0)


def sizes(x):
    size = np.sqrt(np.mean(x**2, axis=0))
    return np.where(size > 0, size, 1.0)


def against(pairs: Pairs, theta):
    """(sizes of the columns, lengths [N] of the rows, unit direction that θ likes least)."""
    size = sizes(pairs.x)
    return size, np.linalg.norm(pairs.x / size, axis=1), -theta * size / np.linalg.norm(theta * size)


def near(rng, pairs, epsilon, theta):
    """One row of the median length, straight against θ, that wins."""
    size, length, worst = against(pairs, theta)
    return planted(rng, pairs, epsilon, np.median(length) * worst * size, 1.0)


def near_varied(rng, pairs, epsilon, theta):
    """Rows about against θ, no two alike, as long as honest ones, that win."""
    size, length, worst = against(pairs, theta)
    n, k = count(pairs, epsilon), len(theta)
    rows = worst + 0.5 * rng.normal(size=(n, k)) / np.sqrt(k)
    rows *= rng.choice(length, (n, 1)) / np.linalg.norm(rows, axis=1, keepdims=True)
    return planted(rng, pairs, epsilon, rows * size, 1.0)


def far(rng, pairs, epsilon, theta):
    """`near`, three times as long as the longest honest row."""
    size, length, worst = against(pairs, theta)
    return planted(rng, pairs, epsilon, 3 * length.max() * worst * size, 1.0)


def on_table(rng, pairs, epsilon, theta):
    """Existing options in new pairs, those about which θ is most certain, labelled against it."""
    n, pool = count(pairs, epsilon), 20 * len(pairs.labels)
    first, second = rng.integers(0, len(pairs.options), (2, pool))
    x = pairs.options[second] - pairs.options[first]
    surest = np.argsort(-np.abs(x @ theta))[: 2 * n]
    rows = x[rng.permutation(surest)[:n]]
    return planted(rng, pairs, epsilon, rows, contrary(rows @ theta))


def leverage(rng, pairs, epsilon, theta):
    """The longest honest length along the direction of least variance, against θ."""
    size, length, _ = against(pairs, theta)
    z = pairs.x / size
    values, axes = np.linalg.eigh(z.T @ z / len(z))
    axis = axes[:, np.argmax(values > 1e-8 * values[-1])]
    toward = np.sign(axis @ (theta * size)) or 1.0
    return planted(rng, pairs, epsilon, -toward * length.max() * axis * size, 1.0)


def mimicry(rng, pairs, epsilon, theta):
    """Copies of honest rows, labelled against θ."""
    rows = pairs.x[rng.permutation(len(pairs.x))[: count(pairs, epsilon)]]
    return planted(rng, pairs, epsilon, rows, contrary(rows @ theta))


def scale(rng, pairs, epsilon, theta):
    """Random pairs made as long as the longest one, labelled against θ."""
    length = against(pairs, theta)[1]
    at = rng.permutation(len(pairs.x))[: count(pairs, epsilon)]
    x, o = pairs.x.copy(), pairs.labels.copy()
    x[at] *= (length.max() / np.maximum(length[at], 1e-9))[:, None]
    o[at] = contrary(x[at] @ theta)
    return pairs._replace(x=x, labels=o)


def confident(rng, pairs, epsilon, theta):
    """The labels that agree best with θ, flipped."""
    at = np.argsort(-pairs.labels * (pairs.x @ theta))[: count(pairs, epsilon)]
    o = pairs.labels.copy()
    o[at] *= -1
    return pairs._replace(labels=o)


def goal_haters(rng, pairs, epsilon, theta):
    """Pairs that touch the most decisive rare feature, labelled against θ (any feature where none is rare)."""
    decides = np.abs(theta) * sizes(pairs.x)
    touched = np.abs(pairs.x) > 1e-9 * sizes(pairs.x)
    rare = touched.mean(axis=0) < 0.5
    feature = np.argmax(np.where(rare, decides, -1.0) if rare.any() else decides)
    at = rng.permutation(np.flatnonzero(touched[:, feature]))[: count(pairs, epsilon)]
    o = pairs.labels.copy()
    o[at] = contrary(pairs.x[at] @ theta)
    return pairs._replace(labels=o)


PAIR_ATTACKS: dict[str, Callable[..., Pairs]] = {
    attack.__name__: attack
    for attack in (near, near_varied, far, on_table, leverage, scale, mimicry, confident, goal_haters)
}
