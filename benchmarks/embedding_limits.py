"""Whether anybody could tell the attacked embeddings of `embeddings.py` from honest ones of other raters.

Where too little of plain's loss is back, a certificate (`lab.diagnostics.two_chances`) excuses it: a world B in which
no more than ε of the pairs are corrupt either, the fit's answer is right, and the true chances of world A lose more
than the bar allows the fit to lose in A.
"""

from itertools import chain
from typing import NamedTuple

import numpy as np
from embedding_worlds import World, attacked
from scipy.special import expit, logit

from robust_rlhf_jax.lab.diagnostics.two_chances import Chances, LogLossCertificate, certificate_of_log_loss
from robust_rlhf_jax.lab.diagnostics.two_worlds import chance_of_wins

# Pairs from which one learns what the fit says of the attacked world without the noise of few pairs, and how far from
# the truth towards that B is sought.
MANY = 100_000
TOWARDS = (1.0, 0.9, 0.8, 0.75, 0.7, 0.65, 0.6, 0.5)
DRAWS = 200


class Attacked(NamedTuple):
    """A world, and its preferred less other [n, k] before the attack and after it."""

    world: World
    clean: np.ndarray
    z: np.ndarray
    attack: str
    epsilon: float


def many_pairs(seen: Attacked) -> np.ndarray:
    """`MANY` other pairs of the same world under the same attack."""
    clean = seen.world.preferred(np.random.default_rng(3), MANY)
    return attacked(seen.world, clean, seen.attack, seen.epsilon, np.random.default_rng(4))


def certificates(
    seen: Attacked, answers: dict[str, Chances], limit: Chances, judged: np.ndarray, lost: float
) -> dict[str, LogLossCertificate]:
    """By name of the answer: of the worlds B between the truth and the `limit`, what the fit says of `MANY` pairs, the
    first that excuses it; if none does, the one at the limit.
    """
    wins = observed_chances(seen)

    def truth(x):
        return expit(x @ seen.world.theta)

    def towards(share):
        def of_b(x):
            margin = x @ seen.world.theta
            believed = np.clip(np.asarray(limit(x), float), 1e-9, 1 - 1e-9)
            return expit(margin + share * (logit(believed) - margin))

        return of_b

    def best(answer):
        worlds = (
            certificate_of_log_loss(seen.z, wins, truth, towards(share), answer, judged) for share in TOWARDS
        )
        first = next(worlds)
        return next((found for found in chain([first], worlds) if found.holds(seen.epsilon, lost)), first)

    return {name: best(answer) for name, answer in answers.items()}


def observed_chances(seen: Attacked) -> np.ndarray:
    """Q [n]: how often each pair is observed as a win, as it is turned after the attack."""
    if seen.attack != "confident":
        return chance_of_wins(seen.z, np.ones(len(seen.z)), seen.world.theta, None, seen.clean)

    def relabel(labels):
        pairs = seen.z * labels[:, None]
        flipped = attacked(seen.world, pairs, seen.attack, seen.epsilon, np.random.default_rng(0))
        return np.where(np.all(flipped == seen.z, axis=1), 1.0, -1.0)

    return chance_of_wins(seen.z, np.ones(len(seen.z)), seen.world.theta, relabel, seen.clean, DRAWS)
