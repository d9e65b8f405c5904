"""Folds for cross-validation that never split a group."""

import numpy as np
from jaxtyping import Int


def group_folds(rng: np.random.Generator, groups: Int[np.ndarray, " N"], folds: int) -> Int[np.ndarray, " N"]:
    """A fold 0…folds−1 for each row; rows of one group share theirs, and folds are about equally large.

    Groups, in random order, each go to the fold that has the fewest rows so far.

    **Raises:** ValueError if `folds` < 2 or there are fewer groups than folds.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax.audit import group_folds
    >>> people = np.array([0, 0, 1, 1, 2, 3])
    >>> fold = group_folds(np.random.default_rng(0), people, folds=2)
    >>> np.bincount(fold).tolist(), bool(fold[0] == fold[1] and fold[2] == fold[3])
    ([3, 3], True)
    """
    _, of_row, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    if len(sizes) < 2:
        raise ValueError(
            "all pairs belong to one group, such as those of one rater, and none is left to fit where it is held out: "
            "give pairs of 2 groups or more."
        )
    if not 2 <= folds <= len(sizes):
        allowed = "be 2" if len(sizes) == 2 else f"lie between 2 and {len(sizes)}"
        raise ValueError(
            f"folds={folds} must {allowed}, the number of independent groups of pairs, such as "
            "those of one rater: give another number of folds, or more pairs."
        )
    fold_of_group, rows = np.zeros(len(sizes), int), np.zeros(folds, int)
    for group in rng.permutation(len(sizes)):
        smallest = int(np.argmin(rows))
        fold_of_group[group] = smallest
        rows[smallest] += sizes[group]
    return fold_of_group[of_row]


def training_rows(
    rng: np.random.Generator, fold_of_row: Int[np.ndarray, "R N"], folds: int
) -> Int[np.ndarray, "R F M"]:
    """Rows outside each fold of each repeat, in random order.

    All are cut to the length of the shortest, so that fits to them share one shape and one compilation; folds of
    about equal size lose few rows by it.
    """
    rows = [[rng.permutation(np.flatnonzero(of != fold)) for fold in range(folds)] for of in fold_of_row]
    length = min(len(outside) for repeat in rows for outside in repeat)
    return np.array([[outside[:length] for outside in repeat] for repeat in rows])
