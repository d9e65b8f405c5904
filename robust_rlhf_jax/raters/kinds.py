"""The kind of a rater: when one is called random, contrary, of another taste, and when nothing is said."""

import numpy as np
from jaxtyping import Bool, Float

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
# Reliability below which, with all of its interval below 1, a rater of the crowd is noisy; the 2.5 % quantile of the
# normal distribution, below which their agreement must be.
NOISY, TOO_SELDOM = 0.6, -1.96


def admitted(mixture: Mixture, first_bad: int) -> Float[np.ndarray, "K J"]:
    """P(kind) without the kinds that do not explain the labels of all raters better than the others do.

    What a bad kind had goes to all others. What other tastes had, which are asked together, goes to the crowd: nobody
    is bad for lack of them. So does what they had if most raters are of them: then there is no crowd to differ from.
    """
    evidence, shares = (np.asarray(part, float) for part in (mixture.evidence, mixture.shares))
    joint = evidence + np.log(shares)
    whole = np.logaddexp.reduce(joint, axis=1)

    def doubtful(kinds: list[int]) -> bool:
        rest = np.delete(np.arange(len(shares)), kinds)
        without = np.logaddexp.reduce(joint[:, rest], axis=1) - np.log1p(-np.sum(shares[kinds]))
        return bool(np.sum(whole - without) < CERTAINTY)

    others = list(range(1, first_bad))
    no_others = doubtful(others) or np.sum(shares[others]) > 0.5
    for j in range(first_bad, len(shares)):
        if doubtful([j]):
            joint[:, j] = -1e6
    chance = np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))
    if no_others:
        chance[:, 0] += chance[:, others].sum(axis=1)
        chance[:, others] = 0.0
    return chance


def are_noisy(
    reliability: Float[np.ndarray, " K"], high: Float[np.ndarray, " K"], agreement: Float[np.ndarray, " K"]
) -> Bool[np.ndarray, " K"]:
    """Whose answers are less certain than the crowd's, given w_k, the upper end of its interval and the score test.

    Reliability takes the reward of the others for known. Where they have few pairs for the features, their reward
    explains nobody's labels and all would be noisy; the score test's `agreement`, about N(0, 1) for a rater who
    follows the reward, allows for how little the others know.
    """
    return (reliability < NOISY) & (high < 1) & (agreement < TOO_SELDOM)


def kind_of(
    pairs: int,
    chance: Float[np.ndarray, " J"],
    first_bad: int,
    bad_kinds: tuple[str, ...],
    opposite: bool,
    noisy: bool,
) -> str:
    """One of `KINDS`: what is likelier than not, given the `chance` of the crowd, other tastes and the `bad_kinds`.

    A rater of the crowd who weighs a weighty feature the `opposite` way has another taste as well.
    """
    bad, other = float(chance[first_bad:].sum()), float(chance[1:first_bad].sum())
    if pairs < FEWEST or max(bad, other, chance[0]) <= 0.5:
        return UNKNOWN
    if bad > 0.5:
        return bad_kinds[int(np.argmax(chance[first_bad:]))]
    if other > 0.5 or opposite:
        return OTHER_TASTE
    return "noisy" if noisy else "attentive"
