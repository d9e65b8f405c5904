"""What to do with each pair: suspicion, whether to keep it, what its label should be, its weight, its margin."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from .issues import Batch, Issue

# Issues that say something about how far a pair is to be trusted, not merely that it teaches nothing.
DOUBTS = ("label", "off_manifold", "both_orders", "near_duplicates")


class Verdicts(NamedTuple):
    """Per pair, what an export adds to a file.

    | field | shape | meaning |
    |---|---|---|
    | `suspicion` | [N] | in [0, 1], 1 less the lowest score of the issues that cast doubt on the pair |
    | `keep` | [N] | whether a cleaned copy has it |
    | `suggested_label` | [N] | "chosen", "rejected" (the label looks flipped), "tie", or "none" for broken features |
    | `weight` | [N] | the file's weight, times a flagged rater's reliability, 0 for pairs that are not kept |
    | `margin` | [N] | −δ: what TRL's and OpenRLHF's reward trainers subtract, 0 but for labels that look flipped |
    """

    suspicion: Float[np.ndarray, " N"]
    keep: Bool[np.ndarray, " N"]
    suggested_label: list[str]
    weight: Float[np.ndarray, " N"]
    margin: Float[np.ndarray, " N"]

    def columns(self) -> dict[str, list]:
        """As columns of a file."""
        return {
            "suspicion": [round(float(v), 6) for v in self.suspicion],
            "keep": [bool(v) for v in self.keep],
            "suggested_label": list(self.suggested_label),
            "weight": [round(float(v), 6) for v in self.weight],
            "margin": [round(float(v), 6) for v in self.margin],
        }


def judge_pairs(batch: Batch, issues: dict[str, Issue]) -> Verdicts:
    """`Verdicts` of a batch and its issues.

    The offset δ = max(0, −m), m the held-out margin, of labels that look flipped: that of R³M's perturbed
    Bradley–Terry model σ(r_c − r_r + δ) at λ = ½ (Bukharin et al. 2024), for those pairs alone.
    """
    pairs, fit = batch.pairs, batch.fit
    keep = ~np.any([issue.dropped for issue in issues.values()], axis=0)
    flipped = issues["label"].flag
    suspicion = 1.0 - issues["label"].score
    for name in DOUBTS:
        if name in issues:
            issue = issues[name]
            suspicion = np.where(issue.flag, np.maximum(suspicion, 1.0 - issue.score), suspicion)
    weight = np.ones(pairs.n_pairs) if pairs.weights is None else pairs.weights
    if "rater" in issues:
        weight = np.where(issues["rater"].flag, weight * issues["rater"].score, weight)
    offset = np.where(flipped, np.maximum(0.0, -fit.margins), 0.0)
    return Verdicts(suspicion, keep, _suggested(issues), weight * keep, 0.0 - offset)


def _suggested(issues: dict[str, Issue]) -> list[str]:
    words = np.where(issues["label"].flag, "rejected", "chosen").astype(object)
    words[issues["off_manifold"].flag] = "none"
    words[issues["identical"].flag | issues["tie"].flag] = "tie"
    return words.tolist()
