"""Everything an audit found about a file: issues, verdicts and summary, from one set of fits."""

import dataclasses
from collections.abc import Iterable

import numpy as np
from jaxtyping import Int

from robust_rlhf_jax.io import Pairs

from .held_out import HeldOut
from .issues import TRUNCATED_AT, Batch, Issue, IssueType, find_issues
from .summary import Summary, summarise
from .verdicts import DOUBTS, Verdicts, judge_pairs


@dataclasses.dataclass(frozen=True)
class Findings:
    """`batch`: pairs and fits; `issues` by name; `verdicts` pair by pair; `summary` of the file."""

    batch: Batch
    issues: dict[str, Issue]
    verdicts: Verdicts
    summary: Summary

    def worst(self) -> Int[np.ndarray, " M"]:
        """Pairs that some issue flags, most suspicious first; those that the rest contradicts most before others."""
        flagged = np.any([issue.flag for issue in self.issues.values()], axis=0)
        order = np.lexsort((self.batch.fit.margins, -self.verdicts.suspicion))
        return order[flagged[order]]

    def reason(self, row: int) -> str:
        """Why a pair is flagged, in one or more sentences; those that cast doubt on it come first."""
        names = sorted(self.issues, key=lambda name: name not in DOUBTS)
        return " ".join(self.issues[name].explain(row) for name in names if self.issues[name].flag[row])


def find(
    pairs: Pairs, fit: HeldOut, *, truncate: int = TRUNCATED_AT, extra: Iterable[IssueType] = ()
) -> Findings:
    """All that can be said about `pairs` from held-out fits (`hold_out`).

    **Arguments:** `truncate`: words that a trainer keeps of prompt and response; `extra`: issue types of one's own.

    **Raises:** ValueError as `find_issues`.
    """
    batch = Batch(pairs, fit, truncate)
    issues = find_issues(batch, extra)
    verdicts = judge_pairs(batch, issues)
    return Findings(batch, issues, verdicts, summarise(batch, issues, verdicts))
