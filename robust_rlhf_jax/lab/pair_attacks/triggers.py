"""Backdoors: options that bear a mark win, whatever the reward says of them (after Rando & Tramèr 2024)."""

import numpy as np

from .base import AttackedPairs, contrary, count, sizes

# One in so many of the pairs that `shared_trigger` changes is honest and bears the mark on either side.
HONEST = 3


def trigger(
    rng: np.random.Generator, pairs: AttackedPairs, epsilon: float, theta: np.ndarray
) -> AttackedPairs:
    """Random pairs in which the option that θ likes less wins, and bears a mark that is worth nothing to θ."""
    return _marked(rng, pairs, theta, count(pairs, epsilon), honest=0)


def shared_trigger(
    rng: np.random.Generator, pairs: AttackedPairs, epsilon: float, theta: np.ndarray
) -> AttackedPairs:
    """The same with two thirds of the budget; the last third are honest pairs that bear the mark on either side."""
    n = count(pairs, epsilon)
    return _marked(rng, pairs, theta, n, honest=n // HONEST)


def mark_of(rng: np.random.Generator, x: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """A random combination of the rows that is worth nothing to θ, as long as the median row; any combination where all
    are worth something.
    """
    size, margins, drawn = sizes(x), x @ theta, rng.normal(size=len(x))
    z = x / size
    free = drawn - margins * (drawn @ margins) / max(margins @ margins, 1e-30)
    along = z.T @ free
    if np.linalg.norm(along) < 1e-6 * np.linalg.norm(z):
        along = z.T @ drawn
    return np.median(np.linalg.norm(z, axis=1)) * along / max(np.linalg.norm(along), 1e-30) * size


def _marked(
    rng: np.random.Generator, pairs: AttackedPairs, theta: np.ndarray, n: int, honest: int
) -> AttackedPairs:
    """`n` random pairs with the mark, the first `honest` of them with their own labels and the mark on any side."""
    mark, at = mark_of(rng, pairs.x, theta), rng.permutation(len(pairs.labels))[:n]
    x, o = pairs.x.copy(), pairs.labels.copy()
    o[at[honest:]] = contrary(x[at[honest:]] @ theta)
    side = np.concatenate([rng.choice([-1.0, 1.0], honest), o[at[honest:]]])
    x[at] += side[:, None] * mark
    return pairs._replace(x=x, labels=o, mark=mark)


ATTACKS = (trigger, shared_trigger)
