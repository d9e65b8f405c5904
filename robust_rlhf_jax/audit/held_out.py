"""What fits say about pairs that they did not see, for every pair of a file."""

import dataclasses
import functools
from collections.abc import Callable

import jax
import numpy as np
from jaxtyping import Bool, Float, Int

from robust_rlhf_jax.io import Pairs

from .compared import ComparedByFields
from .cross_fit import audit
from .flips import Flips, estimate_flips
from .result import AuditResult, most_suspicious

# Rows that a fit sees at most: more would cost minutes, and move no margin by an amount that matters.
MOST_ROWS = 20_000
# Entries of the differences up to which the cross-validation is repeated with other folds.
REPEATED, REPEATS = 100_000, 5


@dataclasses.dataclass(frozen=True, eq=False)
class HeldOut(ComparedByFields):
    """An audit of the pairs at `rows`, told for all pairs of a file, chosen against rejected.

    | field | shape | meaning |
    |---|---|---|
    | `audit` | | the `AuditResult` of the pairs at `rows`: no tie, weight above 0 |
    | `rows` | [M] | the pairs that it is about |
    | `differ` | [N] | whether the sides of the pair differ |
    | `flips` | | of pairs that no fit contradicts: the share that looks flipped, and how honest labels differ |

    **Example:**

    >>> from robust_rlhf_jax import audit, preferences
    >>> pairs = preferences.rail_pairs().take(range(200))
    >>> held_out = audit.hold_out(pairs, folds=3, repeats=1)
    >>> held_out.epsilon, int(held_out.contradicted.sum()), held_out.margins.shape
    (0.0, 0, (200,))
    """

    audit: AuditResult
    rows: Int[np.ndarray, " M"]
    differ: Bool[np.ndarray, " N"]
    flips: Flips

    @functools.cached_property
    def margins(self) -> Float[np.ndarray, " N"]:
        """θᵀ(φ(chosen) − φ(rejected)) by robust fits without the pair; 0 where a pair took no part."""
        return self._everywhere(self.audit.robust.margins.astype(float))

    @functools.cached_property
    def fitted(self) -> Bool[np.ndarray, " N"]:
        """Whether the pair took part."""
        return self._everywhere(np.ones(len(self.rows), bool)) & self.differ

    @functools.cached_property
    def contradicted(self) -> Bool[np.ndarray, " N"]:
        """The pairs of highest suspicion, as many as the fits find evidence against, whatever ε they were given."""
        return self._everywhere(most_suspicious(self.audit.suspicion, self.audit.evidence))

    @functools.cached_property
    def left_out(self) -> Float[np.ndarray, " N"]:
        """Share of the robust fits that saw the pair and left it out."""
        return self._everywhere(self.audit.left_out)

    @property
    def epsilon(self) -> float:
        """The share of corrupt pairs that there is evidence for: contradictions, and flips among the rest."""
        return self._with_contradicted(self.flips.evident)

    @property
    def interval(self) -> tuple[float, float]:
        """Shares that are certain, and that could be."""
        low, high = (float(share) for share in self.audit.interval)
        return min(low, self.epsilon), max(high, self._with_contradicted(self.flips.upper))

    def _with_contradicted(self, share_of_rest: float) -> float:
        evidence = float(self.audit.evidence)
        return evidence + (1.0 - evidence) * share_of_rest

    def agreement(self) -> Float[np.ndarray, " N"]:
        """P(chosen is preferred) of each pair by honest labels, calibrated (`Differences`); ½ where it took no part."""
        return self.flips.honest.agree(self.margins, self._everywhere(self.audit.lengths.astype(float)))

    def _everywhere(self, values: np.ndarray) -> np.ndarray:
        all_rows = np.zeros(len(self.differ), values.dtype)
        all_rows[self.rows] = values
        return all_rows


def hold_out(
    pairs: Pairs,
    epsilon: float | None = None,
    *,
    folds: int = 5,
    repeats: int | None = None,
    seed: int = 0,
    most: int = MOST_ROWS,
    progress: Callable[[int, int], None] | None = None,
) -> HeldOut:
    """Fit plain and robust rewards to folds of `pairs`, and score each pair by fits that did not see it.

    **Arguments:** as `audit`; `repeats`: None for 5 on small files and 1 on others; folds split no rater.

    **Raises:** TypeError for what is not `Pairs`; ValueError as `audit`, and for fewer than two pairs that differ.

    **Example:**

    >>> from robust_rlhf_jax import preferences
    >>> from robust_rlhf_jax.audit import hold_out
    >>> pairs = preferences.rail_pairs().take(range(200))
    >>> float((hold_out(pairs, folds=3, repeats=1).margins > 0).mean()) > 0.6  # the share of choices foretold
    True
    """
    found = audit(
        jax.random.key(seed), enough_pairs(pairs), epsilon, folds=folds,
        repeats=usual_repeats(pairs) if repeats is None else repeats, most=most, progress=progress,
    )  # fmt: skip
    return held_out_pairs(pairs, found)


def enough_pairs(pairs: Pairs) -> Pairs:
    """The pairs that fits are made of: no tie, weight above 0.

    **Raises:** TypeError for what is not `Pairs`; ValueError for fewer than two.
    """
    if not isinstance(pairs, Pairs):
        raise TypeError(
            f"pairs is of the type {type(pairs).__name__}: give Pairs(chosen, rejected), or what io.load_pairs reads; "
            "audit.audit(key, data) takes PreferenceData, too."
        )
    fitted = pairs.decided() if pairs.fitted.any() else None
    if fitted is None or fitted.n_pairs < 2:
        raise ValueError(
            f"{pairs.path} has {int(pairs.fitted.sum())} pair to fit: fits are scored on pairs that they did not see, "
            "so give more."
        )
    return fitted


def usual_repeats(pairs: Pairs) -> int:
    return REPEATS if np.size(pairs.chosen) <= REPEATED else 1


def held_out_pairs(pairs: Pairs, found: AuditResult, *, upper: bool = True) -> HeldOut:
    """What `found`, an audit of `pairs.decided()`, says about all pairs.

    **Arguments:** `upper`: whether the upper end of `interval` is wanted (`estimate_flips`).
    """
    differ = np.any(np.asarray(pairs.chosen) != np.asarray(pairs.rejected), axis=1)
    rest = ~most_suspicious(found.suspicion, found.evidence)
    flips = estimate_flips(found.robust.margins[rest], found.lengths[rest], upper=upper)
    return HeldOut(found, np.flatnonzero(pairs.fitted), differ, flips)
