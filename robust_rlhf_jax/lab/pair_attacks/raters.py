"""Raters who do not look, or who answer the opposite: single labels, or all labels of some raters."""

import numpy as np

from .base import AttackedPairs, chance, count, relabelled, sizes


def always_first(
    rng: np.random.Generator, pairs: AttackedPairs, epsilon: float, theta: np.ndarray
) -> AttackedPairs:
    """Labels of people who take whatever stands first."""
    at = rng.permutation(len(pairs.labels))[: count(pairs, epsilon)]
    return relabelled(pairs, at, 1.0)


def random_raters(
    rng: np.random.Generator, pairs: AttackedPairs, epsilon: float, theta: np.ndarray
) -> AttackedPairs:
    """Raters who toss a coin."""
    at = replaced(rng, pairs, epsilon)
    return relabelled(pairs, at, rng.choice([-1.0, 1.0], len(at)))


def first_raters(
    rng: np.random.Generator, pairs: AttackedPairs, epsilon: float, theta: np.ndarray
) -> AttackedPairs:
    """Raters who take whatever stands first."""
    return relabelled(pairs, replaced(rng, pairs, epsilon), 1.0)


def contrary_raters(
    rng: np.random.Generator, pairs: AttackedPairs, epsilon: float, theta: np.ndarray
) -> AttackedPairs:
    """Raters who answer the opposite of what they prefer."""
    at = replaced(rng, pairs, epsilon)
    return relabelled(pairs, at, -pairs.labels[at])


def reversed_taste_raters(
    rng: np.random.Generator, pairs: AttackedPairs, epsilon: float, theta: np.ndarray
) -> AttackedPairs:
    """Raters who answer honestly by a reward whose strongest feature has the opposite sign."""
    taste = theta.copy()
    taste[np.argmax(np.abs(theta) * sizes(pairs.x))] *= -1
    at = replaced(rng, pairs, epsilon)
    return relabelled(pairs, at, np.where(rng.random(len(at)) < chance(taste, pairs.x[at]), 1.0, -1.0))


def replaced(rng: np.random.Generator, pairs: AttackedPairs, epsilon: float) -> np.ndarray:
    """All pairs of raters in random order, as many raters as ⌊εN⌋ pairs have room for."""
    assert pairs.raters is not None, "this attack replaces raters: by_raters says so."
    room, each = count(pairs, epsilon), np.bincount(pairs.raters)
    taken = np.zeros(len(each), bool)
    for rater in rng.permutation(len(each)):
        if each[rater] <= room:
            taken[rater], room = True, room - each[rater]
    return np.flatnonzero(taken[pairs.raters])


BY_RATER = (random_raters, first_raters, contrary_raters, reversed_taste_raters)
ATTACKS = (always_first, *BY_RATER)
