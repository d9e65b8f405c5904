"""When no algorithm can tell: two rewards that the same observed pairs fit, each with no more than ε of them corrupt.

World A is the truth, its pairs attacked. In world B another reward θ_B is true. Given the observed x, B's honest labels
become those observed by changing pair n with chance |σ(θ_Bᵀx_n) − Q_n|, Q_n the chance that the observed label is a win
(the maximal coupling of two coins). If that is ε of the pairs, each label is seen with the same chance in both worlds,
and whoever is right in A is wrong in B. The law of x is not known to anyone, and says nothing.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

# Lengths of θ_B that are tried, times its own.
LENGTHS = 2.0 ** np.arange(-3.0, 1.6, 0.125)


class Certificate(NamedTuple):
    """`cost`: share of the pairs that must be corrupt if θ_B is true; `error`: its standard deviation by chance;
    `stake`: accuracy that θ_A would lose in world B."""

    cost: float
    error: float
    stake: float

    def holds(self, epsilon: float) -> bool:
        """B is within reach: ε of the pairs, and two standard deviations for the labels' chance."""
        return self.cost <= epsilon + 2 * self.error


def certificate(x, wins: Float[np.ndarray, " N"], theta_b, theta_a, test_x) -> Certificate:
    """What the direction of θ_B costs where pair n shows a win with chance `wins[n]`, at the length that costs least:
    who is right about every pair does not depend on it.
    """
    x, wins = _same_rows_alike(np.asarray(x, float), np.asarray(wins, float))
    margins = x @ theta_b
    changes = [np.abs(_sigmoid(length * margins) - wins) for length in LENGTHS]
    least = int(np.argmin([change.mean() for change in changes]))
    changed = changes[least]
    believed, other = LENGTHS[least] * (test_x @ theta_b), test_x @ theta_a
    stake = np.mean(np.abs(2 * _sigmoid(believed) - 1) * (believed * other < 0))
    return Certificate(changed.mean(), np.sqrt(np.sum(changed * (1 - changed))) / len(x), stake)


def chance_of_wins(
    seen_x,
    seen_labels,
    theta_a,
    relabel: Callable[[np.ndarray], np.ndarray] | None,
    clean_x,
    draws: int = 200,
    rng: np.random.Generator | None = None,
):
    """Q [N] in world A. Of an attack on labels, `relabel` of honest ones, the mean over `draws` of honest labels; of
    planted rows what they say, and what θ_A says of the others.
    """
    honest = _sigmoid(np.asarray(seen_x, float) @ theta_a)
    if relabel is None:
        kept = np.all(np.isclose(seen_x, clean_x, rtol=1e-5, atol=0), axis=1)
        return np.where(kept, honest, seen_labels > 0)
    rng = np.random.default_rng(0) if rng is None else rng
    changes = np.zeros(len(honest))
    for _ in range(draws):
        labels = np.where(rng.random(len(honest)) < honest, 1.0, -1.0)
        changes += (relabel(labels) - labels) / 2
    return np.clip(honest + changes / draws, 0.0, 1.0)


def _same_rows_alike(x, wins):
    """Rows turned so that their first entry that is not 0 is positive; equal rows share their mean: which of them was
    planted, nobody sees.
    """
    first = x[np.arange(len(x)), np.argmax(x != 0, axis=1)]
    turned = np.where(first < 0, -1.0, 1.0)
    x, wins = x * turned[:, None] + 0.0, np.where(turned < 0, 1 - wins, wins)
    _, group, sizes = np.unique(x, axis=0, return_inverse=True, return_counts=True)
    group = group.reshape(-1)
    return x, (np.bincount(group, wins) / sizes)[group]


def _sigmoid(margins):
    return 1 / (1 + np.exp(-np.clip(margins, -500, 500)))
