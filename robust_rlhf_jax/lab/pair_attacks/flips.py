"""Labels that are flipped, chosen by what each flip is worth."""

import numpy as np

from .base import AttackedPairs, chance, contrary, count, flipped, relabelled, sizes


def confident(
    rng: np.random.Generator, pairs: AttackedPairs, epsilon: float, theta: np.ndarray
) -> AttackedPairs:
    """The labels that agree best with θ, flipped."""
    return flipped(pairs, pairs.labels * (pairs.x @ theta), count(pairs, epsilon))


def random_flips(
    rng: np.random.Generator, pairs: AttackedPairs, epsilon: float, theta: np.ndarray
) -> AttackedPairs:
    """Any labels, flipped."""
    return flipped(pairs, rng.random(len(pairs.labels)), count(pairs, epsilon))


def confident_flips(
    rng: np.random.Generator, pairs: AttackedPairs, epsilon: float, theta: np.ndarray
) -> AttackedPairs:
    """The pairs about which θ is most certain, labelled against it."""
    margins = pairs.x @ theta
    at = np.argsort(-np.abs(margins), kind="stable")[: count(pairs, epsilon)]
    return relabelled(pairs, at, contrary(margins[at]))


def influence(
    rng: np.random.Generator, pairs: AttackedPairs, epsilon: float, theta: np.ndarray
) -> AttackedPairs:
    """The flips whose first-order influence on θ lowers ⟨θ, Σθ⟩ most, Σ the second moment of x."""
    p = chance(theta, pairs.x)
    information = (pairs.x * (p * (1 - p))[:, None]).T @ pairs.x
    moment = pairs.x.T @ pairs.x / len(pairs.x)
    push = np.linalg.lstsq(information, moment @ theta, rcond=None)[0]
    return flipped(pairs, pairs.labels * (pairs.x @ push), count(pairs, epsilon))


def corner(
    rng: np.random.Generator, pairs: AttackedPairs, epsilon: float, theta: np.ndarray
) -> AttackedPairs:
    """The pairs nearest to the most certain pair, whichever option stands first, labelled against θ."""
    z, margins = pairs.x / sizes(pairs.x), pairs.x @ theta
    turned = z * np.where(margins < 0, -1.0, 1.0)[:, None]
    distance = np.linalg.norm(turned - turned[np.argmax(np.abs(margins))], axis=1)
    at = np.argsort(distance, kind="stable")[: count(pairs, epsilon)]
    return relabelled(pairs, at, contrary(margins[at]))


def least_confident(
    rng: np.random.Generator, pairs: AttackedPairs, epsilon: float, theta: np.ndarray
) -> AttackedPairs:
    """The labels that agree with θ by the smallest margin, flipped: nobody finds them surprising."""
    margins = pairs.labels * (pairs.x @ theta)
    return flipped(pairs, np.where(margins > 0, -margins, -np.inf), count(pairs, epsilon))


def feature_noise(
    rng: np.random.Generator, pairs: AttackedPairs, epsilon: float, theta: np.ndarray
) -> AttackedPairs:
    """Flips that are likelier the longer a pair is along a random direction of the features."""
    z = pairs.x / sizes(pairs.x)
    along = np.abs(z @ rng.normal(size=z.shape[1]))
    # Gumbel noise: sampling without replacement with chances proportional to the length (Efraimidis & Spirakis 2006).
    return flipped(pairs, np.log(np.maximum(along, 1e-12)) + rng.gumbel(size=len(z)), count(pairs, epsilon))


def diverse_flips(
    rng: np.random.Generator, pairs: AttackedPairs, epsilon: float, theta: np.ndarray
) -> AttackedPairs:
    """Flips confident labels that lie far apart: greedy k-centres among three times as many."""
    n, merit = count(pairs, epsilon), pairs.labels * (pairs.x @ theta)
    pool = np.argsort(-merit, kind="stable")[: 3 * n]
    z = (pairs.x / sizes(pairs.x))[pool]
    chosen, distance = np.zeros(len(pool), bool), np.full(len(pool), np.inf)
    for _ in range(n):
        farthest = int(np.argmax(np.where(chosen, -1.0, distance)))
        chosen[farthest] = True
        distance = np.minimum(distance, np.sum((z - z[farthest]) ** 2, axis=1))
    return flipped(pairs, np.where(np.isin(np.arange(len(merit)), pool[chosen]), 1.0, 0.0), n)


def minimum_cost(
    rng: np.random.Generator, pairs: AttackedPairs, epsilon: float, theta: np.ndarray
) -> AttackedPairs:
    """The fewest flips that make (1 − 2s)θ the maximum of the likelihood, at the largest s that ⌊εN⌋ flips can pay.

    A share f_n ∈ [0, 1] of label n is flipped: min Σ f_n with Σ_n (σ(o_nηᵀx_n) − 1 + f_n) o_n x_n = 0 at η = (1 − 2s)θ,
    a linear programme for HiGHS, whose vertices have at most k fractions; s by bisection.
    """
    from scipy.optimize import linprog

    rows = (pairs.x / sizes(pairs.x)) * pairs.labels[:, None]
    n, best = count(pairs, epsilon), np.zeros(len(rows))
    low, high = 0.0, 1.0
    for _ in range(7):
        s = (low + high) / 2
        missing = rows.T @ (1 - chance((1 - 2 * s) * theta, pairs.x * pairs.labels[:, None]))
        found = linprog(np.ones(len(rows)), A_eq=rows.T, b_eq=missing, bounds=(0, 1), method="highs")
        if found.success and found.fun <= n:
            low, best = s, found.x
        else:
            high = s
    return flipped(pairs, best, min(n, int(np.sum(best > 0.5))))


ATTACKS = (
    confident,
    random_flips,
    confident_flips,
    influence,
    corner,
    least_confident,
    feature_noise,
    diverse_flips,
    minimum_cost,
)
