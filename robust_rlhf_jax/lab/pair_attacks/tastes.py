"""Labels of another reward, where it and θ disagree."""

import numpy as np

from .base import AttackedPairs, contrary, count, relabelled, sizes


def goal_haters(
    rng: np.random.Generator, pairs: AttackedPairs, epsilon: float, theta: np.ndarray
) -> AttackedPairs:
    """Pairs that touch the most decisive rare feature, labelled against θ (any feature where none is rare)."""
    decides = np.abs(theta) * sizes(pairs.x)
    touched = np.abs(pairs.x) > 1e-9 * sizes(pairs.x)
    rare = touched.mean(axis=0) < 0.5
    feature = np.argmax(np.where(rare, decides, -1.0) if rare.any() else decides)
    at = rng.permutation(np.flatnonzero(touched[:, feature]))[: count(pairs, epsilon)]
    return relabelled(pairs, at, contrary(pairs.x[at] @ theta))


def other_taste(
    rng: np.random.Generator, pairs: AttackedPairs, epsilon: float, theta: np.ndarray
) -> AttackedPairs:
    """Labels of the reward whose strongest feature has −3 times its weight, on pairs where the two disagree."""
    strongest = np.argmax(np.abs(theta) * sizes(pairs.x))
    taste = theta.copy()
    taste[strongest] *= -3
    return _where_they_disagree(rng, pairs, epsilon, theta, taste)


def other_reward(
    rng: np.random.Generator, pairs: AttackedPairs, epsilon: float, theta: np.ndarray
) -> AttackedPairs:
    """Labels of an equally strong reward whose margins are uncorrelated with θ's, on pairs where the two disagree."""
    moment = pairs.x.T @ pairs.x / len(pairs.x)
    other = rng.normal(size=len(theta)) / sizes(pairs.x)
    other -= theta * (theta @ moment @ other) / (theta @ moment @ theta)
    other *= np.sqrt((theta @ moment @ theta) / max(other @ moment @ other, 1e-30))
    return _where_they_disagree(rng, pairs, epsilon, theta, other)


def _where_they_disagree(rng, pairs, epsilon, theta, taste):
    theirs, truth = pairs.x @ taste, pairs.x @ theta
    differ = rng.permutation(np.flatnonzero(theirs * truth < 0))[: count(pairs, epsilon)]
    return relabelled(pairs, differ, np.sign(theirs[differ]))


ATTACKS = (goal_haters, other_taste, other_reward)
