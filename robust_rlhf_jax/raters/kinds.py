"""The kind of a rater: when one is called random, contrary, of another taste, and when nothing is said."""

import numpy as np
from jaxtyping import Float

from .mixture import Mixture

OTHER_TASTE, UNKNOWN = "other taste", "too few pairs to say"
KINDS = (
    "attentive",
    "noisy",
    "random",
    "always first",
    "always longer",
    "contrary",
    OTHER_TASTE,
    UNKNOWN,
)
# Kinds whose labels say nothing of what raters like.
BAD = ("random", "always first", "always longer", "contrary")

# Pairs below which nothing is said of a rater; nats by which a kind must explain all labels better to be believed.
FEWEST, CERTAINTY = 5, 3.0
# Reliability below which, with all of its interval below 1, a rater of the crowd is noisy.
NOISY = 0.6


def admitted(mixture: Mixture, first_bad: int) -> Float[np.ndarray, "K J"]:
    """P(kind) without the kinds that do not explain the labels of all raters better than the others do.

    What a bad kind had goes to all others. What another taste had goes to the crowd: nobody is bad for lack of it.
    """
    evidence, shares = (np.asarray(part, float) for part in (mixture.evidence, mixture.shares))
    joint = evidence + np.log(shares)
    gains = np.array([_gain(joint, shares, j) for j in range(len(shares))])
    joint[:, first_bad:] = np.where(gains[first_bad:] < CERTAINTY, -1e6, joint[:, first_bad:])
    chance = np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))
    doubtful = np.flatnonzero(gains[1:first_bad] < CERTAINTY) + 1
    chance[:, 0] += chance[:, doubtful].sum(axis=1)
    chance[:, doubtful] = 0.0
    return chance


def _gain(joint: Float[np.ndarray, "K J"], shares: Float[np.ndarray, " J"], j: int) -> float:
    """Nats by which the labels of all raters are likelier with kind j than without."""
    rest = np.delete(np.arange(len(shares)), j)
    without = np.logaddexp.reduce(joint[:, rest], axis=1) - np.log1p(-shares[j])
    return float(np.sum(np.logaddexp.reduce(joint, axis=1) - without))


def kind_of(
    pairs: int, chance: Float[np.ndarray, " J"], first_bad: int, bad_kinds: tuple[str, ...], noisy: bool
) -> str:
    """One of `KINDS`: what is likelier than not, given the `chance` of the crowd, other tastes and the `bad_kinds`."""
    bad, other = float(chance[first_bad:].sum()), float(chance[1:first_bad].sum())
    if pairs < FEWEST or max(bad, other, chance[0]) <= 0.5:
        return UNKNOWN
    if bad > 0.5:
        return bad_kinds[int(np.argmax(chance[first_bad:]))]
    if other > 0.5:
        return OTHER_TASTE
    return "noisy" if noisy else "attentive"
