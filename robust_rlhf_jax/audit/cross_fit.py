"""Audit of a preference file: plain against robust fit on held-out pairs, and the pairs that look corrupt."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int, PRNGKeyArray

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.attacks.base import corruption_count, largest
from robust_rlhf_jax.checks import check_epsilon
from robust_rlhf_jax.memory import check_room
from robust_rlhf_jax.preferences import PreferenceData, check_preferences
from robust_rlhf_jax.rewards import CEILING, group_numbers
from robust_rlhf_jax.rewards.coordinates import unit_free

from .detection import average_precision, precision, recall
from .fits import AUDIT_FITS, DEFAULT_FIT, fit_plain, fit_robust
from .folds import clustered_mean, group_folds, training_rows

# ‖θ‖ in whitened units is the root mean square of θᵀx: 1.1 on the rail choices (4 where a tenth is trimmed), so this
# never binds unless labels are (nearly) separable, where every finite bound does; `at_radius` then says so.
RADIUS = 100.0
DEFAULT_ESTIMATOR = DEFAULT_FIT
INJECTIONS = ("flip_confident", "flip_random")


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
    status: Int[np.ndarray, "R F 2"]
    at_radius: Bool[np.ndarray, "R F 2"]


def audit(
    key: PRNGKeyArray,
    data: PreferenceData,
    epsilon: float | None = None,
    *,
    folds: int = 5,
    repeats: int = 5,
    groups: Int[np.ndarray, " N"] | None = None,
    inject: float = 0.0,
    injection: str = "flip_confident",
    estimator: str = DEFAULT_ESTIMATOR,
    most: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> AuditResult:
    """Cross-validate a plain and a robust reward model, and rank the pairs by how little they fit the rest.

    Labels are corrupted first if `inject` > 0. Both models are fitted to the audited labels of the training folds and
    scored on the clean labels of the held-out fold. x is put into coordinates without units over all pairs
    (`unit_free`: absurdly long rows are shortened; labels play no part) and every pair is turned round at random:
    Bradley–Terry has no place for "the first is preferred", and a filter of x must not read labels off the order in
    which a file lists its options.

    **Arguments:** `epsilon` in [0, ½): the fraction that the robust fit tolerates and that is flagged; None: decided
    from the evidence, up to a fifth ("fit_reward" alone). `groups` [N]: rows of one group (a person) stay in one
    fold, and "fit_reward" allows for their labels hanging together; by default each pair is its own. `inject` in
    [0, ½): fraction of labels to flip; `injection` "flip_confident" flips those with the largest margins under the
    plain fit to clean labels (the worst for it), "flip_random" any. `estimator`: a name in `AUDIT_FITS`.
    `most`: rows that a fit sees at most, drawn at random; None: all. `progress(done, total)` is called before the
    first fold and after each.

    **Raises:** ValueError for data that `check_preferences` refuses, ε or `inject` outside [0, ½), no ε where it is
    needed, an unknown name, fits that overflow, `repeats` < 1, `groups` of another length, or fewer groups than folds.
    """
    raters = groups
    groups = _check(data, epsilon, folds, repeats, groups, inject, injection, estimator)
    most = data.n_pairs if most is None else most
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
    z, to_x, rank = _whiten(data.differences())
    clean = np.asarray(data.labels, z.dtype)
    radius, level = (
        jnp.asarray(RADIUS, z.dtype),
        jnp.asarray(CEILING if epsilon is None else epsilon, z.dtype),
    )
    injected = _choose_injected(rng, z, clean, inject, injection, radius)
    audited = np.where(injected, -clean, clean)

    def fit(seen, rows):
        turn = rng.choice([-1.0, 1.0], len(rows)).astype(z.dtype)
        x, labels = jnp.asarray(z[rows] * turn[:, None]), jnp.asarray(audited[rows] * turn)
        few = len(rows) == most < len(z)
        plain = fit_plain(
            *((x, labels, np.ones_like(turn)) if few else (z, audited, seen.astype(z.dtype))), radius
        )
        of = None if raters is None else group_numbers(groups[rows], len(rows))
        robust = fit_robust(estimator, x, labels, level, radius, of)
        return _Fits(
            *(np.stack(both) for both in zip(plain, robust[:2], strict=True)),
            *(np.asarray(part) for part in robust[2:]),
        )

    run = _cross_validate(rng, fit, z, groups, folds, repeats, most, progress)
    return _summarise(
        run, clean, injected, groups, float(run.share.mean()) if epsilon is None else float(epsilon),
        evidence=float(run.share.mean()) if estimator == DEFAULT_FIT else 0.0,
        differences=np.asarray(data.differences()),
        theta=run.theta.mean(axis=(0, 1)) @ to_x.T,
        rank=rank,
        status=run.status,
        at_radius=(np.linalg.norm(run.theta, axis=-1) >= 0.999 * RADIUS) | (run.status == Status.SEPARABLE),
    )  # fmt: skip


def _whiten(x):
    """z = x·M without units, with second moment about I on the span of x, absurdly long rows shortened; M; the rank."""
    x = jnp.asarray(x)
    pairs = unit_free(x, jnp.ones(x.shape[0], x.dtype))
    return np.asarray(pairs.z), np.asarray(pairs.to_theta), int(pairs.rank)


def _choose_injected(rng, z, clean, fraction, injection, radius):
    """Mask of the ⌊inject·N⌋ labels to flip."""
    count = corruption_count(float(fraction), len(clean))
    if injection == "flip_random":
        order = rng.uniform(size=len(clean))
    else:
        theta, _ = fit_plain(z, clean, np.ones_like(clean), radius)
        order = clean * (z @ np.asarray(theta))
    return np.asarray(largest(jnp.asarray(order, z.dtype), count))


class _Fits(NamedTuple):
    """Plain and robust: θ [2, k], status [2]; `share`, `interval` [2] and `weights` [n] of the robust one."""

    theta: np.ndarray
    status: np.ndarray
    share: np.ndarray
    interval: np.ndarray
    weights: np.ndarray


class _Run(eqx.Module):
    """Held-out θᵀz [R, N, 2], the fold of each row [R, N], θ in whitened units [R, F, 2, k], status [R, F, 2], the
    share [R, F] that the robust fit finds evidence against, its interval [R, F, 2]; how many fits saw each pair, and
    left it out [N].
    """

    scores: np.ndarray
    fold_of: np.ndarray
    theta: np.ndarray
    status: np.ndarray
    share: np.ndarray
    interval: np.ndarray
    saw: np.ndarray
    left: np.ndarray


def _cross_validate(rng, fit, z, groups, folds, repeats, most, progress):
    fold_of = np.stack([group_folds(rng, groups, folds) for _ in range(repeats)])
    rows = training_rows(rng, fold_of, folds)[..., :most]
    scores = np.zeros((repeats, len(z), 2), z.dtype)
    theta = np.zeros((repeats, folds, 2, z.shape[1]), z.dtype)
    status = np.zeros((repeats, folds, 2), np.int32)
    share, interval = np.zeros((repeats, folds)), np.zeros((repeats, folds, 2))
    saw, left = np.zeros(len(z)), np.zeros(len(z))
    tell = progress or (lambda done, total: None)
    tell(0, repeats * folds)
    for done, (r, f) in enumerate(np.ndindex(repeats, folds), 1):
        held_out = fold_of[r] == f
        found = fit(~held_out, rows[r, f])
        theta[r, f], status[r, f], share[r, f], interval[r, f] = found[:4]
        saw[rows[r, f]] += 1
        left[rows[r, f]] += 1 - found.weights
        scores[r, held_out] = z[held_out] @ theta[r, f].T
        tell(done, repeats * folds)
    return _Run(scores, fold_of, theta, status, share, interval, saw, left)


def _summarise(run, clean, injected, groups, epsilon, **rest):
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
    flagged = np.asarray(largest(jnp.asarray(suspicion), corruption_count(min(epsilon, 0.499), len(clean))))
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


def _check_scores(scores):
    bad = np.argwhere(~np.isfinite(scores))
    if bad.size:
        raise FitOverflow(
            f"the fits overflow, and pair {bad[0][1] + 1} has no finite margin: bring the features to similar scales."
        )


def _per_fold(right, fold_of):
    folds = range(fold_of.max() + 1)
    return np.stack([[r[of == f].mean(axis=0) for f in folds] for r, of in zip(right, fold_of, strict=True)])


def _check(data, epsilon, folds, repeats, groups, inject, injection, estimator):
    check_preferences(data)
    # Before ε, which a report takes from it if not given: the message names what was typed.
    if not 0 <= inject < 0.5:
        raise ValueError(f"inject={inject} is outside [0, 0.5): give the fraction of labels to flip.")
    if epsilon is not None:
        check_epsilon(epsilon)
    if injection not in INJECTIONS:
        raise ValueError(f"injection={injection!r} is unknown: choose one of {', '.join(INJECTIONS)}.")
    if estimator not in AUDIT_FITS:
        raise ValueError(f"estimator={estimator!r} is unknown: choose one of {', '.join(AUDIT_FITS)}.")
    if epsilon is None and estimator != DEFAULT_FIT:
        raise ValueError(f"estimator={estimator!r} needs epsilon: only {DEFAULT_FIT!r} does without.")
    if repeats < 1:
        raise ValueError(f"repeats={repeats} must be 1 or more.")
    groups = np.arange(data.n_pairs) if groups is None else np.asarray(groups)
    if groups.shape != (data.n_pairs,):
        raise ValueError(f"groups has shape {groups.shape}: give one group for each of {data.n_pairs} pairs.")
    group_folds(np.random.default_rng(0), groups, folds)
    size = 16 * repeats * data.n_pairs * (folds + 1)
    check_room(f"repeats={repeats} with folds={folds}", size, "give fewer of either")
    return groups
