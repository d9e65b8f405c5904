"""Krippendorff's α: how far raters of the same pair agree beyond chance."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Float, Int

from ._missing import listed

DRAWS, BLOCK = 1000, 1 << 22


class Agreement(NamedTuple):
    """Krippendorff's `alpha`, with the ends `low` and `high` of its 95 % interval (units drawn again); `units` that
    several raters judged, and their `ratings` in all.

    1: raters always agree, 0: as often as if each had drawn from all ratings, below 0: less often.

    **Example:**

    >>> from robust_rlhf_jax.raters import Agreement
    >>> Agreement(0.6, 0.5, 0.7, 120, 360).alpha
    0.6
    """

    alpha: float
    low: float
    high: float
    units: int
    ratings: int


def krippendorff_alpha(
    units: ArrayLike, values: ArrayLike, *, opposite: Mapping[Any, Any] | None = None, seed: int = 0
) -> Agreement | None:
    """α = 1 − D_o/D_e of nominal values: of which two options is preferred, or that they tie.

    D_o: the share of unlike values among two ratings of one unit, each unit counting as its number of ratings; D_e: the
    same of two ratings of any units. Units with one rating say nothing. The interval draws units again, 1,000 times.

    **Arguments:** `units` [R] and `values` [R]: what each rating is of, and what it says (any values that can be
    keys; None, NaN and pandas' NA are no ratings, and a rating of no unit is none); `opposite`: what each value becomes
    if the two options of a unit are exchanged: D_e is then that of both orders, and α the same whichever option of a
    unit is called the first; `seed` of the draws.

    **Returns:** `Agreement`; None where no unit has two ratings, or all ratings are the same.

    **Raises:** ValueError for arrays of different lengths.

    **Source:** Krippendorff 2011, *Computing Krippendorff's alpha-reliability*; draws: Hayes & Krippendorff 2007.

    **Example:**

    >>> from robust_rlhf_jax.raters import krippendorff_alpha
    >>> found = krippendorff_alpha([1, 1, 1, 2, 2, 3, 3, 4, 4], [0, 0, 1, 1, 1, 0, 0, 1, 1])
    >>> round(found.alpha, 2), found.units, found.ratings
    (0.6, 4, 9)
    """
    unit, value = listed(units), listed(values)
    if len(unit) != len(value) or any(isinstance(one, list) for one in (*unit, *value)):
        raise ValueError(
            f"units has shape {np.shape(units)} and values {np.shape(values)}: give one of each for a rating."
        )
    rated = [
        (one, said) for one, said in zip(unit, value, strict=True) if one is not None and said is not None
    ]
    if not rated:
        return None
    turned = dict(opposite or {})
    kinds = _numbered([*(said for _, said in rated), *turned, *turned.values()])
    exchanged = np.array([kinds[turned.get(kind, kind)] for kind in kinds])
    unit_numbers = _numbered([one for one, _ in rated])
    of, what = (np.array(part) for part in zip(*((unit_numbers[a], kinds[b]) for a, b in rated), strict=True))
    counts = np.zeros((of.max() + 1, len(kinds)))
    np.add.at(counts, (of, what), 1.0)
    counts = counts[counts.sum(axis=1) > 1]
    alpha = float(_alpha(counts, exchanged, np.ones((1, len(counts))))[0]) if len(counts) else np.nan
    if np.isnan(alpha):
        return None
    drawn = _drawn_again(counts, exchanged, np.random.default_rng(seed))
    low, high = np.nanquantile(drawn, (0.025, 0.975))
    return Agreement(alpha, float(low), float(high), len(counts), int(counts.sum()))


def _numbered(values: list) -> dict[Any, int]:
    """The number of each value, in an order that does not depend on which comes first."""
    try:
        ordered = sorted(set(values))
    except TypeError:
        ordered = sorted(set(values), key=repr)
    return {value: number for number, value in enumerate(ordered)}


def _alpha(
    counts: Float[np.ndarray, "U V"], exchanged: Int[np.ndarray, " V"], times: Float[np.ndarray, "B U"]
) -> Float[np.ndarray, " B"]:
    """α where unit u counts `times` often; NaN where all ratings are the same."""
    ratings = counts.sum(axis=1)
    unlike = (ratings**2 - np.sum(counts**2, axis=1)) / (ratings - 1.0)
    n, of_value = times @ ratings, times @ (0.5 * (counts + counts[:, exchanged]))
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = (n**2 - np.sum(of_value**2, axis=1)) / (n - 1.0)
        return np.where(expected > 0, 1.0 - (times @ unlike) / expected, np.nan)


def _drawn_again(
    counts: Float[np.ndarray, "U V"], exchanged: Int[np.ndarray, " V"], rng: np.random.Generator
) -> Float[np.ndarray, " B"]:
    """α of units drawn again: each counts as often as it was drawn."""
    u = len(counts)
    at_once = max(1, min(DRAWS, BLOCK // u))
    sizes = [min(at_once, DRAWS - start) for start in range(0, DRAWS, at_once)]
    times = (rng.multinomial(u, np.full(u, 1.0 / u), size=size).astype(float) for size in sizes)
    return np.concatenate([_alpha(counts, exchanged, t) for t in times])
