"""Audit of a preference file: plain against robust fit on held-out pairs, and the pairs that look corrupt."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int, PRNGKeyArray

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.checks import check_epsilon
from robust_rlhf_jax.corruption_budget import corruption_count
from robust_rlhf_jax.kernels.ranking import largest
from robust_rlhf_jax.memory import check_room
from robust_rlhf_jax.preferences import PreferenceData, check_preferences
from robust_rlhf_jax.rewards import CEILING, group_numbers
from robust_rlhf_jax.rewards.coordinates import unit_free

from .contention import contention_of, strongest
from .cross_validation import BothFits, cross_validate
from .fits import AUDIT_FITS, DEFAULT_FIT, fit_plain, fit_robust
from .folds import group_folds
from .result import AuditResult, summarise

# ‖θ‖ in whitened units is the root mean square of θᵀx: 1.1 on the rail choices (4 where a tenth is trimmed), so this
# never binds unless labels are (nearly) separable, where every finite bound does; `at_radius` then says so.
RADIUS = 100.0
DEFAULT_ESTIMATOR = DEFAULT_FIT
INJECTIONS = ("flip_confident", "flip_random")


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
        theta, status = (np.stack(both) for both in zip(plain, robust[:2], strict=True))
        share, interval, weights = (np.asarray(part) for part in robust[2:5])
        return BothFits(theta, status, share, interval, weights, contention_of(robust.explanations))

    run = cross_validate(rng, fit, z, groups, folds, repeats, most, progress)
    return summarise(
        run, clean, injected, groups, float(run.share.mean()) if epsilon is None else float(epsilon),
        evidence=float(run.share.mean()) if estimator == DEFAULT_FIT else 0.0,
        differences=np.asarray(data.differences()),
        lengths=np.linalg.norm(z, axis=1),
        theta=run.theta.mean(axis=(0, 1)) @ to_x.T,
        rank=rank,
        contention=strongest(run.contentions, to_x),
        status=run.status,
        at_radius=(np.linalg.norm(run.theta, axis=-1) >= 0.999 * RADIUS) | (run.status == Status.SEPARABLE),
    )  # fmt: skip


def _whiten(x):
    """z = x·M without units, with second moment about I on the span of x, absurdly long rows shortened; M; the rank."""
    x = jnp.asarray(x)
    pairs = unit_free(x, jnp.ones(x.shape[0], x.dtype))
    return np.asarray(pairs.rows), np.asarray(pairs.to_theta), int(pairs.rank)


def _choose_injected(rng, z, clean, fraction, injection, radius):
    """Mask of the ⌊inject·N⌋ labels to flip."""
    count = corruption_count(float(fraction), len(clean))
    if injection == "flip_random":
        order = rng.uniform(size=len(clean))
    else:
        theta, _ = fit_plain(z, clean, np.ones_like(clean), radius)
        order = clean * (z @ np.asarray(theta))
    return np.asarray(largest(jnp.asarray(order, z.dtype), count))


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
