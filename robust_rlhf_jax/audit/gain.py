"""What leaving the flagged pairs out gains, cross-fitted: pairs are flagged and fits made without those that score."""

import dataclasses
from collections.abc import Callable
from itertools import combinations
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import stdtrit

from robust_rlhf_jax.preferences import as_labelled
from robust_rlhf_jax.rewards import CEILING, plain_fit
from robust_rlhf_jax.rewards.registry import named

from ._clustered_mean import clustered_mean
from .config import FEWEST_FOLDS, GAIN_CONFIDENCE, AuditConfig
from .cross_fit import RADIUS, whiten
from .findings import Findings
from .fits import fit_robust, numbers_at
from .folds import group_folds
from .held_out import MOST_ROWS, held_out_pairs
from .issues import Batch, find_issues
from .kept_together import kept_together
from .verdicts import judge_pairs


class Interval(NamedTuple):
    """A mean and its confidence interval (`GAIN_CONFIDENCE`)."""

    value: float
    low: float
    high: float

    @property
    def percent_points(self) -> str:
        """The interval in words, such as "+0.8 points (95 % interval −0.1 to +1.7)"."""
        value, low, high = (f"{100 * v:+.1f}".replace("-", "−").replace("−0.0", "+0.0") for v in self)
        return f"{value} points ({GAIN_CONFIDENCE:.0%} interval {low} to {high})".replace("%", " %")


class Gain(NamedTuple):
    """The gain of held-out agreement by leaving out, before a plain fit, what the training folds flag.

    | field | meaning |
    |---|---|
    | `all_pairs` | `Interval` of the gain on all held-out pairs but those of broken features, in shares; it decides |
    | `unflagged` | the same on held-out pairs that no issue drops: the flags favour it, so it decides nothing |
    | `before`, `after` | held-out agreement of the fits to all pairs and to those that are left |
    | `folds`, `groups` | folds; groups of dependent pairs, such as people, none of them in two folds |
    | `dropped` | pairs that were left out of a training fold, mean over folds |

    **Example:**

    >>> from robust_rlhf_jax.audit import Gain
    >>> from robust_rlhf_jax.audit.gain import Interval
    >>> gain = Gain(Interval(0.021, 0.004, 0.038), Interval(0.03, 0.01, 0.05), 0.71, 0.731, 5, 235, 190.0)
    >>> gain.all_pairs.percent_points
    '+2.1 points (95 % interval +0.4 to +3.8)'
    """

    all_pairs: Interval
    unflagged: Interval
    before: float
    after: float
    folds: int
    groups: int
    dropped: float


class _Work(NamedTuple):
    """Differences z without units [N, k], chosen − rejected, the group of each pair [N], which two options it compares,
    and its fold [N].
    """

    z: Float[np.ndarray, "N k"]
    groups: Int[np.ndarray, " N"]
    together: np.ndarray | None
    comparisons: np.ndarray | None
    fold_of: Int[np.ndarray, " N"]
    to_x: Float[np.ndarray, "k r"]


class _Margins(NamedTuple):
    """Margins of the training pairs under fits without them and without the held-out fold, those fits' evidence, θ."""

    margins: Float[np.ndarray, " N"]
    evidence: float
    theta: Float[np.ndarray, " k"]


def cross_fitted_gain(
    findings: Findings,
    config: AuditConfig | None = None,
    *,
    most: int = MOST_ROWS,
    progress: Callable[[int, int], None] | None = None,
) -> Gain | None:
    """What a plain fit gains by leaving out the pairs that are flagged; None where nothing would be left out.

    For each fold a the other folds are audited alone: a pair in fold b gets its margin from the robust fit without a
    and b, the issues are found anew, and what they drop is left out. The plain fits to the other folds with and
    without those pairs are scored on fold a. Folds split no group (person). The estimand is

    E[1{θ₋ᵀx > 0} − 1{θᵀx > 0}],  x = φ(chosen) − φ(rejected),

    over labels *as the file has them*: held-out labels may be corrupt themselves, and corrupted ones that follow the
    corruption speak for the fit that follows it. Pairs whose features look broken (`off_manifold`) say nothing here:
    planted ones would speak for the fit that follows them, and as that issue looks at no label, leaving its pairs out
    favours neither fit. Ties of a fit count ½. The interval is Student's over groups
    (`clustered_mean`), for these fits: how other training pairs would change them is not in it.

    **Arguments:** `config`: estimator, ε, folds (three at least) and seed, as the audit had them; `most`: rows that a
    robust fit sees at most; `progress(done, total)`: called after each fit. Issue types of one's own take no part.

    **Raises:** FitOverflow as `audit`.

    **Source:** fits without two folds as in the jackknife of pairs; errors by group as Liang & Zeger (1986).

    **Example:**

    >>> from robust_rlhf_jax.audit import cross_fitted_gain, find, hold_out
    >>> from robust_rlhf_jax.audit.source import read_source
    >>> pairs = read_source("rail").take(range(200))
    >>> print(cross_fitted_gain(find(pairs, hold_out(pairs, folds=3, repeats=1))))  # nothing is flagged
    None
    """
    config = config or AuditConfig()
    decided = findings.pairs.fitted
    folds = max(config.folds, FEWEST_FOLDS)
    if findings.verdicts.keep[decided].all():
        return None
    rng = np.random.default_rng([config.seed, 1])
    work = _work(rng, findings, folds)
    if work is None:
        return None
    total, done = folds * (folds - 1) // 2 + folds, 0
    tell = progress or (lambda done, total: None)
    without: dict[tuple[int, int], tuple] = {}
    for done, pair in enumerate(combinations(range(folds), 2), 1):
        without[pair] = _robust(rng, work, pair, config, most)
        tell(done, total)
    right = np.zeros((2, len(work.z)))
    dropped = 0
    for fold in range(folds):
        keep = _kept_in_training(findings, work, fold, _margins(work, without, fold, folds))
        dropped += int(np.sum(~keep & (work.fold_of != fold)))
        right[:, work.fold_of == fold] = _agreement(work, fold, keep)
        tell(done + fold + 1, total)
    kept, whole = findings.verdicts.keep[decided], ~broken_features(findings)[decided]
    return _gain(right, work.groups, kept, whole, folds, dropped / folds)


def broken_features(findings: Findings) -> Bool[np.ndarray, " N"]:
    """Pairs that an issue drops for their features, whatever their labels."""
    found = [issue.dropped for issue in findings.issues.values() if issue.suggests == "none"]
    return np.any([np.zeros(findings.pairs.n_pairs, bool), *found], axis=0)


def _work(rng: np.random.Generator, findings: Findings, folds: int) -> _Work | None:
    """The pairs in folds; None if there are fewer groups than folds."""
    pairs = findings.pairs.decided()
    seen = as_labelled(pairs, None, ask_table=False)
    together = None if seen.groups is None else np.asarray(seen.groups)
    groups = kept_together(pairs, together, folds)
    if len(np.unique(groups)) < folds:
        return None
    z, to_x, _ = whiten(seen.x)
    same = None if seen.comparisons is None else np.asarray(seen.comparisons)
    return _Work(z, groups, together, same, group_folds(rng, groups, folds), to_x)


def _robust(
    rng: np.random.Generator, work: _Work, without: tuple[int, int], config: AuditConfig, most: int
) -> tuple[np.ndarray, float]:
    """θ, in units of z, and the share of contradicted pairs, of the robust fit without two folds.

    Every fit has the length of the shortest, so that all share one compilation.
    """
    sizes = np.bincount(work.fold_of)
    length = min(len(work.z) - np.sort(sizes)[-2:].sum(), most)
    rows = rng.permutation(np.flatnonzero(~np.isin(work.fold_of, without)))[:length]
    turn = rng.choice([-1.0, 1.0], len(rows)).astype(work.z.dtype)
    entry = named(config.estimator, config.epsilon)
    level = jnp.asarray(CEILING if config.epsilon is None else config.epsilon, work.z.dtype)
    of, same = numbers_at(work.together, rows), numbers_at(work.comparisons, rows)
    x, radius = jnp.asarray(work.z[rows] * turn[:, None]), jnp.asarray(RADIUS, work.z.dtype)
    found = fit_robust(entry, x, jnp.asarray(turn), level, radius, of, same)
    return np.asarray(found.theta), float(found.share) if entry.evidence is not None else 0.0


def _margins(work: _Work, without: dict[tuple[int, int], tuple], fold: int, folds: int) -> _Margins:
    margins, shares, thetas = np.zeros(len(work.z)), [], []
    for other in range(folds):
        if other != fold:
            theta, share = without[min(fold, other), max(fold, other)]
            mine = work.fold_of == other
            margins[mine] = work.z[mine] @ theta
            shares.append(share)
            thetas.append(theta)
    return _Margins(margins, float(np.mean(shares)), np.mean(thetas, axis=0))


def _kept_in_training(findings: Findings, work: _Work, fold: int, found: _Margins) -> Bool[np.ndarray, " N"]:
    """The pairs outside `fold` that an audit of them alone keeps."""
    rows = np.flatnonzero(work.fold_of != fold)
    result, margins = findings.held_out.audit, found.margins[rows]
    robust = dataclasses.replace(result.robust, theta=found.theta @ work.to_x.T, margins=margins)
    alone = dataclasses.replace(
        result, robust=robust, evidence=found.evidence, suspicion=np.logaddexp(0.0, -margins),
        differences=result.differences[rows], labels=result.labels[rows], lengths=result.lengths[rows],
        left_out=np.zeros(len(rows)), contention=None,
    )  # fmt: skip
    # The featuriser is left out: its words for topics are not needed here.
    pairs = dataclasses.replace(findings.pairs.decided().take(rows), featuriser=None)
    said = findings.batch.wordings
    said = None if said is None else said.take(np.flatnonzero(findings.pairs.fitted)[rows])
    batch = Batch(pairs, held_out_pairs(pairs, alone, upper=False), findings.batch.truncate, said)
    keep = np.zeros(len(work.z), bool)
    keep[rows] = judge_pairs(batch, find_issues(batch)).keep
    return keep


def _agreement(work: _Work, fold: int, keep: Bool[np.ndarray, " N"]) -> Float[np.ndarray, "2 n"]:
    """Whether the plain fits to all training pairs, and to those that are kept, agree with each held-out label."""
    training, labels = work.fold_of != fold, jnp.ones(len(work.z), work.z.dtype)
    right = []
    for rows in (training, keep if keep.any() else training):
        theta, _ = plain_fit(jnp.asarray(work.z), labels, jnp.asarray(rows, work.z.dtype))
        right.append(0.5 * (1.0 + np.sign(work.z[~training] @ np.asarray(theta))))
    return np.stack(right)


def _gain(
    right: Float[np.ndarray, "2 N"],
    groups: np.ndarray,
    kept: Bool[np.ndarray, " N"],
    whole: Bool[np.ndarray, " N"],
    folds: int,
    dropped: float,
) -> Gain:
    gained = right[1] - right[0]
    whole, kept = (some if some.any() else np.ones_like(some) for some in (whole, kept))
    before, after = (float(row[whole].mean()) for row in right)
    intervals = [interval_of(gained[some], groups[some]) for some in (whole, kept)]
    return Gain(intervals[0], intervals[1], before, after, folds, len(np.unique(groups[whole])), dropped)


def interval_of(values: Float[np.ndarray, " N"], groups: np.ndarray) -> Interval:
    """Mean of `values` with Student's interval over groups; [−1, 1] where one group alone tells."""
    mean, error = (float(v) for v in clustered_mean(values, groups))
    count = len(np.unique(groups))
    if count < 2:
        return Interval(mean, -1.0, 1.0)
    half = float(stdtrit(count - 1, 0.5 + GAIN_CONFIDENCE / 2)) * error
    return Interval(mean, mean - half, mean + half)
