"""When no algorithm can tell: two rewards that the same observed pairs fit, each with no more than ε of them corrupt.

World A is the truth, its pairs attacked; pair n is then seen to be a win with chance Q_n. In world B another reward θ_B
is true: honest raters give a win with chance P_n = σ(θ_Bᵀx_n), and honest pairs show x_n with weight h_n, where those
seen have weight 1. The adversary of B replaces whole pairs, as the paper's does. To show what is seen in A the share
Σ_n Σ_o max(Q_n(o) − h_n P_n(o), 0)/N has to be replaced, the distance in total variation (the maximal coupling). If
that is ε, the same pairs are seen with the same chance in both worlds, and whoever is right in A is wrong in B. Nobody
knows the law of x, so that any h of mean 1 will do. Pairs are matched one by one, not jointly, and the order of the two
options of a pair is taken to say nothing.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import expit

# Lengths of θ_B that are tried, times its own.
LENGTHS = 2.0 ** np.arange(-3.0, 1.6, 0.125)
# How far beyond the answer, seen from the truth, θ_B is sought; 0: the answer is the truth of world B.
BEYOND = (0.0, 0.125, 0.25, 0.375, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)
# Accuracy that counts as lost.
LOSS = 0.02


class Certificate(NamedTuple):
    """`cost`: share of the pairs that must be corrupt if θ_B is true; on the honest pairs of world B, `stake`: accuracy
    that θ_A would lose, `regret`: accuracy that the fit's answer loses."""

    cost: float
    stake: float
    regret: float

    def holds(self, epsilon: float) -> bool:
        """B is within reach, the answer is right there, and the truth of A is wrong there."""
        return self.cost <= epsilon and self.stake > LOSS and self.regret <= LOSS


def certificate(x, wins: Float[np.ndarray, " N"], answer, theta_a, epsilon: float) -> Certificate:
    """The first world B at the answer or beyond it that certifies; if none does, the one at the answer.

    Pair n shows a win with chance `wins[n]`. Each direction is taken at the length that costs least of those that
    certify, or else of all: a longer θ_B is surer of its pairs, so that more is at stake.
    """
    x, wins = same_rows_alike(np.asarray(x, float), np.asarray(wins, float))
    unit_b, unit_a = (v / max(np.linalg.norm(x @ v), 1e-30) for v in (answer, theta_a))
    length = np.linalg.norm(x @ answer)
    ways = [length * (unit_b + further * (unit_b - unit_a)) for further in BEYOND]
    found = [_of(x, wins, theta_b, answer, theta_a, epsilon) for theta_b in ways]
    return next((c for c in found if c.holds(epsilon)), found[0])


def _of(x, wins, theta_b, answer, theta_a, epsilon: float) -> Certificate:
    margins = x @ theta_b
    wrong = [margins * (x @ theta) < 0 for theta in (theta_a, answer)]

    def at(length: float) -> Certificate:
        believed = expit(length * margins)
        honest, replaced = least_replaced(believed, wins)
        sure = honest * np.abs(2 * believed - 1)
        return Certificate(replaced.mean(), *(np.mean(sure * where) for where in wrong))

    found = [at(length) for length in LENGTHS]
    return min([c for c in found if c.holds(epsilon)] or found, key=lambda c: c.cost)


def least_replaced(
    believed: Float[np.ndarray, " N"], wins: Float[np.ndarray, " N"]
) -> tuple[Float[np.ndarray, " N"], Float[np.ndarray, " N"]]:
    """(h [N] of mean 1, chance [N] that the observed pair is not honest), the h with the least mean chance.

    ½Σ_o |Q_n(o) − h_n P_n(o)|, which has the same sum, is convex and piecewise linear in h_n: it falls by ½ per unit up
    to the first of Q_n/P_n and (1 − Q_n)/(1 − P_n), rises by ½ from the second one, and between them its slope depends
    on P_n. As 1 lies between them, the least sum fills h up from the first ones in the order of the slopes.
    """
    p = np.clip(believed, 1e-9, 1 - 1e-9)
    first, last = np.sort([wins / p, (1 - wins) / (1 - p)], axis=0)
    slope = (p - 0.5) * np.where(wins < p, 1.0, -1.0)
    order = np.argsort(slope, kind="stable")
    room = (last - first)[order]
    before = np.cumsum(room) - room
    honest = first.copy()
    honest[order] += np.clip(len(p) - first.sum() - before, 0.0, room)
    replaced = np.maximum(wins - honest * p, 0) + np.maximum(1 - wins - honest * (1 - p), 0)
    return honest, replaced


def chance_of_wins(
    seen_x,
    seen_labels,
    theta_a,
    relabel: Callable[[np.ndarray], np.ndarray] | None,
    clean_x,
    draws: int = 200,
):
    """Q [N] in world A. Of an attack on labels, `relabel` of honest ones, the mean over `draws` of honest labels; of
    planted rows what they say, and what θ_A says of the others.
    """
    honest = expit(np.asarray(seen_x, float) @ theta_a)
    if relabel is None:
        kept = np.all(np.isclose(seen_x, clean_x, rtol=1e-5, atol=0), axis=1)
        return np.where(kept, honest, seen_labels > 0)
    rng = np.random.default_rng(0)
    changes = np.zeros(len(honest))
    for _ in range(draws):
        labels = np.where(rng.random(len(honest)) < honest, 1.0, -1.0)
        changes += (relabel(labels) - labels) / 2
    return np.clip(honest + changes / draws, 0.0, 1.0)


def same_rows_alike(x, wins):
    """Rows turned so that their first entry that is not 0 is positive; equal rows share their mean: which of them was
    planted, nobody sees.
    """
    first = x[np.arange(len(x)), np.argmax(x != 0, axis=1)]
    turned = np.where(first < 0, -1.0, 1.0)
    x, wins = x * turned[:, None] + 0.0, np.where(turned < 0, 1 - wins, wins)
    _, group, sizes = np.unique(x, axis=0, return_inverse=True, return_counts=True)
    group = group.reshape(-1)
    return x, (np.bincount(group, wins) / sizes)[group]
