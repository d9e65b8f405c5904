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

# Pairs below which nothing is said of a rater; nats by which a bad kind must explain all labels better to be believed.
FEWEST, CERTAINTY = 5, 3.0
# Reliability below which, with all of its interval below 1, a rater of the crowd is noisy.
NOISY = 0.6


def admitted(mixture: Mixture, first_bad: int) -> Float[np.ndarray, "K J"]:
    """P(kind) without the bad kinds that do not explain the labels of all raters better than the others do."""
    evidence, shares = (np.asarray(part, float) for part in (mixture.evidence, mixture.shares))
    joint = evidence + np.log(shares)
    for j in range(first_bad, len(shares)):
        rest = np.delete(np.arange(len(shares)), j)
        without = np.logaddexp.reduce(joint[:, rest], axis=1) - np.log1p(-shares[j])
        if np.sum(np.logaddexp.reduce(evidence + np.log(shares), axis=1) - without) < CERTAINTY:
            joint[:, j] = -1e6
    return np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))


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
