"""Mean and covariance that survive an ε-fraction of arbitrary rows."""

import abc
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from robust_rlhf_jax._iterate import Iteration, Status, iterate
from robust_rlhf_jax.checks import as_epsilon, as_floats, check_epsilon, check_finite
from robust_rlhf_jax.kernels.linalg import (
    matmul,
    pseudo_inverse_root,
    weighted_mean,
    weighted_second_moment,
)
from robust_rlhf_jax.kernels.quantile import upper_threshold
from robust_rlhf_jax.kernels.running_moments import RunningMoments, follow, no_moments, updates_pay
from robust_rlhf_jax.kernels.spectral import (
    linear_scores,
    quadratic_scores,
    quadratic_top_bound,
    remove_softly,
    scores_from_moments,
)
from robust_rlhf_jax.kernels.units import (
    LONGEST_IN_SCALES,
    column_medians,
    in_units,
    relative_lengths,
    shortened,
    typical_powers,
    unit_free_lengths,
)

from .span import RowSpan, row_span

# A step removes the rows above the score that a 2·CHOP-th of the budget exceeds.
CHOP = 8
MAX_STEPS = 64
# Budget spent and still this many times the clean variance: rows do not look like ε-corrupt clean data.
EXCESS = 3.0
# A whitened row longer than this is scored as if it were so long: fourth powers of it must stay finite.
LONGEST_SCORED = 1e6


class FilterProblem(eqx.Module):
    """What a filter sees: rows, the tolerated fraction, the variance at which it may stop.

    `budget`: the mass that it may remove. 2εn leaves at worst as much clean mass removed as corrupt. `start` [n]:
    weights that an earlier filter left, None for 1; what is missing from them counts towards the budget. `whitener`
    [d, d] of the mean filter: the rows that count are x times it; None where x is whitened or need not be.
    """

    x: Float[Array, "n d"]
    epsilon: Float[Array, ""]
    level: Float[Array, ""]
    budget: Float[Array, ""]
    start: Float[Array, " n"] | None = None
    whitener: Float[Array, "d d"] | None = None


class FilterState(eqx.Module):
    """Weights in [0, 1], the scores under them, and the top eigenvalue that the scores come from.

    `moments` under the weights, where the next step takes them up.
    """

    weights: Float[Array, " n"]
    scores: Float[Array, " n"]
    top: Float[Array, ""]
    moments: RunningMoments | None = None


def _remove(problem: FilterProblem, state: FilterState) -> Float[Array, " n"]:
    n = problem.x.shape[0]
    left = problem.budget - (n - jnp.sum(state.weights))
    corrupt = problem.epsilon * n
    return remove_softly(state.weights, state.scores, corrupt, problem.budget / (2 * CHOP), left)


def _filter_status(problem: FilterProblem, state: FilterState) -> Int[Array, ""]:
    n = problem.x.shape[0]
    clean = state.top <= problem.level
    # Rounding of a sum of n weights; without it the last sliver of the budget costs a step of its own.
    spent = n - jnp.sum(state.weights) >= problem.budget - 1e-3 * problem.epsilon * n
    # A level of 0 means that none is known: spending the budget is then how a filter ends.
    excessive = (problem.level > 0) & (problem.epsilon > 0) & (state.top > EXCESS * problem.level)
    ending = jnp.where(excessive, Status.FILTER_REMOVED_TOO_MUCH.array(), Status.CONVERGED.array())
    return jnp.where(clean | spent, ending, Status.RUNNING.array())


class Filter(eqx.Module):
    """Score the rows, remove the highest scores, again: a filter of either degree differs in its scores alone.

    The first step removes nothing and scores: one program for it and the others.
    """

    follows_moments: ClassVar[bool]

    @abc.abstractmethod
    def look(self, problem: FilterProblem, weights: Float[Array, " n"], last: FilterState) -> FilterState:
        """The state of `weights`, scored; `last`: the state before."""

    @abc.abstractmethod
    def extract(self, problem: FilterProblem, state: FilterState): ...

    def init(self, problem: FilterProblem, *, key) -> FilterState:
        x = problem.x
        weights = jnp.ones(x.shape[0], x.dtype) if problem.start is None else problem.start
        moments = no_moments(x) if self.follows_moments and updates_pay(x.shape) else None
        return FilterState(weights, jnp.zeros_like(weights), jnp.asarray(jnp.inf, x.dtype), moments)

    def run(self, problem: FilterProblem, max_steps: int) -> Iteration:
        """The filter's end after at most `max_steps` removals, which `Iteration.step` counts."""
        end = iterate(self, problem, key=jax.random.key(0), max_steps=max_steps + 1)
        return eqx.tree_at(lambda e: e.step, end, jnp.maximum(end.step - 1, 0))

    def step(self, problem: FilterProblem, state: FilterState, *, key) -> FilterState:
        return self.look(problem, _remove(problem, state), state)

    def terminate(self, problem: FilterProblem, state: FilterState) -> Int[Array, ""]:
        scored = jnp.isfinite(state.top)
        return jnp.where(scored, _filter_status(problem, state), Status.RUNNING.array())


class MeanFilter(Filter):
    """Degree-1 filter: remove where the weighted covariance is largest."""

    follows_moments: ClassVar[bool] = True

    def look(self, problem, weights, last):
        x, whitener = problem.x, problem.whitener
        if last.moments is None:
            rows = x if whitener is None else matmul(x, whitener)
            return FilterState(weights, *linear_scores(rows, weights)[:2])
        moments = follow(last.moments, x, last.weights, weights, whitener)
        return FilterState(weights, *scores_from_moments(x, moments, whitener), moments)

    def extract(self, problem: FilterProblem, state: FilterState) -> Float[Array, " d"]:
        return weighted_mean(problem.x, state.weights)


class CovarianceFilter(Filter):
    """Degree-2 filter: whiten by the current estimate, remove where the covariance of yyᵀ is largest."""

    follows_moments: ClassVar[bool] = False
    assume_centered: bool = eqx.field(static=True, default=True)

    def look(self, problem, weights, last):
        return FilterState(weights, *quadratic_scores(self.whitened(problem.x, weights), weights))

    def extract(self, problem: FilterProblem, state: FilterState) -> Float[Array, "d d"]:
        return weighted_second_moment(self.centred(problem.x, state.weights), state.weights)

    def whitened(self, x, weights):
        """The rows that are scored."""
        centred = self.centred(x, weights)
        y = row_span(centred, weights).whiten(centred)
        return shortened(y, jnp.linalg.norm(y, axis=1), LONGEST_SCORED)

    def centred(self, x, weights):
        return x if self.assume_centered else x - weighted_mean(x, weights)


class FilteredMean(eqx.Module):
    """A robust mean with what the filter did.

    `mean` [d]; `weights` [n] in [0, 1], 0 where a row was removed; `top_eigenvalue` of the weighted covariance;
    `status` a `Status` code; `steps` the number of filter steps.
    """

    mean: Float[Array, " d"]
    weights: Float[Array, " n"]
    top_eigenvalue: Float[Array, ""]
    status: Int[Array, ""]
    steps: Int[Array, ""]


class RobustCovariance(eqx.Module):
    """A robust covariance, its rank, and the whitening that it gives.

    `covariance` [d, d]; `whitener` Σ^{-1/2} and `colourer` Σ^{1/2} [d, d] on the identifiable subspace, zero off
    it; `rank` of that subspace; `mean` [d] (zero when centred data were assumed); `weights` [n];
    `top_eigenvalue` of the covariance of yyᵀ, y whitened (2 for normal data), from twelve power steps, which are up to
    9 % low; `top_bound`: what it exceeds with probability .01 at most, 2 to 6 % high; `status`; `steps`.
    """

    covariance: Float[Array, "d d"]
    whitener: Float[Array, "d d"]
    colourer: Float[Array, "d d"]
    rank: Int[Array, ""]
    mean: Float[Array, " d"]
    weights: Float[Array, " n"]
    top_eigenvalue: Float[Array, ""]
    top_bound: Float[Array, ""]
    status: Int[Array, ""]
    steps: Int[Array, ""]


def _check_rows(x, epsilon, name):
    if x.ndim != 2 or x.shape[0] < 1 or x.shape[1] < 1:
        raise ValueError(f"{name} takes x of shape [n, d] with n, d ≥ 1; got {x.shape}.")
    if not jnp.issubdtype(x.dtype, jnp.floating):
        raise ValueError(f"{name} takes floating-point x; got {x.dtype}: convert it with x.astype(float).")
    check_epsilon(epsilon)


def spectral_edge(dimensions: Float[Array, ""], n: int, dtype) -> Float[Array, ""]:
    """(1 + √(D/n))²: the largest eigenvalue of the sample covariance of n clean rows of unit covariance in R^D.

    Marchenko & Pastur 1967; Bai & Yin 1993.
    """
    return (1.0 + jnp.sqrt(jnp.asarray(dimensions, dtype) / n)) ** 2


def _budget(epsilon, doubt, n: int) -> Float[Array, ""]:
    """(2ε + doubt)·n, and nothing at ε = 0."""
    return jnp.where(epsilon > 0, 2.0 * epsilon + doubt, 0.0) * n


def _bounded(rows: Float[Array, "n d"], epsilon: Float[Array, ""]) -> Float[Array, "n d"]:
    """Rows of which none is `LONGEST` times as long as the typical one, unless all are trusted (ε = 0)."""
    return jnp.where(epsilon > 0, shortened(rows, relative_lengths(rows)), rows)


@eqx.filter_jit
def _run_mean_filter(x, epsilon, covariance, slack, max_steps, doubt):
    n = x.shape[0]
    if covariance is None:  # no clean level is known: the budget alone ends the filter
        # One unit for all columns: which direction varies most is what this filter goes by.
        size = jnp.broadcast_to(jnp.max(typical_powers(x)), x.shape[1:])
        whitener, level = None, jnp.zeros((), x.dtype)
    else:
        size = typical_powers(jnp.sqrt(jnp.diagonal(covariance))[None])
        whitener, _, rank = pseudo_inverse_root(covariance / size[:, None] / size)
        level = spectral_edge(rank, n, x.dtype) * (1.0 + slack)
    rows = plain = _bounded(in_units(x, size), epsilon)
    if whitener is not None and not updates_pay(x.shape):  # whiten once, not at every step
        rows, whitener = matmul(rows, whitener), None
    problem = FilterProblem(rows, epsilon, level, _budget(epsilon, doubt, n), whitener=whitener)
    end = MeanFilter().run(problem, max_steps)
    weights = end.state.weights
    top = end.state.top if covariance is not None else end.state.top * size[0] * size[0]
    return FilteredMean(weighted_mean(plain, weights) * size, weights, top, end.status, end.step)


def filter_mean(
    x: Float[Array, "n d"],
    epsilon: float | Float[Array, ""],
    *,
    covariance: Float[Array, "d d"] | None = None,
    slack: float | Float[Array, ""] = 0.0,
    doubt: float | Float[Array, ""] = 0.0,
    max_steps: int = MAX_STEPS,
) -> FilteredMean:
    """`robust_mean` with the weights, the status and the top eigenvalue.

    `slack` ≥ 0: relative error of `covariance`, by which the filter's stopping level rises. `doubt` ≥ 0: share of
    honest rows that may be lost beyond the budget 2ε before the level is reached.
    """
    x = as_floats(x)
    _check_rows(x, epsilon, "robust_mean")
    slack, doubt = jnp.asarray(slack, x.dtype), jnp.asarray(doubt, x.dtype)
    covariance = None if covariance is None else jnp.asarray(covariance, x.dtype)
    return _run_mean_filter(x, as_epsilon(epsilon, x.dtype), covariance, slack, max_steps, doubt)


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
    level = EXCESS * jnp.dot(weights, clipped) / jnp.sum(weights) / d
    problem = FilterProblem(x, epsilon, level, 2.0 * epsilon * n, weights)
    return MeanFilter().run(problem, max_steps).state.weights


def robust_mean(
    x: Float[Array, "n d"],
    epsilon: float | Float[Array, ""],
    *,
    covariance: Float[Array, "d d"] | None = None,
    splits: int = 1,
    max_steps: int = MAX_STEPS,
) -> Float[Array, " d"]:
    """Mean of rows of which an ε-fraction may be arbitrary (paper: RobMean, Lemma "robust mean estimation").

    Weights start at 1. While the top eigenvalue λ of the weighted covariance exceeds the clean level and less
    than 2εn of weight is gone, the weights of the rows that stand out along its eigenvector are lowered
    (`kernels.spectral.remove_softly`). Error O(√ε·σ) for covariance ⪯ σ²I, O(ε√log(1/ε)) on stable sets.
    At ε = 0 it is the mean. ε is traced: a new ε compiles nothing. However far corrupt rows lie, the answer is bounded:
    rows over 10⁴ times as long as the typical one are shortened to that.

    **Arguments:** `x` [n, d]; `epsilon` in [0, ½); `covariance` [d, d] of the clean rows if it is known: rows are
    then whitened, and the filter stops at the edge (1 + √(d/n))² of the clean spectrum; without it the filter
    spends its whole budget. `splits` > 1 filters that many interleaved parts and returns the part mean with the
    smallest median distance to all (the first where two tie), which turns the guarantee's constant success
    probability into 1 − exp(−Ω(splits)); it costs statistical accuracy and is off by default.

    **Returns:** mean [d].

    **Raises:** ValueError for a wrong shape or dtype, rows that are not finite, ε outside [0, ½), or splits outside
    [1, n]. Traced rows that are not finite give NaN.
    """
    x = as_floats(x)
    _check_rows(x, epsilon, "robust_mean")
    check_finite(x, "x")
    if not 1 <= splits <= max(1, x.shape[0]):
        raise ValueError(f"splits={splits} must lie between 1 and the number of rows, {x.shape[0]}.")
    if splits == 1:
        return filter_mean(x, epsilon, covariance=covariance, max_steps=max_steps).mean
    size = x.shape[0] // splits
    parts = jnp.stack([x[i::splits][:size] for i in range(splits)])
    means = jax.vmap(lambda p: filter_mean(p, epsilon, covariance=covariance, max_steps=max_steps).mean)(
        parts
    )
    distances = jnp.linalg.norm(means[:, None] - means[None], axis=-1)
    central = means[jnp.argmin(jnp.median(distances, axis=1))]
    # A NaN in one part is not voted away: there is no status here to say so.
    return jnp.where(jnp.any(jnp.isnan(means)), jnp.nan, central)


def _covariance_problem(rows, epsilon, rank, doubt=0.0) -> FilterProblem:
    n = rows.shape[0]
    level = 2.0 * spectral_edge(rank * (rank + 1) / 2, n, rows.dtype)
    return FilterProblem(rows, epsilon, level, _budget(epsilon, doubt, n))


def filter_whitened(
    z: Float[Array, "n r"], epsilon: Float[Array, ""], rank: Int[Array, ""]
) -> Float[Array, " n"]:
    """The weights [n] of `robust_covariance` for rows centred at 0 that are about white on a span of that `rank`."""
    return CovarianceFilter().run(_covariance_problem(z, epsilon, rank), MAX_STEPS).state.weights


@eqx.filter_jit
def _run_covariance_filter(x, epsilon, assume_centered, max_steps, doubt):
    d = x.shape[1]
    # Scaled and centred before anything is squared, by what half of the rows cannot move.
    centre = jnp.zeros(d, x.dtype) if assume_centered else column_medians(x)
    size = typical_powers(x - centre)
    rows = in_units(x - centre, size)
    relative = unit_free_lengths(rows, epsilon)
    rows = jnp.where(epsilon > 0, shortened(rows, relative), rows)
    count = jnp.minimum(1.0, LONGEST_IN_SCALES / jnp.maximum(relative, 1.0))
    rank = row_span(rows, count**2).rank
    problem = _covariance_problem(rows, epsilon, rank, doubt)
    solver = CovarianceFilter(assume_centered)
    end = solver.run(problem, max_steps)
    weights = end.state.weights
    sigma = solver.extract(problem, end.state)
    covariance = sigma * size[:, None] * size
    span = row_span(solver.centred(rows, weights), weights)
    # Units beyond the precision's range: all directions are resolved, and yet their covariance is 0 or infinite.
    lost = ~jnp.isfinite(covariance) | ((covariance == 0) & (sigma != 0) & jnp.eye(d, dtype=bool))
    mean = centre if assume_centered else centre + weighted_mean(rows, weights) * size
    return RobustCovariance(
        covariance,
        *_symmetric_roots(span, size),
        span.rank,
        mean,
        weights,
        end.state.top,
        quadratic_top_bound(solver.whitened(rows, weights), weights, jax.random.key(0)),
        jnp.where(jnp.any(lost), Status.NONFINITE.array(), end.status),
        end.step,
    )


def _symmetric_roots(span: RowSpan, size: Float[Array, " d"]):
    """(Σ^{-1/2}, Σ^{1/2}) of Σ = SMS, S = diag(size), from the principal axes of M: Σ = CᵀC, and C is not squared."""
    unit = jnp.max(size)
    root = (span.axes * jnp.sqrt(span.variances) * (size / unit)[:, None]).T
    outer = row_span(root, jnp.full(root.shape[0], 1.0, root.dtype))
    deviations = unit * jnp.sqrt(outer.variances * root.shape[0])
    inverse = jnp.where(deviations > 0, 1.0 / jnp.where(deviations > 0, deviations, 1.0), 0.0)
    return matmul(outer.axes * inverse, outer.axes.T), matmul(outer.axes * deviations, outer.axes.T)


def robust_covariance(
    x: Float[Array, "n d"],
    epsilon: float | Float[Array, ""],
    *,
    assume_centered: bool = False,
    doubt: float | Float[Array, ""] = 0.0,
    max_steps: int = MAX_STEPS,
) -> RobustCovariance:
    """Covariance of rows of which an ε-fraction may be arbitrary (paper: RobCovEst, RobCovariance).

    The degree-2 filter of Diakonikolas et al. 2017 (`filterGaussianCov`), the practical stand-in for the
    sum-of-squares estimator that the paper cites: whiten by the current estimate, find the symmetric M that
    maximises the variance of ⟨yyᵀ, M⟩, lower the weights of the rows that stand out, repeat. It stops at the
    normal distribution's level 2(1 + √(r(r+1)/2n))², r the rank, or when 2εn of weight is gone. The d²×d² moment
    is never formed at any d: one application costs n·d². No correction is made for the clean tails that the filter
    takes: for normal data the result is up to a factor 1 − O(ε log 1/ε) too small.

    A rank-deficient covariance is no error: null directions are dropped from `whitener` and counted in `rank`.
    Columns are scaled by typical entries first, so that their units change neither weights nor `rank`, and rows over
    10⁴ times as long as the typical one are shortened. A covariance beyond the precision's range: status `nonfinite`.

    **Arguments:** `x` [n, d]; `epsilon` in [0, ½); `assume_centered`: the second moment E[xxᵀ] is wanted (as in
    Algorithm 1) instead of the covariance about a mean estimated from the same weights; `doubt` as in `filter_mean`.

    **Raises:** ValueError for a wrong shape or dtype, or ε outside [0, ½).
    """
    x = as_floats(x)
    _check_rows(x, epsilon, "robust_covariance")
    doubt = jnp.asarray(doubt, x.dtype)
    return _run_covariance_filter(x, as_epsilon(epsilon, x.dtype), assume_centered, max_steps, doubt)
