"""Raters whose labels are at odds with the rest of the file."""

from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from robust_rlhf_jax.io.unnamed_raters import has_name
from robust_rlhf_jax.terminal import counted

from .base import Batch, Issue

ORDER = 70

# Labels that a rater needs before anything is said, and the reliability below which it is, by so many deviations.
FEWEST, UNRELIABLE, DEVIATIONS = 10, 0.5, 3.0
# The chance that a file flags any rater whose reliability is just that, however many raters it has.
FALSE_ALARM = 0.01


class Rater(NamedTuple):
    """`reliability`: 1 honest, 0 random, −1 reversed, with its standard `error`; `agreement`: share of labels that
    held-out fits predict, `expected`: share that they would of an honest rater; `deviations`: standard errors, those of
    a rater whose reliability is ½, by which it is below ½; `flagged`: whether that is too many.
    """

    name: str
    pairs: int
    agreement: float
    expected: float
    reliability: float
    error: float
    deviations: float
    flagged: bool = False


# The score of pairs that name no rater.
UNNAMED = Rater("", 0, 0.5, 0.5, 1.0, np.inf, 0.0)


def rater(batch: Batch) -> Issue | None:
    """Score: a rater's reliability ρ, clipped to [0, 1]; flagged where ρ is below ½ by three standard errors.

    In a file of n > 7 raters by Φ⁻¹(1 − .01/n): of a hundred such files, chance alone flags a rater in one.
    P(label) = ½ + ρ(P − ½) with P under the held-out robust fits: ρ by least squares over the rater's pairs. Nobody is
    dropped: where people disagree in good faith, leaving raters out does harm; exported weights carry what the table of
    raters says, or ρ where there is none.
    """
    if batch.pairs.raters is None:
        return None
    raters = measure_raters(batch)
    by_name = {found.name: found for found in raters}
    mine = [by_name.get(str(name), UNNAMED) for name in batch.pairs.raters]
    flag = np.array([found.flagged for found in mine])
    score = np.array(
        [float(np.clip(found.reliability, 0.0, 1.0)) if found.pairs >= FEWEST else 1.0 for found in mine]
    )
    bad = [found for found in raters if found.flagged]

    def explain(row: int) -> str:
        found = mine[row]
        return (
            f"The rater agrees with the rest in {found.agreement:.0%} of {found.pairs} pairs, "
            f"where an honest one would in {found.expected:.0%}."
        )

    are = "is" if len(bad) == 1 else "are"
    pairs = counted(int(flag.sum()), "pair")
    summary = f"{len(bad):,} of {counted(len(raters), 'rater')} {are} at odds with the rest, on {pairs}."
    return Issue("rater", score, flag, explain, summary, drop=np.zeros(len(mine), bool), weighs=True)


def measure_raters(batch: Batch) -> list[Rater]:
    """All raters of the file, least reliable first; pairs without a margin do not count."""
    pairs, held_out = batch.pairs, batch.held_out
    assert pairs.raters is not None
    there = has_name(pairs.raters)
    names = np.unique(pairs.raters[there])
    of = np.where(there, np.searchsorted(names, pairs.raters), len(names))
    strength = 2.0 * held_out.agreement() - 1.0
    found = [_measure(str(name), strength[(of == i) & held_out.fitted]) for i, name in enumerate(names)]
    judged = max(sum(r.pairs >= FEWEST for r in found), 1)
    most = max(DEVIATIONS, NormalDist().inv_cdf(1.0 - FALSE_ALARM / judged))
    found = [r._replace(flagged=r.pairs >= FEWEST and r.deviations > most) for r in found]
    return sorted(found, key=lambda r: r.reliability)


def _measure(name: str, strength: np.ndarray) -> Rater:
    """`strength` 2P(label) − 1: positive where the rest agrees with the label."""
    sure = np.abs(strength)
    known = float(np.sum(sure**2))
    if known == 0:
        return Rater(name, len(strength), 0.5, 0.5, 1.0, np.inf, 0.0)
    signs = np.sign(strength)
    reliability = float(np.sum(sure * signs) / known)

    def error(of: float) -> float:
        return float(np.sqrt(np.sum(sure**2 * np.maximum(1.0 - (of * sure) ** 2, 0.0))) / known)

    agreement, expected = float(np.mean(0.5 + 0.5 * signs)), float(np.mean(0.5 + 0.5 * sure))
    below = (UNRELIABLE - reliability) / error(UNRELIABLE)
    return Rater(name, len(strength), agreement, expected, reliability, error(reliability), below)
