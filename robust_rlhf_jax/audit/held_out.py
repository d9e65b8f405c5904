"""What fits say about pairs that they did not see, for every pair of a file."""

import dataclasses
from collections.abc import Callable

import jax
import numpy as np
from jaxtyping import Bool, Float

from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.preferences import preferences_from_features

from .cross_fit import AuditResult, audit
from .flips import Flips, estimate_flips

# Rows that a fit sees at most: more would move no margin by what matters, and cost minutes.
MOST_ROWS = 20_000
# Entries of the differences up to which the cross-validation is repeated with other folds.
REPEATED, REPEATS = 100_000, 5


@dataclasses.dataclass(frozen=True)
class HeldOut:
    """Cross-fitted margins of all pairs of a file, chosen against rejected.

    | field | shape | meaning |
    |---|---|---|
    | `margins`, `plain_margins` | [N] | θᵀ(φ(chosen) − φ(rejected)), robust and plain, θ fitted without the pair |
    | `fitted` | [N] | whether the pair took part: no tie, weight above 0, sides that differ |
    | `left_out` | [N] | share of the robust fits that saw the pair and left it out |
    | `theta` | [2, p] | plain and robust reward, mean over the fits |
    | `flips` | | share of labels that look flipped at random, by their margins, and their scale |
    | `result` | | the `AuditResult` of the pairs that took part |
    """

    margins: Float[np.ndarray, " N"]
    plain_margins: Float[np.ndarray, " N"]
    fitted: Bool[np.ndarray, " N"]
    left_out: Float[np.ndarray, " N"]
    theta: Float[np.ndarray, "2 p"]
    flips: Flips
    result: AuditResult

    @property
    def epsilon(self) -> float:
        """The share of corrupt pairs that there is evidence for: contradictions of the fits, or flips."""
        return max(float(self.result.epsilon), self.flips.evident)

    @property
    def interval(self) -> tuple[float, float]:
        """Shares that are certain, and that could be."""
        low, high = (float(share) for share in self.result.interval)
        return min(low, self.epsilon), max(high, self.epsilon, self.flips.upper if self.flips.evident else 0.0)

    def agreement(self) -> Float[np.ndarray, " N"]:
        """P(chosen is preferred) of each pair, calibrated: σ(s·margin); ½ where a pair took no part."""
        return 1.0 / (1.0 + np.exp(-np.clip(self.flips.scale * self.margins, -40.0, 40.0)))


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

    **Raises:** ValueError as `audit`, and for fewer than two pairs that differ.
    """
    # An entry of a memory-mapped file is read here, once.
    chosen, rejected = np.asarray(pairs.chosen), np.asarray(pairs.rejected)
    fitted = ~pairs.ties & np.any(chosen != rejected, axis=1)
    fitted &= True if pairs.weights is None else pairs.weights > 0
    rows = np.flatnonzero(fitted)
    if len(rows) < 2:
        raise ValueError(f"{pairs.path} has {len(rows)} pairs whose sides differ: give at least two.")
    if repeats is None:
        repeats = REPEATS if rows.size * chosen.shape[1] <= REPEATED else 1
    # By place, not by content: all labels are +1 else, and a filter of x would read them off.
    turned = np.where(np.random.default_rng(seed).uniform(size=len(rows)) < 0.5, 1.0, -1.0)
    data = preferences_from_features(chosen[rows], rejected[rows], turned)
    groups = None if pairs.raters is None else pairs.raters[rows]
    if groups is not None and len(np.unique(groups)) < folds:
        groups = None
    found = audit(
        jax.random.key(seed), data, epsilon, folds=min(folds, len(rows)), repeats=repeats, groups=groups,
        most=most, progress=progress,
    )  # fmt: skip
    return HeldOut(
        margins=_spread(found.margins, rows, pairs.n_pairs),
        plain_margins=_spread(found.plain_margins, rows, pairs.n_pairs),
        fitted=fitted,
        left_out=_spread(found.left_out, rows, pairs.n_pairs),
        theta=found.theta,
        flips=estimate_flips(found.margins),
        result=found,
    )


def _spread(values, rows, n):
    everywhere = np.zeros(n)
    everywhere[rows] = values
    return everywhere
