"""Nine more adversaries on labelled differences, most of them by labels alone: `LABEL_ATTACKS` by name.

One signature, that of `pair_attacks.py`: `attack(rng, pairs, epsilon, theta) -> pairs` sees all and changes ⌊εN⌋ pairs.
"""

from collections.abc import Callable

import numpy as np
from pair_attacks import Pairs, contrary, count, planted, sizes


def relabelled(pairs: Pairs, at, labels) -> Pairs:
    """The pairs `at` with other labels."""
    o = pairs.labels.copy()
    o[at] = labels
    return pairs._replace(labels=o)


def flipped(pairs: Pairs, merit, n: int) -> Pairs:
    """The `n` pairs of largest `merit`, flipped."""
    at = np.argsort(-merit, kind="stable")[:n]
    return relabelled(pairs, at, -pairs.labels[at])


def random_flips(rng, pairs, epsilon, theta):
    """Any labels, flipped."""
    return flipped(pairs, rng.random(len(pairs.labels)), count(pairs, epsilon))


def confident_flips(rng, pairs, epsilon, theta):
    """The pairs about which θ is most certain, labelled against it."""
    margins = pairs.x @ theta
    at = np.argsort(-np.abs(margins), kind="stable")[: count(pairs, epsilon)]
    return relabelled(pairs, at, contrary(margins[at]))


def influence(rng, pairs, epsilon, theta):
    """The flips whose first-order influence on θ lowers ⟨θ, Σθ⟩ most, Σ the second moment of x."""
    margins = pairs.x @ theta
    chance = 1 / (1 + np.exp(-margins))
    information = (pairs.x * (chance * (1 - chance))[:, None]).T @ pairs.x
    moment = pairs.x.T @ pairs.x / len(pairs.x)
    push = np.linalg.lstsq(information, moment @ theta, rcond=None)[0]
    return flipped(pairs, pairs.labels * (pairs.x @ push), count(pairs, epsilon))


def other_taste(rng, pairs, epsilon, theta):
    """Labels of the reward whose strongest feature has −3 times its weight, on pairs where the two disagree."""
    strongest = np.argmax(np.abs(theta) * sizes(pairs.x))
    taste = theta.copy()
    taste[strongest] *= -3
    return _where_they_disagree(rng, pairs, epsilon, theta, taste)


def other_reward(rng, pairs, epsilon, theta):
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


def corner(rng, pairs, epsilon, theta):
    """The pairs nearest to the most certain pair, whichever option stands first, labelled against θ."""
    z, margins = pairs.x / sizes(pairs.x), pairs.x @ theta
    turned = z * np.where(margins < 0, -1.0, 1.0)[:, None]
    distance = np.linalg.norm(turned - turned[np.argmax(np.abs(margins))], axis=1)
    at = np.argsort(distance, kind="stable")[: count(pairs, epsilon)]
    return relabelled(pairs, at, contrary(margins[at]))


def planted_real(rng, pairs, epsilon, theta):
    """The most certain existing differences, copied into other pairs, labelled against θ."""
    margins = pairs.x @ theta
    surest = np.argsort(-np.abs(margins), kind="stable")[: max(count(pairs, epsilon) // 10, 1)]
    rows = pairs.x[rng.choice(surest, count(pairs, epsilon))]
    return planted(rng, pairs, epsilon, rows, contrary(rows @ theta))


def planted_far(rng, pairs, epsilon, theta):
    """One point along −Σθ at the .99 quantile of lengths, a tenth of it jittered, that wins; signs turned at random."""
    size = sizes(pairs.x)
    z = pairs.x / size
    direction = -(z.T @ z) @ (theta * size)
    direction /= np.linalg.norm(direction)
    length, n = np.quantile(np.linalg.norm(z, axis=1), 0.99), count(pairs, epsilon)
    rows = length * (direction + 0.1 * rng.normal(size=(n, len(theta))) / np.sqrt(len(theta)))
    signs = rng.choice([-1.0, 1.0], n)
    return planted(rng, pairs, epsilon, rows * signs[:, None] * size, signs)


def always_first(rng, pairs, epsilon, theta):
    """Raters who take whatever stands first."""
    at = rng.permutation(len(pairs.labels))[: count(pairs, epsilon)]
    return relabelled(pairs, at, 1.0)


LABEL_ATTACKS: dict[str, Callable[..., Pairs]] = {
    attack.__name__: attack
    for attack in (
        random_flips, confident_flips, influence, other_taste, other_reward, corner, planted_real, planted_far,
        always_first,
    )
}  # fmt: skip
