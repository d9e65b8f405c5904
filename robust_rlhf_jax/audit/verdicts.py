"""What to do with each pair: suspicion, whether to keep it, what its label should be, its weight, its margin."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from robust_rlhf_jax.io.exports import six_digits

from .compared import same
from .issues import Batch, Issue


class Verdicts(NamedTuple):
    """Per pair, what an export adds to a file.

    | field | shape | meaning |
    |---|---|---|
    | `suspicion` | [N] | in [0, 1], 1 less the lowest score of the issues that cast doubt on the pair |
    | `keep` | [N] | whether a cleaned copy has it |
    | `suggested_label` | [N] | "chosen", "rejected" (the label looks flipped), "tie", or "none" for broken features |
    | `weight` | [N] | the file's weight, times what the rater counts, 0 for pairs that are not kept |
    | `margin` | [N] | −δ: what TRL's and OpenRLHF's reward trainers subtract, 0 but for labels that look flipped |

    **Example:**

    >>> from robust_rlhf_jax import audit, preferences
    >>> pairs = preferences.rail_pairs().take(range(200))
    >>> verdicts = audit.find(pairs, audit.hold_out(pairs, folds=3, repeats=1)).verdicts
    >>> list(verdicts.columns()), bool(verdicts.keep.all()), set(verdicts.suggested_label)
    (['suspicion', 'keep', 'suggested_label', 'weight', 'margin'], True, {'chosen'})
    """

    suspicion: Float[np.ndarray, " N"]
    keep: Bool[np.ndarray, " N"]
    suggested_label: list[str]
    weight: Float[np.ndarray, " N"]
    margin: Float[np.ndarray, " N"]

    def __eq__(self, other: object) -> bool:
        return same(tuple(self), tuple(other)) if isinstance(other, tuple) else NotImplemented

    def __ne__(self, other: object) -> bool:  # a tuple has its own
        return not self == other

    def columns(self) -> dict[str, list]:
        """The verdicts as columns of a file."""
        return {
            "suspicion": [six_digits(v) for v in self.suspicion],
            "keep": [bool(v) for v in self.keep],
            "suggested_label": list(self.suggested_label),
            "weight": [six_digits(v) for v in self.weight],
            "margin": [six_digits(v) for v in self.margin],
        }


def judge_pairs(
    batch: Batch, issues: dict[str, Issue], rater_weights: Float[np.ndarray, " N"] | None = None
) -> Verdicts:
    """`Verdicts` of a batch and its issues, by what each issue says of itself; a later one has the last word on labels.

    **Arguments:** `rater_weights` [N]: what the rater of each pair counts, if more is known of them than the issue is.

    The offset δ = max(0, −m), m the held-out margin, of labels that look flipped: that of R³M's perturbed
    Bradley–Terry model σ(r_c − r_r + δ) at λ = ½ (Bukharin et al. 2024), for those pairs alone.

    **Example:**

    >>> from robust_rlhf_jax import preferences
    >>> from robust_rlhf_jax.audit import Batch, find_issues, hold_out, judge_pairs
    >>> pairs = preferences.rail_pairs().take(range(200))
    >>> batch = Batch(pairs, hold_out(pairs, folds=3, repeats=1))
    >>> judge_pairs(batch, find_issues(batch)).weight[:3].tolist()
    [1.0, 1.0, 1.0]
    """
    kinds, n = list(issues.values()), batch.pairs.n_pairs
    keep = ~np.any([issue.dropped for issue in kinds], axis=0)
    suspicion = np.zeros(n)
    weight = np.ones(n) if batch.pairs.weights is None else batch.pairs.weights
    words, flipped = np.full(n, "chosen", object), np.zeros(n, bool)
    if rater_weights is not None:
        weight = weight * rater_weights
    for issue in kinds:
        if issue.doubts:
            asked = issue.flag | (issue.doubts == "every pair")
            suspicion = np.where(asked, np.maximum(suspicion, 1.0 - issue.score), suspicion)
        if issue.weighs and not (issue.name == "rater" and rater_weights is not None):
            weight = np.where(issue.flag, weight * issue.score, weight)
        if issue.suggests:
            words[issue.flag] = issue.suggests
            flipped |= issue.flag & (issue.suggests == "rejected")
    offset = np.where(flipped, np.maximum(0.0, -batch.held_out.margins), 0.0)
    return Verdicts(suspicion, keep, words.tolist(), weight * keep, 0.0 - offset)
