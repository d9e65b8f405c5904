"""`audit_source`: what passes over a source of any size say of its pairs."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from robust_rlhf_jax.kernels.ranking import highest_first
from robust_rlhf_jax.raters.kinds import NOISY
from robust_rlhf_jax.rewards import RewardModel, Streaming, fit_reward
from robust_rlhf_jax.rewards.model import kept
from robust_rlhf_jax.rewards.streamed.config import Tell
from robust_rlhf_jax.sources import PairSource

from .look import Look, blocks_of, look
from .source_raters import SourceRater, source_raters

# Raters that a sentence names.
SHOWN = 5
# A rater of whose pairs a larger share is left out is named.
MOST_LEFT_OUT = 0.5
OF_TEXTS = (
    "Issues of texts, such as length, near-duplicates and refusals: the source holds features alone, and robust-rlhf "
    "audit finds them in the file of texts."
)


class SourceAudit(NamedTuple):
    """What passes say of the pairs of a source.

    `model`: the fit to all pairs; `margins` and `plain_margins` [N]: of each label under it, and under maximum
    likelihood on all pairs; `look`: pairs that are empty, repeated or contradicted; `raters`: where the source names
    them; `pairs_per_feature`.

    **Example:**

    >>> from robust_rlhf_jax import audit, preferences
    >>> from robust_rlhf_jax.sources import ArraySource
    >>> found = audit.audit_source(ArraySource.of_pairs(preferences.rail_pairs()))
    >>> int(found.keep.sum()), len(found.raters), found.not_done()[0][:42]
    (2929, 235, 'Accuracy and log-loss on held-out pairs: e')
    """

    model: RewardModel
    margins: Float[np.ndarray, " N"]
    plain_margins: Float[np.ndarray, " N"]
    look: Look
    raters: tuple[SourceRater, ...]
    pairs_per_feature: float

    @property
    def keep(self) -> Bool[np.ndarray, " N"]:
        """The pairs that the fit did not leave out."""
        return kept(self.model)

    def worst(self) -> Int[np.ndarray, " N"]:
        """All pairs, the most suspicious first; ties in their order."""
        return highest_first(np.asarray(self.model.suspicion))

    def sentences(self) -> list[str]:
        """What was found."""
        n, counts = len(self.margins), {name: int(mask.sum()) for name, mask in self.look._asdict().items()}
        found = [self.model.message]
        if counts["empty"]:
            found.append(
                f"{counts['empty']:,} of {n:,} pairs have two options of the same features, and say nothing."
            )
        if counts["repeats"]:
            found.append(
                f"{counts['repeats']:,} of {n:,} pairs repeat the difference of an earlier one: one judgement may be "
                "there twice."
            )
        if counts["opposite"]:
            found.append(
                f"{counts['opposite']:,} of {n:,} pairs have their opposite in the source, too: the same options, the "
                "other one preferred."
            )
        doubtful = [rater for rater in self.raters if rater.high < NOISY or rater.left_out > MOST_LEFT_OUT]
        if doubtful:
            some = ", ".join(rater.name for rater in doubtful[:SHOWN]) + (
                ", …" if len(doubtful) > SHOWN else ""
            )
            found.append(
                f"{len(doubtful):,} of {len(self.raters):,} raters {'is' if len(doubtful) == 1 else 'are'} surely less "
                f"than {NOISY} times as reliable as the others, or gave more pairs that are left out than not: {some}."
            )
        return found

    def not_done(self) -> list[str]:
        """What an audit in memory says in addition, and why passes do not say it."""
        found = [
            "Accuracy and log-loss on held-out pairs: each fold would be fitted anew to all other pairs, by as many "
            "passes. What is said of probabilities is of the fit to the same pairs, "
            f"{self.pairs_per_feature:,.0f} for each feature: of few it is too good.",
            "What leaving pairs out is expected to gain, for the same reason.",
            OF_TEXTS,
        ]
        if self.raters:
            found.append(
                "Kinds and tastes of raters: the mixture takes hundreds of rounds over all pairs. Agreement and "
                "reliability are of margins under the fit to all pairs, the rater's own among them."
            )
        return found


def audit_source(
    source: PairSource, epsilon: float | None = None, *, streaming: Streaming | None = None
) -> SourceAudit:
    """Fit a reward to a source of any size, and say what its pairs look like.

    A pass looks for features that are not finite, and for pairs that are repeated or contradicted; `fit_reward` reads
    the source as `streaming` allows; a last pass measures the margins of all labels. `audit.audit`, which scores every
    pair by fits that did not see it, needs all pairs in memory (`SourceAudit.not_done`).

    **Raises:** ValueError as `fit_reward`, and for features that are not finite, with the first pair that has one.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax.audit import audit_source
    >>> from robust_rlhf_jax.sources import ArraySource
    >>> x = np.random.default_rng(0).normal(size=(400, 2)).astype(np.float32)
    >>> x = np.where(x[:, :1] > 0, x, -x)  # the first feature decides
    >>> x[1] = -x[0]
    >>> found = audit_source(ArraySource(x))
    >>> np.flatnonzero(found.look.opposite).tolist(), int(found.worst()[0])
    ([0, 1], 1)
    """
    tell = None if streaming is None else streaming.tell
    seen = look(source, tell)
    model = fit_reward(source, epsilon, streaming=streaming or Streaming())
    thetas = np.stack([np.asarray(model.theta), np.asarray(model.explanations.theta[0])])
    margins, plain = _margins(source, thetas, tell)
    who = getattr(source, "raters", None)
    raters = () if who is None else source_raters(who, margins, kept(model))
    return SourceAudit(model, margins, plain, seen, raters, source.n_pairs / source.n_features)


def _margins(
    source: PairSource, thetas: Float[np.ndarray, "E k"], tell: Tell | None
) -> Float[np.ndarray, "E N"]:
    """One pass: θᵀx of every difference."""
    found, done = np.empty((len(thetas), source.n_pairs), np.float32), 0
    for block in blocks_of(source):
        found[:, done : done + len(block)] = thetas @ block.T
        done += len(block)
        if tell is not None:
            tell("margins", done, source.n_pairs)
    return found
