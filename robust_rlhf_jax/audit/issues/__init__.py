"""What can be wrong with a pair: one function per issue type, each in a module of its name, which is found by itself.

Each `Issue` says itself whether it makes a pair less trustworthy, and what the label should be (`doubts`, `suggests`).
"""

from collections.abc import Iterable

from robust_rlhf_jax.collected import functions_of

from ._rater import Rater, measure_raters
from .base import TRUNCATED_AT, Batch, Issue, IssueType

# The function `name` of each module `_name`, in the order of their `ORDER`, which is that of every report.
ISSUES: dict[str, IssueType] = functions_of(__name__)


def find_issues(batch: Batch, extra: Iterable[IssueType] = ()) -> dict[str, Issue]:
    """All issue types of `ISSUES` that the file can have, and those of `extra`, by name.

    **Raises:** ValueError for a type that breaks the contract of `Issue`, or whose name is taken.

    **Example:** an issue type of one's own is one function.

    >>> import numpy as np
    >>> from robust_rlhf_jax.audit.issues import Batch, Issue
    >>> def short(batch: Batch) -> Issue:
    ...     words = np.array([len(text.split()) for text in batch.pairs.texts.chosen])
    ...     score = np.clip(words / 5, 0, 1)
    ...     return Issue("short", score, words < 5, lambda row: "It has few words.", "Some answers are short.")
    """
    found: dict[str, Issue] = {}
    for kind in (*ISSUES.values(), *extra):
        issue = kind(batch)
        if issue is None:
            continue
        if issue.name in found:
            raise ValueError(f"issue {issue.name!r} is there twice: give yours another name.")
        found[issue.name] = issue.checked(batch.pairs.n_pairs)
    return found


__all__ = [
    "ISSUES",
    "TRUNCATED_AT",
    "Batch",
    "Issue",
    "IssueType",
    "Rater",
    "find_issues",
    "measure_raters",
]
