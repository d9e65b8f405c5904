"""One feature, or the position, that explains the labels as well as everything together."""

import numpy as np
from jaxtyping import Float, Int
from scipy.special import expit

from .base import Batch, Issue, as_chance, counted

ORDER = 60

# Such a share of the pairs follows a shortcut, and the robust fits with all features get this little more right.
FOLLOWED, BETTER = 0.75, 0.02
# Pairs that must differ in the feature, for the share to mean anything.
SHOWN = 0.5


def shortcut(batch: Batch) -> Issue | None:
    """Score: 1 − P(the other features alone would say otherwise) for pairs that follow a shortcut, else 1.

    A shortcut: a feature whose larger (or smaller) value wins in ¾ of the pairs that differ in it, and within 2 % as
    often as the held-out prediction from all features is right; or a side of the file that is chosen as often.
    Flagged: pairs that follow it against the other features. They are not dropped: a habit is no lie.
    """
    pairs, held_out = batch.pairs, batch.held_out
    x = np.asarray(pairs.preferred_differences(), np.float64)
    rows, n = held_out.fitted, pairs.n_pairs
    right = float(np.mean(held_out.margins[rows] > 0)) if rows.any() else 0.0
    name, share, signs, part = _strongest(batch, x, rows)
    found = share >= FOLLOWED and share >= right - BETTER
    rest = held_out.margins - part
    against = rows & (signs > 0) & (rest < 0)
    score = np.where(found & against, expit(rest), 1.0)
    flag = np.zeros(n, bool) | (found & against)
    if found:
        summary = (
            f"{name[0].upper()}{name[1:]} alone explains {share:.0%} of the labels, all features together "
            f"{right:.0%}: a shortcut. " + counted(int(flag.sum()), n, "follow it against all else")
        )
    else:
        summary = (
            f"No shortcut: {name} explains {share:.0%} of the labels, all features together {right:.0%}."
        )

    def explain(row: int) -> str:
        chance = as_chance(float(expit(-rest[row])))
        return f"The label follows {name}; by the other features, the rejected side wins with probability {chance}."

    return Issue("shortcut", np.clip(score, 0.0, 1.0), flag, explain, summary, drop=np.zeros(n, bool))


def _strongest(batch: Batch, x: Float[np.ndarray, "n k"], rows: Int[np.ndarray, " n"]):
    """(name, share of labels that follow it, sign by which each pair does, its part of the margin)."""
    pairs, held_out = batch.pairs, batch.held_out
    wins = x[rows] > 0
    differ = x[rows] != 0
    shown = differ.sum(axis=0)
    larger = np.where(
        shown >= SHOWN * max(rows.sum(), 1), (wins & differ).sum(axis=0) / np.maximum(shown, 1), 0.5
    )
    j = int(np.argmax(np.abs(larger - 0.5)))
    way = 1.0 if larger[j] >= 0.5 else -1.0
    words = "the larger" if way > 0 else "the smaller"
    best = (
        f"{words} {batch.shown_names[j]}",
        float(max(larger[j], 1 - larger[j])),
        way * np.sign(x[:, j]),
        held_out.audit.robust.theta[j] * x[:, j],
    )
    second = float(np.mean(pairs.swapped[rows])) if rows.any() else 0.5
    if 0 < second < 1 and max(second, 1 - second) > best[1]:
        way = 1.0 if second > 0.5 else -1.0
        name = "the second place" if second > 0.5 else "the first place"
        return name, max(second, 1 - second), way * np.where(pairs.swapped, 1.0, -1.0), np.zeros(len(x))
    return best
