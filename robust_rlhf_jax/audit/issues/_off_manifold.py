"""Features unlike those of all other pairs: planted, broken, or from elsewhere."""

import numpy as np
from jaxtyping import Float

from .base import Batch, Issue, counted
from .wordings import Wordings

ORDER = 20

# A pair is far if its log-distance exceeds the median by so many robust standard deviations, and its distance the
# typical one by this factor.
DEVIATIONS, FACTOR = 7.0, 6.0
# Variance added along every direction, in typical entries: a rare honest feature alone does not make a pair far.
LEAST = 0.1
ROUNDS = 3
# Least typical entry, as a share of the root mean square; and least distance, in typical entries: where most rows are
# alike, one that differs a little is not far.
LEAST_ENTRY = LEAST_DISTANCE = 0.5
# Share of a side's words that no other pair has; sides of fewer words are not judged.
UNSEEN, FEW_WORDS = 0.5, 8


def off_manifold(batch: Batch) -> Issue:
    """Score: how near a pair's features lie to the file's, 1 up to the typical distance, falling with its inverse.

    Distance: √(yᵀ(S + λI)⁻¹y/p) of y = chosen − rejected and of either side less the median, columns divided by a
    typical entry, S from the half of the rows that lies nearest. Flagged: beyond e^(median + 7 deviations) of the
    log-distances and 6 times the typical one; or, of texts, where more than half of a side's words, and far more than
    usual, occur in no other pair.
    """
    pairs = batch.pairs
    chosen, rejected = (np.asarray(side, np.float64) for side in (pairs.chosen, pairs.rejected))
    distances = [_distance(chosen - rejected), *_side_distances(chosen, rejected)]
    excess = np.max([_excess(d) for d in distances], axis=0)
    strange = np.zeros(len(chosen)) if batch.wordings is None else _unseen_words(batch.wordings)
    alone = strange > max(UNSEEN, np.median(strange) + DEVIATIONS * _deviation(strange))
    flag = (excess > 1.0) | alone
    typical = np.max([d / np.median(np.maximum(d, LEAST_DISTANCE)) for d in distances], axis=0)
    score = np.minimum(1.0 / np.maximum(typical, 1.0), 1.0 - strange)

    def explain(row: int) -> str:
        if alone[row]:
            return f"{strange[row]:.0%} of the words of one side occur in no other pair: planted, broken or foreign."
        return f"Its features lie {typical[row]:.3g} times as far out as a typical pair's: planted or broken."

    n = pairs.n_pairs
    return Issue(
        "off_manifold",
        score,
        flag,
        explain,
        counted(int(flag.sum()), n, "lie far off all others"),
        doubts="flagged pairs",
        suggests="none",
    )


def _side_distances(chosen: Float[np.ndarray, "N p"], rejected: Float[np.ndarray, "N p"]):
    centre = np.median(np.concatenate([chosen, rejected]), axis=0)
    both = _distance(np.concatenate([chosen, rejected]) - centre)
    return both[: len(chosen)], both[len(chosen) :]


def _distance(y: Float[np.ndarray, "N p"]):
    """The distance of each row from 0, in the metric of the nearer half."""
    scaled = y / np.array([_typical_entry(column) for column in y.T])
    p = scaled.shape[1]
    found = np.sqrt(np.mean(np.minimum(scaled**2, 1e200), axis=1))
    for _ in range(ROUNDS):
        near = scaled[found <= np.median(found)]
        moment = near.T @ near / len(near) + LEAST * np.eye(p)
        factor = np.linalg.cholesky(moment)
        found = np.sqrt(np.mean(np.minimum(np.linalg.solve(factor, scaled.T) ** 2, 1e200), axis=0))
    return found


def _typical_entry(column: Float[np.ndarray, " N"]):
    """The median of what is not 0; at least half of the root mean square, where most entries are rounding.

    The largest hundredth of the entries does not count.
    """
    size = np.sort(np.abs(column))
    there = size[size > 0]
    if not there.size:
        return 1.0
    usual = size[: int(np.ceil(0.99 * len(size)))]
    largest = max(usual[-1], 1e-300)
    return max(np.median(there), LEAST_ENTRY * largest * np.sqrt(np.mean((usual / largest) ** 2)))


def _excess(distance: Float[np.ndarray, " N"]):
    """log-distance beyond the median, in units of what is tolerated."""
    logs = np.log(np.maximum(distance, LEAST_DISTANCE))
    return (logs - np.median(logs)) / max(DEVIATIONS * _deviation(logs), np.log(FACTOR))


def _deviation(values: Float[np.ndarray, " N"]):
    """Robust standard deviation, from the median."""
    return 1.4826 * np.median(np.abs(values - np.median(values)))


def _unseen_words(said: Wordings):
    """Share of each pair's words, of the stranger side, that occur in no other pair; 0 for sides of a few words."""
    alone = said.has @ (said.pairs_with() == 1)
    share = np.where(said.count >= FEW_WORDS, alone / np.maximum(said.count, 1), 0.0)
    return share[said.of[:, 1:]].max(axis=1)
