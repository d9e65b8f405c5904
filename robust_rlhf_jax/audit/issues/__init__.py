"""What can be wrong with a pair: one function per issue type, and the registry.

Each `Issue` says itself whether it makes a pair less trustworthy, and what the label should be (`doubts`, `suggests`).
"""

from collections.abc import Iterable

from ._both_orders import both_orders
from ._identical import identical
from ._label import label
from ._near_duplicates import near_duplicates
from ._off_manifold import off_manifold
from ._rater import Rater, measure_raters, rater
from ._shortcut import shortcut
from ._tie import tie
from .base import TRUNCATED_AT, Batch, Issue, IssueType

ISSUES: dict[str, IssueType] = {
    "label": label,
    "off_manifold": off_manifold,
    "identical": identical,
    "both_orders": both_orders,
    "near_duplicates": near_duplicates,
    "shortcut": shortcut,
    "rater": rater,
    "tie": tie,
}


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
    "both_orders",
    "find_issues",
    "identical",
    "label",
    "measure_raters",
    "near_duplicates",
    "off_manifold",
    "rater",
    "shortcut",
    "tie",
]
