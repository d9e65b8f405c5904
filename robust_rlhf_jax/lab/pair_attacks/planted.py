"""Pairs that an adversary plants in the place of honest ones, labelled against θ."""

import numpy as np

from .base import AttackedPairs, against, contrary, count, planted, sizes


def near(rng: np.random.Generator, pairs: AttackedPairs, epsilon: float, theta: np.ndarray) -> AttackedPairs:
    """One row of the median length, straight against θ, that wins."""
    size, length, worst = against(pairs, theta)
    return planted(rng, pairs, epsilon, np.median(length) * worst * size, 1.0)


def near_varied(
    rng: np.random.Generator, pairs: AttackedPairs, epsilon: float, theta: np.ndarray
) -> AttackedPairs:
    """Rows about against θ, no two alike, as long as honest ones, that win."""
    size, length, worst = against(pairs, theta)
    n, k = count(pairs, epsilon), len(theta)
    rows = worst + 0.5 * rng.normal(size=(n, k)) / np.sqrt(k)
    rows *= rng.choice(length, (n, 1)) / np.linalg.norm(rows, axis=1, keepdims=True)
    return planted(rng, pairs, epsilon, rows * size, 1.0)


def far(rng: np.random.Generator, pairs: AttackedPairs, epsilon: float, theta: np.ndarray) -> AttackedPairs:
    """`near`, three times as long as the longest honest row."""
    size, length, worst = against(pairs, theta)
    return planted(rng, pairs, epsilon, 3 * length.max() * worst * size, 1.0)


def on_table(
    rng: np.random.Generator, pairs: AttackedPairs, epsilon: float, theta: np.ndarray
) -> AttackedPairs:
    """Existing options in new pairs, those about which θ is most certain, labelled against it."""
    n, pool = count(pairs, epsilon), 20 * len(pairs.labels)
    first, second = rng.integers(0, len(pairs.options), (2, pool))
    x = pairs.options[second] - pairs.options[first]
    surest = np.argsort(-np.abs(x @ theta))[: 2 * n]
    rows = x[rng.permutation(surest)[:n]]
    return planted(rng, pairs, epsilon, rows, contrary(rows @ theta))


def leverage(
    rng: np.random.Generator, pairs: AttackedPairs, epsilon: float, theta: np.ndarray
) -> AttackedPairs:
    """The longest honest length along the direction of least variance, against θ."""
    size, length, _ = against(pairs, theta)
    z = pairs.x / size
    values, axes = np.linalg.eigh(z.T @ z / len(z))
    axis = axes[:, np.argmax(values > 1e-8 * values[-1])]
    toward = np.sign(axis @ (theta * size)) or 1.0
    return planted(rng, pairs, epsilon, -toward * length.max() * axis * size, 1.0)


def scale(rng: np.random.Generator, pairs: AttackedPairs, epsilon: float, theta: np.ndarray) -> AttackedPairs:
    """Random pairs made as long as the longest one, labelled against θ."""
    length = against(pairs, theta)[1]
    at = rng.permutation(len(pairs.x))[: count(pairs, epsilon)]
    x, o = pairs.x.copy(), pairs.labels.copy()
    x[at] *= (length.max() / np.maximum(length[at], 1e-9))[:, None]
    o[at] = contrary(x[at] @ theta)
    return pairs._replace(x=x, labels=o)


def mimicry(
    rng: np.random.Generator, pairs: AttackedPairs, epsilon: float, theta: np.ndarray
) -> AttackedPairs:
    """Copies of honest rows, labelled against θ."""
    rows = pairs.x[rng.permutation(len(pairs.x))[: count(pairs, epsilon)]]
    return planted(rng, pairs, epsilon, rows, contrary(rows @ theta))


def planted_real(
    rng: np.random.Generator, pairs: AttackedPairs, epsilon: float, theta: np.ndarray
) -> AttackedPairs:
    """The most certain existing differences, copied into other pairs, labelled against θ."""
    margins = pairs.x @ theta
    surest = np.argsort(-np.abs(margins), kind="stable")[: max(count(pairs, epsilon) // 10, 1)]
    rows = pairs.x[rng.choice(surest, count(pairs, epsilon))]
    return planted(rng, pairs, epsilon, rows, contrary(rows @ theta))


def planted_far(
    rng: np.random.Generator, pairs: AttackedPairs, epsilon: float, theta: np.ndarray
) -> AttackedPairs:
    """One point along −Σθ at the .99 quantile of lengths, a tenth of it jittered, that wins; signs turned at random."""
    size = sizes(pairs.x)
    z = pairs.x / size
    direction = -(z.T @ z) @ (theta * size)
    direction /= np.linalg.norm(direction)
    length, n = np.quantile(np.linalg.norm(z, axis=1), 0.99), count(pairs, epsilon)
    rows = length * (direction + 0.1 * rng.normal(size=(n, len(theta))) / np.sqrt(len(theta)))
    signs = rng.choice([-1.0, 1.0], n)
    return planted(rng, pairs, epsilon, rows * signs[:, None] * size, signs)


ATTACKS = (near, near_varied, far, on_table, leverage, scale, mimicry, planted_real, planted_far)
