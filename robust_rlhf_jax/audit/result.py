"""What an audit found: accuracy, log-loss and suspicion from fits that did not see the pairs that they score."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.corruption_budget import corruption_count
from robust_rlhf_jax.kernels.ranking import largest_to_rounding

from ._clustered_mean import clustered_mean
from .contention import Contention
from .cross_validation import CrossValidation, FoldFits
from .detection import average_precision, precision, recall


class FitOverflow(ValueError):
    """A held-out margin is no number."""


class FitScores(eqx.Module):
    """How well a reward predicts pairs that it did not see.

    | field | shape | meaning |
    |---|---|---|
    | `accuracy`, `accuracy_error` | | held-out accuracy on the labels before `inject` (ties ½), and its error |
    | `log_loss`, `log_loss_error` | | held-out −log P of the same labels, in nats |
    | `fold_accuracy` | [R, F] | per repeat and fold |
    | `theta` | [k] | mean over the R·F fits, per unit of x |
    | `margins` | [N] | o_nθᵀx_n under the fits that did not see the pair's group, mean over repeats |
    | `status` | [R, F] | `Status` codes of the fits |
    | `at_radius` | [R, F] | whether ‖θ‖ reached the bound: the labels are (nearly) separable |

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import audit, preferences
    >>> rail = preferences.rail_pairs().take(range(200))
    >>> plain = audit.audit(jax.random.key(0), rail, folds=3, repeats=1).plain
    >>> plain.fold_accuracy.shape, plain.theta.shape, plain.accuracy > 0.6, plain.log_loss < 0.69
    ((1, 3), (4,), True, True)
    """

    accuracy: float
    accuracy_error: float
    log_loss: float
    log_loss_error: float
    fold_accuracy: Float[np.ndarray, "R F"]
    theta: Float[np.ndarray, " k"]
    margins: Float[np.ndarray, " N"]
    status: Int[np.ndarray, "R F"]
    at_radius: Bool[np.ndarray, "R F"]


class AuditResult(eqx.Module):
    """What an audit found.

    | field | shape | meaning |
    |---|---|---|
    | `plain`, `robust` | | `FitScores` of the two rewards |
    | `gain`, `gain_error` | | robust − plain accuracy, standard error of the paired difference |
    | `differences`, `labels` | [N, k], [N] | x and the labels audited (corrupted where `injected`) |
    | `lengths` | [N] | ‖z_n‖, the length of x_n in coordinates without units |
    | `left_out` | [N] | share of the robust fits that saw the pair and left it out, 0 where none saw it |
    | `suspicion` | [N] | −log P of the audited label under the robust fits that did not see it, mean over repeats |
    | `epsilon` | | ε as given, or the mean share of the pairs that the robust fits find evidence against |
    | `evidence` | | mean share of the pairs that "fit_reward" finds evidence against, whatever ε; 0 of other fits |
    | `interval` | [2] | shares that are certain to be corrupt, and that could be, means over the robust fits |
    | `flagged` | [N] | the ⌊εN⌋ pairs of highest suspicion |
    | `injected` | [N] | labels that this audit flipped |
    | `precision`, `recall`, `average_precision` | | of `flagged` and of `suspicion`; NaN without injection |
    | `rank` | | dimension of the span of x: directions of θ that the data speak about |
    | `contention` | | two rewards that both explain the pairs (`Contention`), or None |

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import audit, preferences
    >>> rail = preferences.rail_pairs().take(range(200))
    >>> found = audit.audit(jax.random.key(0), rail, folds=3, repeats=1)
    >>> found.rank, found.epsilon, found.suspicion.shape, found.contention
    (4, 0.0, (200,), None)
    """

    plain: FitScores
    robust: FitScores
    gain: float
    gain_error: float
    differences: Float[np.ndarray, "N k"]
    labels: Float[np.ndarray, " N"]
    lengths: Float[np.ndarray, " N"]
    left_out: Float[np.ndarray, " N"]
    suspicion: Float[np.ndarray, " N"]
    epsilon: float
    evidence: float
    interval: Float[np.ndarray, " 2"]
    flagged: Bool[np.ndarray, " N"]
    injected: Bool[np.ndarray, " N"]
    precision: float
    recall: float
    average_precision: float
    rank: int
    contention: Contention | None


def score_fits(
    fits: FoldFits,
    clean: Float[np.ndarray, " N"],
    audited: Float[np.ndarray, " N"],
    groups: np.ndarray,
    fold_of: Int[np.ndarray, "R N"],
    to_x: Float[np.ndarray, "k r"],
    radius: float,
) -> FitScores:
    """How well the fits of all folds predict the labels, as given, of pairs that they did not see.

    **Raises:** FitOverflow.
    """
    _check_scores(fits.scores)
    right = _right(fits, clean)
    accuracy, accuracy_error = clustered_mean(right.mean(axis=0), groups)
    log_loss, log_loss_error = clustered_mean(np.logaddexp(0.0, -fits.scores * clean).mean(axis=0), groups)
    folds = range(fold_of.max() + 1)
    at_radius = (np.linalg.norm(fits.theta, axis=-1) >= 0.999 * radius) | (fits.status == Status.SEPARABLE)
    return FitScores(
        float(accuracy), float(accuracy_error), float(log_loss), float(log_loss_error),
        np.array([[r[of == f].mean() for f in folds] for r, of in zip(right, fold_of, strict=True)]),
        fits.theta.mean(axis=(0, 1)) @ to_x.T, (fits.scores * audited).mean(axis=0), fits.status, at_radius,
    )  # fmt: skip


def summarise(
    run: CrossValidation,
    plain: FitScores,
    robust: FitScores,
    clean: Float[np.ndarray, " N"],
    injected: Bool[np.ndarray, " N"],
    groups: np.ndarray,
    epsilon: float,
    **rest: Any,
) -> AuditResult:
    """The `AuditResult` of a cross-validation; `rest` holds the fields that it does not tell."""
    audited = np.where(injected, -clean, clean)
    gain, gain_error = clustered_mean(
        (_right(run.robust, clean) - _right(run.plain, clean)).mean(axis=0), groups
    )
    suspicion = np.logaddexp(0.0, -run.robust.scores * audited).mean(axis=0)
    flagged = most_suspicious(suspicion, epsilon)
    found = bool(injected.any())
    return AuditResult(
        plain=plain, robust=robust, gain=float(gain), gain_error=float(gain_error), labels=audited,
        left_out=run.left / np.maximum(run.saw, 1), suspicion=suspicion, epsilon=epsilon,
        interval=run.interval.mean(axis=(0, 1)), flagged=flagged, injected=injected,
        precision=float(precision(flagged, injected)) if found else np.nan,
        recall=float(recall(flagged, injected)) if found else np.nan,
        average_precision=float(average_precision(suspicion, injected)) if found else np.nan,
        **rest,
    )  # fmt: skip


def _right(fits: FoldFits, clean: Float[np.ndarray, " N"]) -> Float[np.ndarray, "R N"]:
    """1 where a fit predicts the label of a pair that it did not see, ½ where it cannot say."""
    return 0.5 * (1.0 + np.sign(fits.scores * clean))


def most_suspicious(suspicion: Float[np.ndarray, " N"], share: float) -> Bool[np.ndarray, " N"]:
    """The ⌊share·N⌋ pairs of highest suspicion, less than half of them; the first of equals."""
    return np.asarray(
        largest_to_rounding(jnp.asarray(suspicion), corruption_count(min(share, 0.499), len(suspicion)))
    )


def _check_scores(scores: np.ndarray):
    bad = np.argwhere(~np.isfinite(scores))
    if bad.size:
        raise FitOverflow(
            f"the fits overflow, and pair {bad[0][1] + 1} has no finite margin: bring the features to similar scales."
        )
