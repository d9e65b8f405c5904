"""Covariance that survives an ε-fraction of arbitrary rows."""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.checks import as_epsilon, as_floats
from robust_rlhf_jax.kernels.divisors import positive_or_one
from robust_rlhf_jax.kernels.linalg import matmul, weighted_mean, weighted_second_moment
from robust_rlhf_jax.kernels.spectral import quadratic_scores, quadratic_top_bound
from robust_rlhf_jax.kernels.units import (
    LONGEST_IN_SCALES,
    column_medians,
    in_units,
    shortened,
    typical_powers,
    unit_free_lengths,
)

from .far_rows import moved_to_zero
from .filters import MAX_STEPS, Filter, FilterProblem, FilterState, budget, check_rows, spectral_edge
from .span import RowSpan, row_span

# A whitened row longer than this is scored as if it were so long: fourth powers of it must stay finite.
LONGEST_SCORED = 1e6


class CovarianceFilter(Filter):
    """Degree-2 filter: whiten by the current estimate, remove where the covariance of yyᵀ is largest."""

    follows_moments: ClassVar[bool] = False
    assume_centered: bool = eqx.field(static=True, default=True)

    def look(self, problem: FilterProblem, weights: Float[Array, " n"], last: FilterState):
        return FilterState(weights, *quadratic_scores(self.whitened(problem.x, weights), weights))

    def extract(self, problem: FilterProblem, state: FilterState) -> Float[Array, "d d"]:
        return weighted_second_moment(self.centred(problem.x, state.weights), state.weights)

    def whitened(self, x: Float[Array, "n d"], weights: Float[Array, " n"]):
        """The rows that are scored."""
        centred = self.centred(x, weights)
        y = row_span(centred, weights).whiten(centred)
        return shortened(y, jnp.linalg.norm(y, axis=1), LONGEST_SCORED)

    def centred(self, x: Float[Array, "n d"], weights: Float[Array, " n"]):
        return x if self.assume_centered else x - weighted_mean(x, weights)


class RobustCovariance(eqx.Module):
    """A robust covariance, its rank, and the whitening that it gives.

    `covariance` [d, d]; `whitener` Σ^{-1/2} and `colourer` Σ^{1/2} [d, d] on the identifiable subspace, zero off
    it; `rank` of that subspace; `mean` [d] (zero when centred data were assumed); `weights` [n];
    `top_eigenvalue` of the covariance of yyᵀ, y whitened (2 for normal data), from twelve power steps, which are up to
    9 % low; `top_bound`: what it exceeds with probability .01 at most, 2 to 6 % high; `status`; `steps`.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import moments
    >>> x = jax.random.normal(jax.random.key(0), (100, 2)).at[:, 1].set(0.0)
    >>> found = moments.robust_covariance(x, 0.1)
    >>> int(found.rank), found.whitener.shape  # the second column does not vary
    (1, (2, 2))
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


def _covariance_problem(
    rows: Float[Array, "n d"],
    epsilon: Float[Array, ""],
    rank: Int[Array, ""],
    doubt: float | Float[Array, ""] = 0.0,
    counted: Float[Array, " n"] | None = None,
) -> FilterProblem:
    mass = None if counted is None else jnp.sum(counted)
    n = len(rows) if mass is None else mass
    level = 2.0 * spectral_edge(rank * (rank + 1) / 2, n, rows.dtype)
    return FilterProblem(rows, epsilon, level, budget(epsilon, doubt, n), start=counted, mass=mass)


def filter_whitened(
    z: Float[Array, "n r"], epsilon: Float[Array, ""], rank: Int[Array, ""], counted: Float[Array, " n"]
) -> Float[Array, " n"]:
    """The weights [n] of `robust_covariance` for rows centred at 0 that are about white on a span of that `rank`.

    `counted` [n]: 1 for the rows that count, 0 for those that are as good as absent.
    """
    problem = _covariance_problem(z, epsilon, rank, counted=counted)
    return CovarianceFilter().run(problem, MAX_STEPS).state.weights


@eqx.filter_jit
def _run_covariance_filter(
    x: Float[Array, "n d"],
    epsilon: Float[Array, ""],
    assume_centered: bool,
    max_steps: int,
    doubt: float | Float[Array, ""],
):
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
    bound = quadratic_top_bound(solver.whitened(rows, weights), weights, jax.random.key(0))
    return RobustCovariance(
        covariance,
        *_symmetric_roots(span, size),
        span.rank,
        mean,
        weights,
        end.state.top,
        # In few dimensions both are the eigenvalue itself, and rounding puts either first.
        jnp.maximum(bound, end.state.top),
        jnp.where(jnp.any(lost), Status.NONFINITE.array(), end.status),
        end.step,
    )


def _symmetric_roots(span: RowSpan, size: Float[Array, " d"]):
    """(Σ^{-1/2}, Σ^{1/2}) of Σ = SMS, S = diag(size), from the principal axes of M: Σ = CᵀC, and C is not squared."""
    unit = jnp.max(size)
    root = (span.axes * jnp.sqrt(span.variances) * (size / unit)[:, None]).T
    outer = row_span(root, jnp.full(len(root), 1.0, root.dtype))
    deviations = unit * jnp.sqrt(outer.variances * len(root))
    inverse = jnp.where(deviations > 0, 1.0 / positive_or_one(deviations), 0.0)
    return matmul(outer.axes * inverse, outer.axes.T), matmul(outer.axes * deviations, outer.axes.T)


def robust_covariance(
    x: Float[ArrayLike, "n d"],
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

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax.moments import robust_covariance
    >>> x = jax.random.normal(jax.random.key(0), (100, 2)).at[:5].set(50.0)
    >>> bool(robust_covariance(x, 0.1).covariance.max() < 2)
    True
    """
    rows = as_floats(x)
    check_rows(rows, epsilon, "robust_covariance")
    rows, centre = (rows, 0.0) if assume_centered else moved_to_zero(x)
    doubt = jnp.asarray(doubt, rows.dtype)
    found = _run_covariance_filter(rows, as_epsilon(epsilon, rows.dtype), assume_centered, max_steps, doubt)
    return dataclasses.replace(found, mean=found.mean + centre)
