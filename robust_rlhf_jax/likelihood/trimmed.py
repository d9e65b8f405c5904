"""Trimmed maximum likelihood by alternating optimisation (paper: Algorithm 2)."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from robust_rlhf_jax._iterate import Status, iterate, worst_status
from robust_rlhf_jax.checks import as_epsilon, as_floats, check_epsilon, check_key, check_labels, is_traced
from robust_rlhf_jax.kernels.divisors import positive_or_one
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.kernels.quantile import keep_top
from robust_rlhf_jax.kernels.units import in_units, typical_powers
from robust_rlhf_jax.moments.influence import bounded_rows
from robust_rlhf_jax.row_order import check_rows

from .geometry import RowGeometry, dense_geometry, wide_geometry
from .logistic_problem import LogisticProblem, begin
from .logistic_regression import NEWTON_LIMIT, fit_logistic
from .separation import all_won, some_direction_flat

MAX_ROUNDS = 100


class TrimmedProblem(eqx.Module):
    """max over ‖θ‖ ≤ radius and 0 ≤ w ≤ capacity, Σw = (1−ε)Σcapacity, of Σ_n w_n log P_θ(o_n|x_n)/Σw.

    Above `newton_limit` parameters `second_moment` and `projector` are None, and the start lies in the span.
    """

    x: Float[Array, "n k"]
    labels: Float[Array, " n"]
    capacity: Float[Array, " n"]
    epsilon: Float[Array, ""]
    radius: Float[Array, ""]
    second_moment: Float[Array, "k k"] | None
    row_size: Float[Array, ""]
    projector: Float[Array, "k k"] | None
    start: Float[Array, " k"]
    tolerance: Float[Array, ""]
    column_size: Float[Array, " k"] | None
    newton_limit: int = eqx.field(static=True, default=NEWTON_LIMIT)

    def most_likely(self, margins: Float[Array, " n"]) -> Float[Array, " n"]:
        """Ŝ_t as weights: the (1−ε)-fraction with the largest likelihood under θ; ties share."""
        return keep_top(margins, self.capacity, (1.0 - self.epsilon) * jnp.sum(self.capacity))

    def inner(
        self,
        weights: Float[Array, " n"],
        start: Float[Array, " k"],
        curvature: Float[Array, "k k"] | None = None,
        margins: Float[Array, " n"] | None = None,
    ) -> LogisticProblem:
        """Maximise over θ at these weights."""
        return LogisticProblem(
            self.x,
            self.labels,
            weights,
            self.radius,
            self.projector,
            start,
            curvature,
            self.row_size,
            margins,
            self.column_size,
        )

    def objective(self, margins: Float[Array, " n"], weights: Float[Array, " n"]) -> Float[Array, ""]:
        return matmul(weights, jax.nn.log_sigmoid(margins)) / jnp.sum(weights)


class TrimmedState(eqx.Module):
    """θ_t, the margins o_nθ_tᵀx_n, its Ŝ_t, the objective on it, the last gain and what the inner solver reported."""

    theta: Float[Array, " k"]
    margins: Float[Array, " n"]
    weights: Float[Array, " n"]
    objective: Float[Array, ""]
    gain: Float[Array, ""]
    gradient_norm: Float[Array, ""]
    newton_steps: Int[Array, ""]
    curvature: Float[Array, "k k"] | None
    inner_status: Int[Array, ""]


class Alternation(eqx.Module):
    """Maximise over θ given Ŝ, then over Ŝ given θ; the objective never falls."""

    def init(self, problem: TrimmedProblem, *, key: PRNGKeyArray | None) -> TrimmedState:
        start, margins, _, _ = begin(problem.inner(problem.capacity, problem.start))
        weights = problem.most_likely(margins)
        infinity = jnp.asarray(jnp.inf, problem.x.dtype)
        return TrimmedState(
            theta=start,
            margins=margins,
            weights=weights,
            objective=problem.objective(margins, weights),
            gain=infinity,
            gradient_norm=infinity,
            newton_steps=jnp.zeros((), jnp.int32),
            # At θ = 0 every pair has curvature ¼xxᵀ, a bound on it anywhere: a safe first model.
            curvature=None if problem.second_moment is None else 0.25 * problem.second_moment,
            inner_status=Status.CONVERGED.array(),
        )

    def step(self, problem: TrimmedProblem, state: TrimmedState, *, key: PRNGKeyArray | None) -> TrimmedState:
        inner = problem.inner(state.weights, state.theta, state.curvature, state.margins)
        fit = fit_logistic(inner, newton_limit=problem.newton_limit)
        weights = problem.most_likely(fit.margins)
        return TrimmedState(
            theta=fit.theta,
            margins=fit.margins,
            weights=weights,
            objective=problem.objective(fit.margins, weights),
            gain=fit.value - state.objective,
            gradient_norm=fit.stationarity,
            newton_steps=state.newton_steps + fit.steps,
            curvature=fit.curvature,
            inner_status=fit.status,
        )

    def terminate(self, problem: TrimmedProblem, state: TrimmedState) -> Int[Array, ""]:
        small = state.gain <= problem.tolerance
        return jnp.where(small, Status.CONVERGED.array(), Status.RUNNING.array())


class TrimmedFit(eqx.Module):
    """Result of `trimmed_mle`.

    `theta` [k]; `weights` [n]: 1 for kept pairs, 0 for trimmed ones; `objective`: mean log-likelihood of the kept
    pairs; `gradient_norm`: projected gradient of the last inner problem, in units of the columns; `rank`: dimension of
    the span of x; `rounds`, `newton_steps`: alternations and Newton (or L-BFGS) steps of the start that won, `start`:
    its index; `status`.

    **Example:**

    >>> import jax, jax.numpy as jnp
    >>> from robust_rlhf_jax import Status, likelihood
    >>> x = jax.random.normal(jax.random.key(0), (100, 2))
    >>> fit = likelihood.trimmed_mle(x, jnp.sign(x[:, 0]), 0.0, radius=3.0)
    >>> Status(int(fit.status)).name, round(float(jnp.linalg.norm(fit.theta)), 2)
    ('CONVERGED', 3.0)
    """

    theta: Float[Array, " k"]
    weights: Float[Array, " n"]
    objective: Float[Array, ""]
    gradient_norm: Float[Array, ""]
    rank: Int[Array, ""]
    rounds: Int[Array, ""]
    newton_steps: Int[Array, ""]
    start: Int[Array, ""]
    status: Int[Array, ""]


def default_tolerance(dtype: Any) -> float:
    """Gain in mean log-likelihood that ends the alternation: what the precision resolves, not the paper's ε²."""
    return 16 * float(jnp.finfo(dtype).eps)


def row_normalised_start(problem: TrimmedProblem, length: Float[Array, " n"]) -> Float[Array, " k"]:
    """Plain fit to the rows z/‖z‖, z whitened and of the given lengths: no row can pull harder than another.

    A bounded-influence start for the alternation, which is trapped near the plain fit when rows are replaced
    (Künsch, Stefanski & Carroll 1989 for weights that bound leverage in logistic regression).
    """
    return _plain_fit(problem, problem.capacity / positive_or_one(length))


def _random_subset_starts(key: PRNGKeyArray, problem: TrimmedProblem, count: int) -> Float[Array, "m k"]:
    """Plain fits to random tenths of the data."""

    def fit(k: PRNGKeyArray):
        picked = jax.random.bernoulli(k, 0.1, problem.labels.shape) * problem.capacity
        return _plain_fit(problem, jnp.where(jnp.sum(picked) > 0, picked, problem.capacity))

    return jax.lax.map(fit, jax.random.split(key, count))


def _plain_fit(problem: TrimmedProblem, weights: Float[Array, " n"]) -> Float[Array, " k"]:
    inner = problem.inner(weights, jnp.zeros_like(problem.start))
    return fit_logistic(inner, newton_limit=problem.newton_limit).theta


@eqx.filter_jit
def _fit(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    capacity: Float[Array, " n"],
    epsilon: Float[Array, ""],
    radius: Float[Array, ""],
    tolerance: Float[Array, ""],
    starts: Float[Array, "m k"] | None,
    key: Any,
    robust_start: bool,
    n_random: int,
    max_rounds: int,
    newton_limit: int,
):
    # One unit for all columns, a power of two, which rounds nothing: what is squared below stays in range.
    unit = jnp.max(typical_powers(x))
    x = bounded_rows(in_units(x, unit), epsilon)
    radius = jnp.minimum(radius * unit, jnp.finfo(x.dtype).max ** 0.5)
    zero = jnp.zeros(x.shape[1], x.dtype)
    describe = dense_geometry if x.shape[1] <= newton_limit else wide_geometry
    given = zero[None] if starts is None else starts * unit
    geometry = describe(x, jnp.maximum(capacity, 1e-6), epsilon, given, robust_start)
    problem = TrimmedProblem(
        x,
        labels,
        capacity,
        epsilon,
        radius,
        geometry.moment,
        geometry.row_size,
        geometry.projector,
        zero,
        tolerance,
        geometry.column_size,
        newton_limit,
    )

    def run(start: Float[Array, " k"]):
        local = eqx.tree_at(lambda p: p.start, problem, start)
        return iterate(Alternation(), local, max_steps=max_rounds)

    # One start after the other: batched, every start would pay for every other's curvature.
    ends = jax.lax.map(run, _all_starts(problem, geometry, key, n_random))
    best = jnp.argmax(jnp.where(ends.status == Status.NONFINITE, -jnp.inf, ends.state.objective))
    end = jax.tree.map(lambda leaf: leaf[best], ends)
    return TrimmedFit(
        theta=end.state.theta / unit,
        weights=end.state.weights,
        objective=end.state.objective,
        gradient_norm=end.state.gradient_norm,
        rank=geometry.rank,
        rounds=end.step,
        newton_steps=end.state.newton_steps,
        start=best,
        status=worst_status(end.status, end.state.inner_status, _separation(problem, end.state)),
    )


def _all_starts(
    problem: TrimmedProblem, geometry: RowGeometry, key: Any, n_random: int
) -> Float[Array, "m k"]:
    """Those of the geometry, the fit to rows of one length where it is robust, and fits to random tenths."""
    rows = [geometry.starts]
    if geometry.lengths is not None:
        rows.append(row_normalised_start(problem, geometry.lengths)[None])
    if n_random:
        rows.append(_random_subset_starts(key, problem, n_random))
    return jnp.concatenate(rows)


def _separation(problem: TrimmedProblem, state: TrimmedState) -> Int[Array, ""]:
    """Status `separable` where the kept pairs leave a direction of θ without a best length, else `converged`."""
    found = all_won(problem.x, state.weights, state.margins)
    if problem.column_size is not None:
        found |= some_direction_flat(problem.x, state.weights, state.margins, problem.epsilon)
    return jnp.where(found, Status.SEPARABLE.array(), Status.CONVERGED.array())


def trimmed_mle(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: float | Float[Array, ""],
    *,
    radius: float | Float[Array, ""],
    weights: Float[Array, " n"] | None = None,
    starts: Float[Array, "m k"] | None = None,
    robust_start: bool = True,
    n_random_starts: int = 0,
    key: PRNGKeyArray | None = None,
    tolerance: float | Float[Array, ""] | None = None,
    max_rounds: int = MAX_ROUNDS,
    newton_limit: int = NEWTON_LIMIT,
) -> TrimmedFit:
    """Likelihood of the best (1−ε)-fraction of the pairs, maximised over ‖θ‖₂ ≤ radius (paper: Algorithm 2).

    Alternates Ŝ_t = the most likely (1−ε)n pairs under θ_t and θ_{t+1} = argmax of the likelihood on Ŝ_t (concave:
    damped Newton, or L-BFGS where k > `newton_limit`; exact ball constraint) until the gain on Ŝ_t is at most
    `tolerance`. It finds a stationary point, not the optimum; of several starts the one with the best trimmed
    likelihood wins. At ε = 0 it is the maximum-likelihood fit.

    **Arguments:** `x` [n, k] differences φ(τ¹) − φ(τ⁰); `labels` [n] ±1; `epsilon` in [0, ½); `radius` > 0 (the
    paper's is √(Hd)); `weights` [n] in [0, 1]: what each pair may count at most (a filter's survivors);
    `starts` [m, k] (default: θ₁ = 0, the paper's); `robust_start` adds the row-normalised fit,
    `n_random_starts` plain fits to random tenths (needs `key`). `tolerance`: mean gain that ends it; the default
    is the precision's floor, the paper's value is ε² (reached after one or two rounds at practical ε). Above
    `newton_limit` one `eigh` of size min(n, k) gives the rank, and every fit costs a few products with x a step.

    **Returns:** `TrimmedFit`; its status is `separable` where θ explains every pair that it keeps, or all that show
    some direction with near certainty: only the ball, or rounding, then gives it a length. (In a ball too small for
    that θ is as long as the ball allows, and the status `converged`.)

    **Raises:** ValueError for wrong shapes, rows in two orders, no pairs, ε outside [0, ½), labels other than ±1,
    weights outside [0, 1] or all 0, radius ≤ 0, fewer than no random starts, some without a key, or what is
    not one key.

    **Example:**

    >>> import jax, jax.numpy as jnp
    >>> from robust_rlhf_jax.likelihood import trimmed_mle
    >>> x = jax.random.normal(jax.random.key(0), (100, 2))
    >>> labels = jnp.sign(x[:, 0] + x[:, 1]).at[:10].multiply(-1.0)
    >>> fit = trimmed_mle(x, labels, 0.1, radius=3.0)
    >>> fit.weights[:10].tolist(), int(fit.rank)
    ([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], 2)
    """
    check_rows(x=x, labels=labels, weights=weights)
    x, labels = as_floats(x), jnp.asarray(labels)
    weights, starts = (None if given is None else jnp.asarray(given) for given in (weights, starts))
    _check_arguments(x, labels, epsilon, radius, weights, starts, n_random_starts, key)
    dtype = x.dtype
    return _fit(
        x,
        labels.astype(dtype),
        jnp.ones(len(x), dtype) if weights is None else weights.astype(dtype),
        as_epsilon(epsilon, dtype),
        jnp.asarray(radius, dtype),
        jnp.asarray(default_tolerance(dtype) if tolerance is None else tolerance, dtype),
        None if starts is None else starts.astype(dtype),
        key,
        robust_start,
        n_random_starts,
        max_rounds,
        newton_limit,
    )


def plain_mle(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    weights: Float[Array, " n"] | None = None,
    *,
    radius: float | Float[Array, ""],
) -> TrimmedFit:
    """Maximum likelihood of weighted pairs on the ball: `trimmed_mle` at ε = 0, from one start."""
    return trimmed_mle(x, labels, 0.0, radius=radius, weights=weights, robust_start=False)


def _check_arguments(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: float | Float[Array, ""],
    radius: float | Float[Array, ""],
    weights: Float[Array, " n"] | None,
    starts: Float[Array, "m k"] | None,
    n_random: int,
    key: PRNGKeyArray | None,
):
    if x.ndim != 2 or not jnp.issubdtype(x.dtype, jnp.floating):
        raise ValueError(f"trimmed_mle takes floating-point x of shape [n, k]; got {x.dtype} {x.shape}.")
    if not x.size:
        raise ValueError(f"x has shape {x.shape}: give one row and one column or more.")
    if labels.shape != x.shape[:1]:
        raise ValueError(f"labels has shape {labels.shape}; x has {len(x)} rows: give one label a row.")
    if weights is not None and weights.shape != x.shape[:1]:
        raise ValueError(f"weights has shape {weights.shape}; x has {len(x)} rows: give one weight a row.")
    if weights is not None and not is_traced(weights):
        values = np.asarray(weights)
        if not ((values >= 0) & (values <= 1)).all() or not values.any():
            raise ValueError(
                "weights must lie in [0, 1], and not all be 0: give what each pair may count at most."
            )
    if starts is not None and (starts.ndim != 2 or starts.shape[1] != x.shape[1]):
        raise ValueError(f"starts has shape {starts.shape}; it must be [m, k] with k = {x.shape[1]}.")
    if not is_traced(radius) and not float(radius) > 0:
        raise ValueError(f"radius={radius} must be positive.")
    if not isinstance(n_random, int | np.integer) or n_random < 0:
        raise ValueError(f"n_random_starts={n_random} must be a whole number, 0 or more.")
    if n_random and key is None:
        raise ValueError(f"n_random_starts={n_random} needs a key: pass key=jax.random.key(seed).")
    if key is not None:
        check_key(key)
    check_epsilon(epsilon)
    check_labels(labels)
