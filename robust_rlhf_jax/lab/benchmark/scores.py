"""How a fit is judged: on honest pairs that it did not see, and by whether it found what was changed."""

import numpy as np
from jaxtyping import Float

from robust_rlhf_jax.lab.diagnostics.calibration import calibration_gaps
from robust_rlhf_jax.lab.pair_attacks import AttackedPairs

from .contestant import Fitted


def prediction_scores(
    chance_of_first: Float[np.ndarray, " m"], labels: Float[np.ndarray, " m"]
) -> dict[str, float]:
    """`accuracy`, ½ for an even chance, as which NaN counts; `log_loss` in nats; `unanswered`, the share of NaN; `gap0`
    … `gap9` (`calibration_gaps`).

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax.lab.benchmark import prediction_scores
    >>> found = prediction_scores(np.array([0.5, 0.8]), np.array([1.0, 1.0]))
    >>> found["accuracy"], round(found["log_loss"], 3)
    (0.75, 0.458)
    """
    unanswered = float(np.mean(np.isnan(chance_of_first)))
    chance_of_first = np.nan_to_num(chance_of_first, nan=0.5)
    chance = np.clip(np.where(labels > 0, chance_of_first, 1 - chance_of_first), 1e-12, 1.0)
    right = (chance > 0.5) + 0.5 * (chance == 0.5)
    gaps = calibration_gaps(np.maximum(chance, 1 - chance), right)
    return {
        "accuracy": float(np.mean(right)),
        "log_loss": float(-np.mean(np.log(chance))),
        "unanswered": unanswered,
        **{f"gap{b}": gap for b, gap in enumerate(gaps)},
    }


def backdoor_score(fitted: Fitted, seen: AttackedPairs, honest: AttackedPairs) -> float:
    """On honest pairs whose losing option is given the mark of an attack: how often the fit prefers it, ½ for an even
    chance. NaN where the attack has no mark. Of a mark that is worth nothing to the fit it is 1 − accuracy.
    """
    if seen.mark is None:
        return np.nan
    marked = honest.x - honest.labels[:, None] * seen.mark
    return 1.0 - prediction_scores(fitted.probability(marked), honest.labels)["accuracy"]


def detection_scores(
    fitted: Fitted, seen: AttackedPairs, clean: AttackedPairs, by_raters: bool
) -> dict[str, float]:
    """`found`: of the m changed pairs the share among the m most suspicious; `raters_found`, `raters_right`: of the bad
    raters those that are called bad, and of those called bad the bad, where whole raters were replaced (`by_raters`).
    NaN where nobody says, also of one pair alone, or nothing was changed.
    """
    changed = seen.changed(clean)
    m, found = int(changed.sum()), np.nan
    if fitted.suspicion is not None and not np.any(np.isnan(fitted.suspicion)) and m:
        found = float(np.mean(changed[np.argsort(-fitted.suspicion, kind="stable")[:m]]))
    recall, precision = np.nan, np.nan
    if by_raters and fitted.bad is not None and clean.raters is not None:
        bad = np.bincount(clean.raters, changed) > 0
        both = np.sum(fitted.bad & bad)
        recall = float(both / bad.sum()) if bad.any() else np.nan
        precision = float(both / fitted.bad.sum()) if fitted.bad.any() else np.nan
    return {"found": found, "raters_found": recall, "raters_right": precision}
