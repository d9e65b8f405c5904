"""What an audit found: accuracy, log-loss and suspicion from fits that did not see the pairs that they score."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from robust_rlhf_jax.corruption_budget import corruption_count
from robust_rlhf_jax.kernels.ranking import largest

from .contention import Contention
from .cross_validation import CrossValidation
from .detection import average_precision, precision, recall
from .folds import clustered_mean


class FitOverflow(ValueError):
    """A held-out margin is no number."""


class AuditResult(eqx.Module):
    """What an audit found. Axis [2] is (plain, robust).

    | field | shape | meaning |
    |---|---|---|
    | `accuracy`, `accuracy_error` | [2] | held-out accuracy on clean labels (ties ½), its standard error over groups |
    | `log_loss`, `log_loss_error` | [2] | held-out −log P on clean labels, in nats |
    | `gain`, `gain_error` | | robust − plain accuracy, standard error of the paired difference |
    | `fold_accuracy` | [R, F, 2] | per repeat and fold |
    | `theta` | [2, k] | mean over the R·F fits, per unit of x |
    | `differences`, `labels` | [N, k], [N] | x and the labels audited (corrupted where `injected`) |
    | `lengths` | [N] | ‖z_n‖, the length of x_n in coordinates without units |
    | `margins` | [N] | o_nθᵀx_n under the robust fits that did not see the pair's group, mean over repeats |
    | `plain_margins` | [N] | the same under the plain fits |
    | `left_out` | [N] | share of the robust fits that saw the pair and left it out, 0 where none saw it |
    | `suspicion` | [N] | −log P of the audited label under those fits, mean over repeats: higher is worse |
    | `epsilon` | | ε as given, or the mean share of the pairs that the robust fits find evidence against |
    | `evidence` | | mean share of the pairs that "fit_reward" finds evidence against, whatever ε; 0 of other fits |
    | `interval` | [2] | shares that are certain to be corrupt, and that could be, means over the robust fits |
    | `flagged` | [N] | the ⌊εN⌋ pairs of highest suspicion |
    | `injected` | [N] | labels that this audit flipped |
    | `precision`, `recall`, `average_precision` | | of `flagged` and of `suspicion`; NaN without injection |
    | `rank` | | dimension of the span of x: directions of θ that the data speak about |
    | `contention` | | two rewards that both explain the pairs (`Contention`), or None |
    | `status` | [R, F, 2] | `Status` codes of the fits |
    | `at_radius` | [R, F, 2] | whether ‖θ‖ reached the bound: the labels are (nearly) separable |
    """

    accuracy: Float[np.ndarray, " 2"]
    accuracy_error: Float[np.ndarray, " 2"]
    log_loss: Float[np.ndarray, " 2"]
    log_loss_error: Float[np.ndarray, " 2"]
    gain: float
    gain_error: float
    fold_accuracy: Float[np.ndarray, "R F 2"]
    theta: Float[np.ndarray, "2 k"]
    differences: Float[np.ndarray, "N k"]
    labels: Float[np.ndarray, " N"]
    lengths: Float[np.ndarray, " N"]
    margins: Float[np.ndarray, " N"]
    plain_margins: Float[np.ndarray, " N"]
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
    status: Int[np.ndarray, "R F 2"]
    at_radius: Bool[np.ndarray, "R F 2"]


def summarise(
    run: CrossValidation,
    clean: Float[np.ndarray, " N"],
    injected: Bool[np.ndarray, " N"],
    groups: np.ndarray,
    epsilon: float,
    **rest,
) -> AuditResult:
    """The `AuditResult` of a cross-validation; `rest` holds the fields that it does not tell.

    **Raises:** FitOverflow.
    """
    scores = run.scores
    audited = np.where(injected, -clean, clean)
    _check_scores(scores)
    right = 0.5 * (1.0 + np.sign(scores * clean[:, None]))
    loss = np.logaddexp(0.0, -scores * clean[:, None])
    accuracy, accuracy_error = clustered_mean(right.mean(axis=0), groups)
    log_loss, log_loss_error = clustered_mean(loss.mean(axis=0), groups)
    gain, gain_error = clustered_mean((right[..., 1] - right[..., 0]).mean(axis=0), groups)
    margins = scores[..., 1] * audited
    suspicion = np.logaddexp(0.0, -margins).mean(axis=0)
    flagged = most_suspicious(suspicion, epsilon)
    found = bool(injected.any())
    return AuditResult(
        accuracy=accuracy,
        accuracy_error=accuracy_error,
        log_loss=log_loss,
        log_loss_error=log_loss_error,
        gain=float(gain),
        gain_error=float(gain_error),
        fold_accuracy=_per_fold(right, run.fold_of),
        labels=audited,
        margins=margins.mean(axis=0),
        plain_margins=(scores[..., 0] * audited).mean(axis=0),
        left_out=run.left / np.maximum(run.saw, 1),
        suspicion=suspicion,
        epsilon=epsilon,
        interval=run.interval.mean(axis=(0, 1)),
        flagged=flagged,
        injected=injected,
        precision=float(precision(flagged, injected)) if found else np.nan,
        recall=float(recall(flagged, injected)) if found else np.nan,
        average_precision=float(average_precision(suspicion, injected)) if found else np.nan,
        **rest,
    )


def most_suspicious(suspicion: Float[np.ndarray, " N"], share: float) -> Bool[np.ndarray, " N"]:
    """The ⌊share·N⌋ pairs of highest suspicion, less than half of them; the first of equals."""
    return np.asarray(largest(jnp.asarray(suspicion), corruption_count(min(share, 0.499), len(suspicion))))


def _check_scores(scores):
    bad = np.argwhere(~np.isfinite(scores))
    if bad.size:
        raise FitOverflow(
            f"the fits overflow, and pair {bad[0][1] + 1} has no finite margin: bring the features to similar scales."
        )


def _per_fold(right, fold_of):
    folds = range(fold_of.max() + 1)
    return np.stack([[r[of == f].mean(axis=0) for f in folds] for r, of in zip(right, fold_of, strict=True)])
