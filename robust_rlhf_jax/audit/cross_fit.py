"""Audit of a preference file: plain and robust fits on held-out pairs, and the pairs that look corrupt."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from robust_rlhf_jax.checks import check_epsilon, check_key
from robust_rlhf_jax.corruption_budget import corruption_count
from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.kernels.ranking import largest
from robust_rlhf_jax.memory import check_room
from robust_rlhf_jax.preferences import PreferenceData, as_labelled
from robust_rlhf_jax.rewards import CEILING, Streaming, plain_fit
from robust_rlhf_jax.rewards.coordinates import unit_free
from robust_rlhf_jax.rewards.registry import DEFAULT as DEFAULT_ESTIMATOR
from robust_rlhf_jax.rewards.registry import named
from robust_rlhf_jax.rewards.streamed import in_memory
from robust_rlhf_jax.rewards.usual_sizes import filled, rows_to_fill
from robust_rlhf_jax.sources import PairSource

from .contention import strongest
from .cross_validation import cross_validate
from .fits import PlainFoldFit, fit_robust, numbers_at
from .folds import group_folds
from .kept_together import kept_together
from .result import AuditResult, score_fits, summarise

# ‖θ‖ in whitened units is the root mean square of θᵀx: 1.1 on the rail choices (4 where a tenth is trimmed), so this
# never binds unless labels are (nearly) separable, where every finite bound does; `at_radius` then says so.
RADIUS = 100.0
INJECTIONS = ("flip_confident", "flip_random")


def audit(
    key: PRNGKeyArray,
    data: Pairs | PreferenceData | PairSource,
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
    streaming: Streaming | None = None,
) -> AuditResult:
    """Cross-validate a plain and a robust reward model, and rank the pairs by how little they fit the rest.

    Labels are corrupted first if `inject` > 0. Both models are fitted to the audited labels of the training folds and
    scored on the labels of the held-out fold as they were given. x is put into coordinates without units over all pairs
    (`unit_free`: absurdly long rows are shortened; labels play no part) and every pair is turned round at random:
    Bradley–Terry has no place for "the first is preferred", and a filter of x must not read labels off the order in
    which a file lists its options.

    **Arguments:** `epsilon` in [0, ½): the fraction that the robust fit tolerates and that is flagged; None: decided
    from the evidence, up to a fifth ("fit_reward" alone). `groups` [N]: rows of one group (a person) stay in one
    fold, and "fit_reward" allows for the dependence of their labels; by default those that `Pairs` know, else copies
    of the same texts stay in one fold. `inject` in [0, ½): fraction of labels to flip; `injection` "flip_confident"
    flips those with the largest margins under the plain fit to the labels as given (the worst for it), "flip_random"
    any. `estimator`: a name in `rewards.REWARD_ESTIMATORS`. `most`: rows that a fit sees at most, drawn at random;
    None: all.
    `progress(done, total)` is called before the first fold and after each. `streaming`: the memory that the pairs of a
    `PairSource` may take; all of them are needed at once, since the folds of every repeat are other ones.

    **Raises:** ValueError for what is not one key, a source that does not fit into it, data that `check_preferences`
    refuses, ε or `inject` outside [0, ½), no ε where it is needed, an unknown name, fits that overflow, `repeats` < 1,
    a number of folds or repeats that is not whole, `groups` of another length, or fewer groups than folds.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import preferences
    >>> from robust_rlhf_jax.audit import audit
    >>> rail = preferences.rail_pairs().take(range(200))
    >>> found = audit(jax.random.key(0), rail, 0.1, folds=3, repeats=1, inject=0.1, injection="flip_random")
    >>> int(found.injected.sum()), int(found.flagged.sum()), found.precision > 0.1, found.robust.accuracy > 0.6
    (20, 20, True, True)
    """
    check_key(key)
    data = in_memory(data, "an audit fits every fold to all other pairs", streaming, "audit.audit_source")
    seen = as_labelled(data, groups, ask_table=False)
    together = None if seen.groups is None else np.asarray(seen.groups)
    comparisons = None if seen.comparisons is None else np.asarray(seen.comparisons)
    groups = kept_together(data, together, folds)
    _check(epsilon, folds, repeats, groups, inject, injection, estimator)
    entry = named(estimator, epsilon)
    most = data.n_pairs if most is None else most
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
    z, to_x, rank = whiten(seen.x)
    clean = np.asarray(seen.labels)
    radius = jnp.asarray(RADIUS, z.dtype)
    level = jnp.asarray(CEILING if epsilon is None else epsilon, z.dtype)
    injected = _choose_injected(rng, z, clean, inject, injection)
    audited = np.where(injected, -clean, clean)

    def fit(training: Bool[np.ndarray, " N"], rows: Int[np.ndarray, " n"]):
        turn = rng.choice([-1.0, 1.0], len(rows)).astype(z.dtype)
        x, labels = jnp.asarray(z[rows] * turn[:, None]), jnp.asarray(audited[rows] * turn)
        few = len(rows) == most < len(z)
        given = (x, labels, np.ones_like(turn)) if few else (z, audited, training.astype(z.dtype))
        plain = PlainFoldFit(*plain_fit(*given))
        of, same = numbers_at(together, rows), numbers_at(comparisons, rows)
        return plain, fit_robust(entry, x, labels, level, radius, of, same)

    run = cross_validate(rng, fit, z, groups, folds, repeats, most, progress)
    plain, robust = (
        score_fits(fits, clean, audited, groups, run.fold_of, to_x, RADIUS)
        for fits in (run.plain, run.robust)
    )
    return summarise(
        run, plain, robust, clean, injected, groups,
        float(run.share.mean()) if epsilon is None else float(epsilon),
        evidence=float(run.share.mean()) if entry.evidence is not None else 0.0,
        differences=np.asarray(seen.x),
        lengths=np.linalg.norm(z, axis=1),
        rank=rank,
        contention=strongest(run.contentions, to_x),
    )  # fmt: skip


def whiten(x: Float[Array, "N k"]):
    """z = x·M without units, with second moment about I on the span of x, absurdly long rows shortened; M; the rank."""
    n, more = len(x), rows_to_fill(x)
    x = filled(jnp.asarray(x), more)
    pairs = unit_free(x, jnp.ones(x.shape[0], x.dtype))
    return np.asarray(pairs.rows)[:n], np.asarray(pairs.to_theta), int(pairs.rank)


def _choose_injected(
    rng: np.random.Generator,
    z: Float[np.ndarray, "N k"],
    clean: Float[np.ndarray, " N"],
    fraction: float,
    injection: str,
):
    """Mask of the ⌊inject·N⌋ labels to flip."""
    count = corruption_count(float(fraction), len(clean))
    if injection == "flip_random":
        order = rng.uniform(size=len(clean))
    else:
        theta, _ = plain_fit(z, clean, np.ones_like(clean))
        order = clean * (z @ np.asarray(theta))
    return np.asarray(largest(jnp.asarray(order, z.dtype), count))


def _check(
    epsilon: float | None,
    folds: int,
    repeats: int,
    groups: np.ndarray,
    inject: float,
    injection: str,
    estimator: str,
):
    # Before ε, which a report takes from it if not given: the message names what was typed.
    if not 0 <= inject < 0.5:
        raise ValueError(f"inject={inject} is outside [0, 0.5): give the fraction of labels to flip.")
    if epsilon is not None:
        check_epsilon(epsilon)
    if injection not in INJECTIONS:
        raise ValueError(f"injection={injection!r} is unknown: choose one of {', '.join(INJECTIONS)}.")
    named(estimator, epsilon)
    for name, number in (("folds", folds), ("repeats", repeats)):
        if not isinstance(number, int | np.integer):
            raise ValueError(f"{name}={number!r}: give a whole number.")
    if repeats < 1:
        raise ValueError(f"repeats={repeats} must be 1 or more.")
    group_folds(np.random.default_rng(0), groups, folds)
    size = 16 * repeats * len(groups) * (folds + 1)
    check_room(f"repeats={repeats} with folds={folds}", size, "give fewer of either")
