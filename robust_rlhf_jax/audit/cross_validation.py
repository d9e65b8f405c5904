"""Plain and robust fits of every training fold, and what they say about the fold that they did not see."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from .contention import Contention
from .folds import group_folds, training_rows


class BothFits(NamedTuple):
    """One training fold, axis [2] plain and robust; `share`, `interval` and `weights` are of the robust fit, as is
    `contention`: the two rewards of it that contend, if any do.
    """

    theta: Float[np.ndarray, "2 k"]
    status: Int[np.ndarray, " 2"]
    share: Float[np.ndarray, ""]
    interval: Float[np.ndarray, " 2"]
    weights: Float[np.ndarray, " n"]
    contention: Contention | None


class CrossValidation(NamedTuple):
    """The fits of R repeats of F folds, axis [2] plain and robust.

    | field | meaning |
    |---|---|
    | `scores` | θᵀz of each pair under the fits that did not see it |
    | `fold_of` | the fold that holds the pair out |
    | `theta`, `status` | of the fits, θ in units of z |
    | `share`, `interval` | the share that the robust fit finds evidence against, and its interval |
    | `saw`, `left` | how many fits saw each pair, and how many of them left it out |
    | `contentions` | of each robust fit |
    """

    scores: Float[np.ndarray, "R N 2"]
    fold_of: Int[np.ndarray, "R N"]
    theta: Float[np.ndarray, "R F 2 k"]
    status: Int[np.ndarray, "R F 2"]
    share: Float[np.ndarray, "R F"]
    interval: Float[np.ndarray, "R F 2"]
    saw: Float[np.ndarray, " N"]
    left: Float[np.ndarray, " N"]
    contentions: list[Contention | None]


def cross_validate(
    rng: np.random.Generator,
    fit: Callable[[Bool[np.ndarray, " N"], Int[np.ndarray, " n"]], BothFits],
    z: Float[np.ndarray, "N k"],
    groups: np.ndarray,
    folds: int,
    repeats: int,
    most: int,
    progress: Callable[[int, int], None] | None = None,
) -> CrossValidation:
    """Call `fit(seen, rows)` for each training fold: which pairs are in it, and at most `most` of their numbers."""
    fold_of = np.stack([group_folds(rng, groups, folds) for _ in range(repeats)])
    rows = training_rows(rng, fold_of, folds)[..., :most]
    scores = np.zeros((repeats, len(z), 2), z.dtype)
    theta = np.zeros((repeats, folds, 2, z.shape[1]), z.dtype)
    status = np.zeros((repeats, folds, 2), np.int32)
    share, interval = np.zeros((repeats, folds)), np.zeros((repeats, folds, 2))
    saw, left, contentions = np.zeros(len(z)), np.zeros(len(z)), []
    tell = progress or (lambda done, total: None)
    tell(0, repeats * folds)
    for done, (r, f) in enumerate(np.ndindex(repeats, folds), 1):
        held_out = fold_of[r] == f
        found = fit(~held_out, rows[r, f])
        theta[r, f], status[r, f], share[r, f], interval[r, f] = found[:4]
        saw[rows[r, f]] += 1
        left[rows[r, f]] += 1 - found.weights
        contentions.append(found.contention)
        scores[r, held_out] = z[held_out] @ theta[r, f].T
        tell(done, repeats * folds)
    return CrossValidation(scores, fold_of, theta, status, share, interval, saw, left, contentions)
