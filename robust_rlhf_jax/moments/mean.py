"""Mean that survives an ε-fraction of arbitrary rows."""

import dataclasses
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int

from robust_rlhf_jax._iterate import Status, worst_status
from robust_rlhf_jax.checks import as_epsilon, as_floats, check_finite
from robust_rlhf_jax.kernels.linalg import matmul, pseudo_inverse_root, weighted_mean
from robust_rlhf_jax.kernels.quantile import upper_threshold
from robust_rlhf_jax.kernels.running_moments import follow, updates_pay
from robust_rlhf_jax.kernels.spectral import linear_scores, scores_from_moments
from robust_rlhf_jax.kernels.units import (
    in_units,
    relative_lengths,
    shortened,
    typical_powers,
)

from .far_rows import moved_to_zero
from .filters import EXCESS, MAX_STEPS, Filter, FilterProblem, FilterState, budget, check_rows, spectral_edge
from .known_covariance import known_covariance, off_span


class MeanFilter(Filter):
    """Degree-1 filter: remove where the weighted covariance is largest."""

    follows_moments: ClassVar[bool] = True

    def look(self, problem: FilterProblem, weights: Float[Array, " n"], last: FilterState):
        x, whitener = problem.x, problem.whitener
        if last.moments is None:
            rows = x if whitener is None else matmul(x, whitener)
            return FilterState(weights, *linear_scores(rows, weights)[:2])
        moments = follow(last.moments, x, last.weights, weights, whitener)
        return FilterState(weights, *scores_from_moments(x, moments, whitener), moments)

    def extract(self, problem: FilterProblem, state: FilterState) -> Float[Array, " d"]:
        return weighted_mean(problem.x, state.weights)


class FilteredMean(eqx.Module):
    """A robust mean with what the filter did.

    `mean` [d]; `weights` [n] in [0, 1], 0 where a row was removed; `top_eigenvalue` of the weighted covariance;
    `status` a `Status` code; `steps` the number of filter steps.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import Status, moments
    >>> x = jax.random.normal(jax.random.key(0), (100, 2)).at[:5].set(50.0)
    >>> found = moments.filter_mean(x, 0.1)
    >>> found.mean.shape, Status(int(found.status)).name, float(found.weights.sum()) >= 80
    ((2,), 'CONVERGED', True)
    """

    mean: Float[Array, " d"]
    weights: Float[Array, " n"]
    top_eigenvalue: Float[Array, ""]
    status: Int[Array, ""]
    steps: Int[Array, ""]


def _bounded(rows: Float[Array, "n d"], epsilon: Float[Array, ""]) -> Float[Array, "n d"]:
    """Rows of which none is `LONGEST` times as long as the typical one, unless all are trusted (ε = 0)."""
    return jnp.where(epsilon > 0, shortened(rows, relative_lengths(rows)), rows)


class _Scaled(NamedTuple):
    """What a filter for the mean looks at: rows in units of `size`, whitened if that is done already.

    `plain`: the rows before that; `whitener`: None once they are whitened, or if no covariance is known; `level`: where
    the filter stops; `off`: rows off the span of the covariance; `lost`: whether the covariance is not finite.
    """

    rows: Float[Array, "n d"]
    plain: Float[Array, "n d"]
    size: Float[Array, " d"]
    whitener: Float[Array, "d d"] | None
    level: Float[Array, ""]
    off: Bool[Array, " n"]
    lost: Bool[Array, ""]


def _of_unknown_covariance(x: Float[Array, "n d"], epsilon: Float[Array, ""]) -> _Scaled:
    """Without a covariance no clean level is known: the budget alone ends the filter."""
    # One unit for all columns: the filter goes by the direction that varies most.
    size = jnp.broadcast_to(jnp.max(typical_powers(x)), x.shape[1:])
    rows = _bounded(in_units(x, size), epsilon)
    level, off = jnp.zeros((), x.dtype), jnp.zeros(len(x), bool)
    return _Scaled(rows, rows, size, None, level, off, jnp.asarray(False))


def _of_known_covariance(
    x: Float[Array, "n d"],
    epsilon: Float[Array, ""],
    covariance: Float[Array, "d d"],
    slack: float | Float[Array, ""],
    exact_span: bool,
) -> _Scaled:
    lost = ~jnp.all(jnp.isfinite(covariance))
    size = typical_powers(jnp.sqrt(jnp.diagonal(covariance))[None])
    inverse, colourer, rank = pseudo_inverse_root(covariance / size[:, None] / size)
    whitener = inverse = jnp.where(lost, jnp.nan, inverse)
    level = spectral_edge(rank, len(x), x.dtype) * (1.0 + slack)
    rows = plain = _bounded(in_units(x, size), epsilon)
    off = jnp.zeros(len(x), bool)
    if exact_span:
        off = jax.lax.cond(
            (epsilon > 0) & (rank < len(covariance)),
            lambda: off_span(plain, inverse, colourer),
            lambda: jnp.zeros(len(x), bool),
        )
    if not updates_pay(x.shape):  # whiten once, not at every step
        rows, whitener = matmul(rows, whitener), None
    return _Scaled(rows, plain, size, whitener, level, off, lost)


@eqx.filter_jit
def _run_mean_filter(
    x: Float[Array, "n d"],
    epsilon: Float[Array, ""],
    covariance: Float[Array, "d d"] | None,
    slack: float | Float[Array, ""],
    max_steps: int,
    doubt: float | Float[Array, ""],
    exact_span: bool,
) -> FilteredMean:
    if covariance is None:
        scaled = _of_unknown_covariance(x, epsilon)
    else:
        scaled = _of_known_covariance(x, epsilon, covariance, slack, exact_span)
    n, size = len(x), scaled.size
    n_off = jnp.sum(scaled.off, dtype=x.dtype)
    allowed = budget(epsilon, doubt, n)
    # More rows than may be corrupt: the covariance is not that of the others.
    contradicted = n_off > allowed
    off, n_off = scaled.off & (n_off < 0.5 * n), jnp.where(n_off < 0.5 * n, n_off, 0.0)
    start = jnp.where(off, 0.0, 1.0).astype(x.dtype) if exact_span else None
    most = jnp.maximum(allowed, n_off)
    end = MeanFilter().run(
        FilterProblem(scaled.rows, epsilon, scaled.level, most, start, scaled.whitener), max_steps
    )
    weights = end.state.weights
    top = end.state.top if covariance is not None else end.state.top * size[0] * size[0]
    excess = jnp.where(contradicted, Status.FILTER_REMOVED_TOO_MUCH.array(), Status.CONVERGED.array())
    status = worst_status(end.status, excess)
    mean = jnp.where(scaled.lost, jnp.nan, weighted_mean(scaled.plain, weights) * size)
    return FilteredMean(mean, weights, top, status, end.step)


def estimated_span_filter(
    x: Float[Array, "n d"],
    epsilon: Float[Array, ""],
    covariance: Float[Array, "d d"],
    *,
    slack: Float[Array, ""],
    doubt: float | Float[Array, ""],
) -> FilteredMean:
    """`filter_mean` with an estimated covariance, whose span says nothing for certain: rows off it are not removed."""
    slack, doubt = jnp.asarray(slack, x.dtype), jnp.asarray(doubt, x.dtype)
    return _run_mean_filter(x, epsilon, covariance, slack, MAX_STEPS, doubt, exact_span=False)


def filter_mean(
    x: Float[ArrayLike, "n d"],
    epsilon: float | Float[Array, ""],
    *,
    covariance: Float[ArrayLike, "d d"] | None = None,
    slack: float | Float[Array, ""] = 0.0,
    doubt: float | Float[Array, ""] = 0.0,
    max_steps: int = MAX_STEPS,
) -> FilteredMean:
    """`robust_mean` with the weights, the status and the top eigenvalue.

    `slack` ≥ 0: relative error of `covariance`, by which the filter's stopping level rises. `doubt` ≥ 0: share of
    honest rows that may be lost beyond the budget 2ε before the level is reached. The status is
    `filter_removed_too_much` also where more rows lie off the span of `covariance` than the budget allows.

    **Raises:** as `robust_mean`.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax.moments import filter_mean
    >>> x = jax.random.normal(jax.random.key(0), (100, 2)).at[:5].set(50.0)
    >>> filter_mean(x, 0.1).weights[:5].tolist()
    [0.0, 0.0, 0.0, 0.0, 0.0]
    """
    check_rows(as_floats(x), epsilon, "robust_mean")
    x, centre = moved_to_zero(x)
    slack, doubt = jnp.asarray(slack, x.dtype), jnp.asarray(doubt, x.dtype)
    known = covariance is not None
    if known:
        covariance = known_covariance(x, covariance)
    found = _run_mean_filter(x, as_epsilon(epsilon, x.dtype), covariance, slack, max_steps, doubt, known)
    return dataclasses.replace(found, mean=found.mean + centre)


def refilter_mean(
    x: Float[Array, "n d"],
    epsilon: Float[Array, ""],
    weights: Float[Array, " n"],
    max_steps: int = MAX_STEPS,
) -> Float[Array, " n"]:
    """Weights [n] of a filter for the mean that goes on from the `weights` of an earlier one of similar rows.

    For rows of unknown covariance: the clean level is `EXCESS` times the mean eigenvalue, taken from row lengths
    clipped where εn of them lie above. What is missing from `weights` counts towards the budget 2εn.
    """
    n, d = x.shape
    lengths = jnp.sum((x - weighted_mean(x, weights)) ** 2, axis=1)
    clipped = jnp.minimum(lengths, upper_threshold(lengths, weights, epsilon * n))
    level = EXCESS * matmul(weights, clipped) / jnp.sum(weights) / d
    problem = FilterProblem(x, epsilon, level, 2.0 * epsilon * n, weights)
    return MeanFilter().run(problem, max_steps).state.weights


def robust_mean(
    x: Float[ArrayLike, "n d"],
    epsilon: float | Float[Array, ""],
    *,
    covariance: Float[ArrayLike, "d d"] | None = None,
    splits: int = 1,
    max_steps: int = MAX_STEPS,
) -> Float[Array, " d"]:
    """Mean of rows of which an ε-fraction may be arbitrary (paper: RobMean, Lemma "robust mean estimation").

    Weights start at 1. While the top eigenvalue λ of the weighted covariance exceeds the clean level and less
    than 2εn of weight is gone, the weights of the rows that stand out along its eigenvector are lowered
    (`kernels.removal.remove_softly`). Error O(√ε·σ) for covariance ⪯ σ²I, O(ε√log(1/ε)) on stable sets.
    At ε = 0 it is the mean. ε is traced: a new ε does not recompile it. However far corrupt rows lie, the answer is
    bounded: rows over 10⁴ times as long as the typical one are shortened to that.

    **Arguments:** `x` [n, d]; `epsilon` in [0, ½); `covariance` [d, d] of the clean rows if it is known: rows are
    then whitened, and the filter stops at the edge (1 + √(d/n))² of the clean spectrum; where it is singular, rows
    that differ from the others along its null directions get weight 0. Without it the filter spends its whole
    budget. `splits` > 1 filters that many interleaved parts and returns the part mean with the smallest median
    distance to all (the first where two tie), which turns the guarantee's constant success probability into
    1 − exp(−Ω(splits)); it costs statistical accuracy and is off by default.

    **Returns:** mean [d].

    **Raises:** ValueError for a wrong shape or dtype, rows that are not finite, ε outside [0, ½), splits outside
    [1, n], or a `covariance` that is misshapen, not finite, not positive semidefinite, or zero while rows differ.
    Traced rows, and a traced covariance, that are not finite give NaN.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax.moments import robust_mean
    >>> x = jax.random.normal(jax.random.key(0), (100, 2)).at[:5].set(50.0)
    >>> [round(float(abs(mean).max()), 1) for mean in (x.mean(axis=0), robust_mean(x, 0.1))]
    [2.5, 0.1]
    """
    rows = as_floats(x)
    check_rows(rows, epsilon, "robust_mean")
    check_finite(rows, "x")
    if not 1 <= splits <= len(rows):
        raise ValueError(f"splits={splits} must lie between 1 and the number of rows, {len(rows)}.")
    if splits == 1:
        return filter_mean(x, epsilon, covariance=covariance, max_steps=max_steps).mean
    x, centre = moved_to_zero(x)
    if covariance is not None:  # here, where the rows are not traced
        covariance = known_covariance(x, covariance)
    size = len(x) // splits
    parts = jnp.stack([x[i::splits][:size] for i in range(splits)])
    means = jax.vmap(lambda p: filter_mean(p, epsilon, covariance=covariance, max_steps=max_steps).mean)(
        parts
    )
    distances = jnp.linalg.norm(means[:, None] - means[None], axis=-1)
    central = means[jnp.argmin(jnp.median(distances, axis=1))]
    # A NaN in one part is not voted away: there is no status here to say so.
    return jnp.where(jnp.any(jnp.isnan(means)), jnp.nan, central + centre)
