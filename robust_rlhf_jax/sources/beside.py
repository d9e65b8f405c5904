"""What stands beside the pairs, one value for each: labels, groups and raters."""

from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Shaped

from robust_rlhf_jax.io.frames import unmasked
from robust_rlhf_jax.io.npy_arrays import npy_vector

ALLOWED = (
    "1 where the first option is preferred, and -1 or 0 (everywhere the same of them) where the second is"
)


def second_won(labels: Any, n_pairs: int) -> Bool[np.ndarray, " N"] | None:
    """Where the second option is preferred, by labels that are ±1 or 0/1; None if nowhere.

    **Raises:** ValueError for other labels, or another number of them.
    """
    given, labels = labels, _one_each(labels, n_pairs, "labels")
    if labels is None:
        return None
    name = _named(given, "labels")
    if labels.dtype.kind not in "biuf":
        raise ValueError(f"{name} holds {labels.dtype}: give {ALLOWED}.")
    first = labels == 1
    others = labels[~first]
    if len(others) and (others[0] not in (-1, 0) or (others != others[0]).any()):
        wrong = np.flatnonzero(~first & ((labels != others[0]) | (others[0] not in (-1, 0))))[0]
        raise ValueError(f"{name}[{wrong}] is {labels[wrong]}: give {ALLOWED}.")
    return ~first if len(others) else None


def groups_and_raters(
    groups: Any, raters: Any, n_pairs: int
) -> tuple[Shaped[np.ndarray, " N"] | None, Shaped[np.ndarray, " N"] | None]:
    """(groups, raters) as arrays of any values that can be sorted; the pairs of a rater are a group where no groups are
    given.

    **Raises:** ValueError for another number of them.
    """
    groups, raters = (
        None if values is None else sortable(values)
        for values in (_one_each(groups, n_pairs, "groups"), _one_each(raters, n_pairs, "raters"))
    )
    return raters if groups is None else groups, raters


def sortable(values: Shaped[np.ndarray, " N"]) -> Shaped[np.ndarray, " N"]:
    """The values, or words for them where they are of types that have no common order: 1 and "1" stay two."""
    if values.dtype != object:
        return values
    try:
        np.sort(values)
    except TypeError:
        words, exact = ([show(value) for value in values.tolist()] for show in (str, repr))
        return np.array(words if len(set(words)) == len(set(exact)) else exact)
    return values


def _one_each(values: Any, n_pairs: int, name: str) -> np.ndarray | None:
    """`values`, or those of the `.npy` file that they name."""
    if values is None:
        return None
    given = values
    values = (
        npy_vector(Path(values), None) if isinstance(values, str | Path) else np.asarray(unmasked(values))
    )
    if values.shape != (n_pairs,):
        raise ValueError(
            f"{_named(given, name)} has shape {values.shape}: give one for each of the {n_pairs} pairs."
        )
    return values


def _named(given: Any, name: str) -> str:
    """What a message calls values: their file, or their `name`."""
    return str(given) if isinstance(given, str | Path) else name
