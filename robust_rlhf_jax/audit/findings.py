"""Everything an audit found about a file: issues, verdicts and summary, from one set of fits."""

import dataclasses
from collections.abc import Iterable

import numpy as np
from jaxtyping import Int

from robust_rlhf_jax.io import Pairs

from .held_out import HeldOut
from .issues import TRUNCATED_AT, Batch, Issue, IssueType, find_issues
from .summary import Summary, summarise
from .verdicts import Verdicts, judge_pairs


@dataclasses.dataclass(frozen=True)
class Findings:
    """`batch`: pairs, and what fits say that did not see them; `issues` by name; `verdicts` pair by pair; `summary`.

    **Example:**

    >>> from robust_rlhf_jax import audit, preferences
    >>> pairs = preferences.rail_pairs().take(range(200))
    >>> found = audit.find(pairs, audit.hold_out(pairs, folds=3, repeats=1))
    >>> found.worst().tolist(), found.issues["identical"].summary
    ([], '0 of 200 pairs (0.0%) have identical sides.')
    """

    batch: Batch
    issues: dict[str, Issue]
    verdicts: Verdicts
    summary: Summary

    @property
    def pairs(self) -> Pairs:
        return self.batch.pairs

    @property
    def held_out(self) -> HeldOut:
        return self.batch.held_out

    def worst(self) -> Int[np.ndarray, " M"]:
        """Pairs that some issue flags, most suspicious first; those that the rest contradicts most before others."""
        flagged = np.any([issue.flag for issue in self.issues.values()], axis=0)
        order = np.lexsort((self.held_out.margins, -self.verdicts.suspicion))
        return order[flagged[order]]

    def reason(self, row: int) -> str:
        """Why a pair is flagged, in one or more sentences; those that cast doubt on it come first."""
        flagging = [issue for issue in self.issues.values() if issue.flag[row]]
        return " ".join(issue.explain(row) for issue in sorted(flagging, key=lambda issue: not issue.doubts))


def find(
    pairs: Pairs, held_out: HeldOut, *, truncate: int = TRUNCATED_AT, extra: Iterable[IssueType] = ()
) -> Findings:
    """All that can be said about `pairs` from held-out fits (`hold_out`).

    **Arguments:** `truncate`: words that a trainer keeps of prompt and response; `extra`: issue types of one's own.

    **Raises:** ValueError as `find_issues`.

    **Example:**

    >>> from robust_rlhf_jax import preferences
    >>> from robust_rlhf_jax.audit import find, hold_out
    >>> pairs = preferences.rail_pairs().take(range(200))
    >>> list(find(pairs, hold_out(pairs, folds=3, repeats=1)).issues)[:3]
    ['label', 'off_manifold', 'identical']
    """
    batch = Batch(pairs, held_out, truncate)
    issues = find_issues(batch, extra)
    verdicts = judge_pairs(batch, issues)
    return Findings(batch, issues, verdicts, summarise(batch, issues, verdicts))
