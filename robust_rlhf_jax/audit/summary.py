"""What a whole file is like: what is certain, what is likely, what cannot be known."""

from typing import NamedTuple

import numpy as np

from .held_out import HeldOut
from .issues import Batch, Issue
from .result import AuditResult
from .verdicts import Verdicts

# The share of flips at which labels are tosses of a coin: an interval that reaches it excludes nothing.
FLIPS_OF_COINS = 0.499


class Summary(NamedTuple):
    """`epsilon`, `interval`: the share of corrupt pairs; `certain`, `likely`, `unknown`: sentences; `shares`: of pairs
    that each issue flags, "dropped" and "corrupt" among them, by which thresholds go.
    """

    epsilon: float
    interval: tuple[float, float]
    certain: list[str]
    likely: list[str]
    unknown: list[str]
    shares: dict[str, float]


def summarise(batch: Batch, issues: dict[str, Issue], verdicts: Verdicts) -> Summary:
    """Sentences and shares of a batch."""
    held_out = batch.held_out
    shares = {name: float(issue.flag.mean()) for name, issue in issues.items()}
    low, high = held_out.interval
    shares |= {"corrupt": held_out.epsilon, "corrupt_lower": low, "corrupt_upper": high}
    shares["dropped"] = float(1 - verdicts.keep.mean())
    certain = [issue.summary for issue in issues.values() if issue.certain and issue.flag.any()]
    certain += _skipped(batch)
    likely = [issue.summary for issue in issues.values() if not issue.certain and issue.flag.any()]
    likely += [] if held_out.audit.contention is None else [held_out.audit.contention.sentence]
    likely += [_corruption(held_out)]
    return Summary(held_out.epsilon, held_out.interval, certain, likely, _unknown(held_out), shares)


def _skipped(batch: Batch) -> list[str]:
    skipped = batch.pairs.n_skipped
    if not skipped:
        return []
    first = batch.pairs.bad[0]
    return [f"{skipped:,} of {batch.pairs.n_rows:,} rows cannot be used; the first: {first.sentence}."]


def evidence(result: AuditResult, flagged: bool = False) -> str:
    """What the robust fits found, in one sentence; `flagged`: whether pairs are flagged for another reason."""
    if not result.epsilon > 0:
        rest = "the other pairs contradict no pair" if flagged else "no pair is flagged"
        return f"No evidence of corruption: {rest}."
    return f"The other pairs contradict {result.epsilon:.1%} of the pairs; as many are flagged."


def _corruption(held_out: HeldOut) -> str:
    low, high = held_out.interval
    if not held_out.epsilon and high >= FLIPS_OF_COINS:
        return "No evidence of corrupt labels, but too few certain predictions to exclude any share of random flips."
    if not held_out.epsilon:
        return (
            f"No evidence of corrupt labels; up to {high:.1%} of the pairs could be corrupt without a trace."
        )
    return f"About {held_out.epsilon:.1%} of the pairs are corrupt; between {low:.1%} and {high:.1%} may be."


def _unknown(held_out: HeldOut) -> list[str]:
    """What these features and labels cannot tell."""
    rank, p = held_out.audit.rank, len(held_out.audit.robust.theta)
    undecided = (
        float(np.mean(np.abs(held_out.margins[held_out.fitted]) < 0.2)) if held_out.fitted.any() else 1.0
    )
    found = [
        f"For {undecided:.0%} of the pairs the fits cannot say which side is better: a flipped label leaves no trace."
    ]
    if rank < p:
        found.append(f"Along {p - rank} of {p} dimensions no pair differs, and the reward is unknown.")
    found.append(
        "Corrupt pairs that all follow one other reward, or are more than a fifth, look like honest preferences."
    )
    return found
