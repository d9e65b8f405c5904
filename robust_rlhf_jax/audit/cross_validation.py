"""Plain and robust fits of every training fold, and what they say about the fold that they did not see."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from .contention import Contention, contention_of
from .fits import PlainFoldFit, RobustFoldFit
from .folds import group_folds, training_rows


class FoldFits(NamedTuple):
    """One of the two rewards in all folds: `scores`, θᵀz of each pair under the fits that did not see it; `theta`, in
    units of z, and `status` of each fit.
    """

    scores: Float[np.ndarray, "R N"]
    theta: Float[np.ndarray, "R F k"]
    status: Int[np.ndarray, "R F"]

    @staticmethod
    def empty(repeats: int, folds: int, z: Float[np.ndarray, "N k"]) -> "FoldFits":
        n, k = z.shape
        theta = np.zeros((repeats, folds, k), z.dtype)
        return FoldFits(np.zeros((repeats, n), z.dtype), theta, np.zeros((repeats, folds), np.int32))


class CrossValidation(NamedTuple):
    """The fits of R repeats of F folds.

    | field | meaning |
    |---|---|
    | `plain`, `robust` | `FoldFits` |
    | `fold_of` | the fold that holds the pair out |
    | `share`, `interval` | the share that the robust fit finds evidence against, and its interval |
    | `saw`, `left` | how many fits saw each pair, and how many robust fits left it out |
    | `contentions` | of each robust fit: the two rewards of it that contend, if any do |
    """

    plain: FoldFits
    robust: FoldFits
    fold_of: Int[np.ndarray, "R N"]
    share: Float[np.ndarray, "R F"]
    interval: Float[np.ndarray, "R F 2"]
    saw: Float[np.ndarray, " N"]
    left: Float[np.ndarray, " N"]
    contentions: list[Contention | None]


def cross_validate(
    rng: np.random.Generator,
    fit: Callable[[Bool[np.ndarray, " N"], Int[np.ndarray, " n"]], tuple[PlainFoldFit, RobustFoldFit]],
    z: Float[np.ndarray, "N k"],
    groups: np.ndarray,
    folds: int,
    repeats: int,
    most: int,
    progress: Callable[[int, int], None] | None = None,
) -> CrossValidation:
    """Call `fit(training, rows)` for each fold: `training` marks the pairs of the other folds, and `rows` are at most
    `most` of their numbers.
    """
    fold_of = np.stack([group_folds(rng, groups, folds) for _ in range(repeats)])
    rows = training_rows(rng, fold_of, folds)[..., :most]
    plain, robust = FoldFits.empty(repeats, folds, z), FoldFits.empty(repeats, folds, z)
    share, interval = np.zeros((repeats, folds)), np.zeros((repeats, folds, 2))
    saw, left, contentions = np.zeros(len(z)), np.zeros(len(z)), []
    tell = progress or (lambda done, total: None)
    tell(0, repeats * folds)
    for done, (r, f) in enumerate(np.ndindex(repeats, folds), 1):
        held_out = fold_of[r] == f
        one, other = fit(~held_out, rows[r, f])
        for fits, found in ((plain, one), (robust, other)):
            fits.theta[r, f], fits.status[r, f] = found.theta, found.status
            fits.scores[r, held_out] = z[held_out] @ fits.theta[r, f]
        share[r, f], interval[r, f] = other.share, other.interval
        saw[rows[r, f]] += 1
        left[rows[r, f]] += 1 - np.asarray(other.weights)
        contentions.append(contention_of(other.explanations))
        tell(done, repeats * folds)
    return CrossValidation(plain, robust, fold_of, share, interval, saw, left, contentions)
