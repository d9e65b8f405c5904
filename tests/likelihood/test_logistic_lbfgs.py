"""Limited-memory fits on a ball against scikit-learn (free), SciPy (constrained) and the Newton solver."""

import dataclasses
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.special
from sklearn.linear_model import LogisticRegression

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.kernels.ball import newton_point
from robust_rlhf_jax.likelihood import LogisticProblem, fit_logistic, logistic_lbfgs, trimmed_mle
from robust_rlhf_jax.likelihood.logistic_lbfgs import MEMORY, PATIENCE, bfgs_matrix, orthonormal_rows
from robust_rlhf_jax.likelihood.logistic_regression import NEWTON_LIMIT
from robust_rlhf_jax.moments.span import row_span

from .logistic_reference import gradient, mean_likelihood, slsqp

PRECISIONS = [False, True]


@jax.jit
def lbfgs(problem):
    return fit_logistic(problem, newton_limit=0)


by_default = jax.jit(fit_logistic)


def problem_of(x, labels, weights, radius=100.0, start=None, projector=None):
    """In the default precision of the moment; without a projector, which L-BFGS must not need."""
    start = np.zeros(x.shape[1]) if start is None else start
    arrays = map(jnp.asarray, (x, labels, weights, float(radius)))
    row_size = jnp.asarray(np.sqrt(np.average(np.sum(x**2, axis=1), weights=weights)))
    projector = None if projector is None else jnp.asarray(projector)
    return LogisticProblem(*arrays, projector, jnp.asarray(start), None, row_size)


def fit(*data, **options):
    return lbfgs(problem_of(*data, **options))


def sample(n=200, k=4, seed=0, condition=1.0):
    """Feature j has size condition^(−j/(k−1)) and its effect is of order 1."""
    rng = np.random.default_rng(seed)
    sizes = condition ** -np.linspace(0, 1, k)
    x, theta = rng.normal(size=(n, k)) * sizes, rng.normal(size=k) / sizes
    labels = np.where(rng.uniform(size=n) < scipy.special.expit(x @ theta / np.sqrt(k)), 1.0, -1.0)
    return x, labels, rng.uniform(0.1, 1.0, n)


def separable(n=200, k=4, seed=2):
    x, _, weights = sample(n, k, seed)
    return x, np.sign(x @ np.linspace(1, -0.6, k)), weights


@pytest.mark.parametrize(("wide", "tolerance"), [(False, 3e-4), (True, 1e-7)])
def test_free_fit_is_that_of_scikit_learn(wide, tolerance):
    data = x, labels, weights = sample()
    model = LogisticRegression(C=1e12, fit_intercept=False, tol=1e-12, max_iter=10_000)
    model.fit(x, labels, sample_weight=weights)
    with jax.enable_x64(wide):
        found = fit(*data)
        assert found.theta.dtype == found.value.dtype == (jnp.float64 if wide else jnp.float32)
    np.testing.assert_allclose(found.theta, model.coef_[0], atol=tolerance)
    np.testing.assert_allclose(found.value, mean_likelihood(model.coef_[0], *data), rtol=1e-6)
    np.testing.assert_allclose(found.margins, labels * (x @ np.asarray(found.theta)), atol=1e-5)
    slope = np.linalg.norm(gradient(np.asarray(found.theta, float), *data))
    np.testing.assert_allclose(found.stationarity, slope, rtol=1e-2, atol=1e-14 if wide else 1e-6)
    assert found.stationarity < (1e-12 if wide else 1e-5)
    assert found.status == Status.CONVERGED
    assert found.curvature is None
    assert 2 <= found.steps <= 25


@pytest.mark.parametrize(("wide", "tolerance"), [(False, 1e-4), (True, 1e-6)])
@pytest.mark.parametrize("share", [0.1, 0.6, 0.95])
def test_binding_ball_against_scipy(wide, tolerance, share):
    data = sample(seed=1)
    radius = share * np.linalg.norm(slsqp(*data, 1e3))
    expected = slsqp(*data, radius)
    with jax.enable_x64(wide):
        found = fit(*data, radius=radius)
    np.testing.assert_allclose(found.theta, expected, atol=tolerance * radius)
    np.testing.assert_allclose(np.linalg.norm(found.theta), radius, rtol=1e-6)
    # KKT: the gradient points along θ.
    theta = np.asarray(found.theta, np.float64)
    slope = gradient(theta, *data)
    assert slope @ theta / np.linalg.norm(slope) / radius > 1 - (1e-12 if wide else 1e-5)
    assert found.stationarity < (1e-12 if wide else 1e-5)
    assert found.status == Status.CONVERGED


@pytest.mark.parametrize(("wide", "tolerance"), [(False, 1e-2), (True, 1e-6)])
@pytest.mark.parametrize("radius", [1.0, 10.0, 1e6])
@pytest.mark.parametrize("condition", [1.0, 30.0])
def test_it_agrees_with_newton_in_forty_dimensions(wide, tolerance, radius, condition):
    """More parameters than the memory holds pairs, free and constrained, well and badly scaled."""
    data = sample(1000, 40, 3, condition)
    with jax.enable_x64(wide):
        expected = by_default(problem_of(*data, radius=radius, projector=np.eye(40)))
        found = fit(*data, radius=radius)
    gap = np.linalg.norm(found.theta - expected.theta) / np.linalg.norm(expected.theta)
    assert gap < tolerance * (1 if condition > 1 else 0.1)
    assert found.value >= expected.value - (1e-14 if wide else 2e-6)
    assert found.status == Status.CONVERGED


@pytest.mark.parametrize(("wide", "tolerance"), [(False, 1e-3), (True, 1e-5)])
@pytest.mark.parametrize("radius", [3.0, 20.0])
def test_separable_data_end_on_the_sphere(wide, tolerance, radius):
    data = separable()
    expected = slsqp(*data, radius)
    with jax.enable_x64(wide):
        found = fit(*data, radius=radius)
    np.testing.assert_allclose(np.linalg.norm(found.theta), radius, rtol=1e-6)
    np.testing.assert_allclose(found.theta, expected, atol=tolerance * radius)
    assert found.value >= mean_likelihood(expected, *data) - 1e-6
    assert found.status == Status.CONVERGED


@pytest.mark.parametrize("wide", PRECISIONS)
@pytest.mark.parametrize("radius", [10.0, 100.0, 1e4])
def test_fewer_rows_than_parameters(wide, radius):
    """Separable, on the sphere even where every likelihood is 1 in the precision long before.

    θ stays in the span of the rows although nothing projects it there.
    """
    rng = np.random.default_rng(4)
    x, labels, weights = rng.normal(size=(30, 60)), rng.choice([-1.0, 1.0], 30), np.ones(30)
    with jax.enable_x64(wide):
        found = fit(x, labels, weights, radius=radius)
    theta = np.asarray(found.theta, np.float64)
    off = theta - np.linalg.pinv(x) @ (x @ theta)
    assert np.linalg.norm(off) < (1e-11 if wide else 1e-3) * radius
    np.testing.assert_allclose(np.linalg.norm(theta), radius, rtol=1e-6)
    assert (labels * (x @ theta) > 0).all()
    assert found.status == Status.CONVERGED


@pytest.mark.parametrize("wide", PRECISIONS)
def test_a_gradient_below_the_rounding_of_theta_is_followed(wide):
    """Far inside a large ball θ + g = θ in the working precision, yet the maximiser is on the sphere."""
    with jax.enable_x64(wide):
        found = fit(*separable(), radius=1000.0)
    np.testing.assert_allclose(np.linalg.norm(found.theta), 1000.0, rtol=1e-6)
    assert found.status == Status.CONVERGED


def test_no_ball_at_all(x64):
    data = sample()
    np.testing.assert_allclose(fit(*data, radius=np.inf).theta, fit(*data).theta, atol=1e-10)


def test_far_starts_reach_the_same_optimum(x64):
    data = sample(seed=5)
    expected = fit(*data).theta
    for direction in (np.ones(4), np.array([1.0, -1.0, 1.0, -1.0])):
        found = fit(*data, start=40.0 * direction)
        np.testing.assert_allclose(found.theta, expected, atol=1e-7)
        assert found.status == Status.CONVERGED


def test_a_given_projector_moves_the_start_into_the_span(x64):
    x, labels, weights = sample(seed=6)
    half = np.diag([1.0, 1.0, 0.0, 0.0])
    start = np.array([1.0, -1.0, 0.0, 2.5])
    found = fit(x @ half, labels, weights, start=start, projector=half).theta
    np.testing.assert_array_equal(found[2:], 0.0)
    np.testing.assert_allclose(found, fit(x @ half, labels, weights).theta, atol=1e-7)


@pytest.mark.parametrize("wide", PRECISIONS)
def test_vmap_equals_a_loop_and_a_bad_lane_stays_alone(wide):
    """Free, constrained, separable and corrupted side by side."""
    data = [sample(), sample(seed=1), separable(), sample(seed=7)]
    data[3][0][5, 1] = np.nan
    with jax.enable_x64(wide):
        lanes = [problem_of(*d, radius=r) for d, r in zip(data, (100.0, 0.3, 20.0, 5.0), strict=True)]
        together = jax.jit(jax.vmap(lbfgs))(jax.tree.map(lambda *leaves: jnp.stack(leaves), *lanes))
        alone = [lbfgs(lane) for lane in lanes]
    for i in range(3):
        np.testing.assert_allclose(together.theta[i], alone[i].theta, rtol=1e-9 if wide else 1e-3, atol=1e-4)
        np.testing.assert_allclose(together.value[i], alone[i].value, rtol=1e-9 if wide else 1e-4)
    assert [Status(int(s)) for s in together.status] == [Status.CONVERGED] * 3 + [Status.NONFINITE]
    assert alone[3].status == Status.NONFINITE


def test_jit_equals_eager_and_a_new_radius_compiles_nothing(x64, count_compilations):
    first, second = (problem_of(*sample(), radius=r) for r in (0.7, 0.9))
    compiled = lbfgs(first)
    with count_compilations() as count:
        lbfgs(second)
    assert count.compiled == count.traced == []
    eager = fit_logistic(first, newton_limit=0)
    np.testing.assert_allclose(eager.theta, compiled.theta, rtol=1e-10)


def test_step_limit_is_reported(x64):
    found = jax.jit(lambda p: fit_logistic(p, 2, newton_limit=0))(problem_of(*sample()))
    assert found.status == Status.MAX_STEPS
    assert found.steps == 2
    assert found.stationarity > 1e-6


@pytest.mark.parametrize("weights", [np.ones(200), np.zeros(200)])
def test_rows_of_zeros_leave_the_start_and_no_weight_at_all_is_nonfinite(weights):
    x, labels, _ = sample()
    found = lbfgs(LogisticProblem(*map(jnp.asarray, (0 * x, labels, weights, 1.0)), None, jnp.zeros(4)))
    np.testing.assert_array_equal(found.theta, 0.0)
    assert found.status == (Status.CONVERGED if weights.any() else Status.NONFINITE)


@pytest.mark.parametrize("wide", PRECISIONS)
def test_basis_is_orthonormal_and_spans_the_rows(wide):
    rng = np.random.default_rng(8)
    rows = rng.normal(size=(9, 6)) * np.logspace(0, -9, 9)[:, None]  # three too many, of all sizes
    rows[2], rows[4] = 0.0, 3.0 * rows[0] - rows[1]
    with jax.enable_x64(wide):
        basis = jax.jit(orthonormal_rows)(jnp.asarray(rows))
    basis = np.asarray(basis, np.float64)
    kept = np.linalg.norm(basis, axis=1) > 0.5
    np.testing.assert_array_equal(kept, [True, True, False, True, False, True, True, True, False])
    tolerance = 1e-14 if wide else 2e-6
    np.testing.assert_allclose(basis @ basis.T, np.diag(kept.astype(float)), atol=tolerance)
    left = np.linalg.norm(rows - rows @ basis.T @ basis, axis=1)
    assert (left <= tolerance * np.linalg.norm(rows, axis=1)).all()


def test_matrix_meets_the_secant_equation_and_is_positive(x64):
    """By = s for the newest pair, and B is that of the inverse recursion of Liu & Nocedal (1989)."""
    rng = np.random.default_rng(9)
    root, scale = rng.normal(size=(5, 5)), 1.7
    moves = rng.normal(size=(3, 5))
    changes = moves @ root @ root.T
    moves[0], changes[0] = 0.0, 0.0  # an empty place
    b = np.asarray(bfgs_matrix(jnp.asarray(moves), jnp.asarray(changes), jnp.asarray(scale)))
    np.testing.assert_allclose(b @ moves[-1], changes[-1], rtol=1e-10)
    assert np.linalg.eigvalsh(b)[0] > 0
    inverse = np.eye(5) / scale
    for s, y in zip(moves[1:], changes[1:], strict=True):
        v = np.eye(5) - np.outer(y, s) / (s @ y)
        inverse = v.T @ inverse @ v + np.outer(s, s) / (s @ y)
    np.testing.assert_allclose(np.linalg.inv(b), inverse, rtol=1e-9, atol=1e-12)


def test_a_pair_that_curves_upwards_does_not_touch_the_matrix(x64):
    moves = np.random.default_rng(9).normal(size=(2, 5))
    changes = np.stack([-moves[0], 2.0 * moves[1]])
    b = [
        bfgs_matrix(jnp.asarray(m), jnp.asarray(c), 1.7)
        for m, c in ((moves, changes), (moves[1:], changes[1:]))
    ]
    np.testing.assert_array_equal(*b)


@pytest.mark.parametrize("wide", PRECISIONS)
@pytest.mark.parametrize("shape", [(80, 6), (20, 50)])
def test_span_of_the_rows_from_either_gram(wide, shape):
    n, k = shape
    rng = np.random.default_rng(10)
    x = rng.normal(size=(n, 4)) @ rng.normal(size=(4, k))
    weights, points = rng.uniform(0.1, 1.0, n), rng.normal(size=(3, k))
    with jax.enable_x64(wide):
        span = jax.jit(row_span)(jnp.asarray(x), jnp.asarray(weights))
        projected, lengths = span.project(jnp.asarray(points)), span.lengths(jnp.asarray(x))
    moment = (x.T * weights) @ x / weights.sum()
    inverse = np.linalg.pinv(moment, rcond=1e-9, hermitian=True)
    assert span.rank == 4
    tolerance = 1e-9 if wide else 1e-3
    np.testing.assert_allclose(projected, points @ np.linalg.pinv(x) @ x, atol=tolerance)
    np.testing.assert_allclose(lengths, np.sqrt(np.sum(x @ inverse * x, axis=1)), rtol=tolerance)


TRIMS = [pytest.param(200, 4, id="tall"), pytest.param(30, 50, id="wide", marks=pytest.mark.slow)]


@pytest.mark.slow
@pytest.mark.parametrize(("n", "k"), TRIMS)
def test_trimmed_fit_is_that_by_newton(n, k, x64):
    """Every kind of start, one of them off the span."""
    x, labels, _ = sample(n, k, seed=11)
    x[:, -1] = x[:, 0]  # a null direction
    options = {"radius": 2.0, "n_random_starts": 2, "key": jax.random.key(0), "starts": np.ones((1, k))}
    options["starts"][0, -1] = -3.0
    expected = trimmed_mle(jnp.asarray(x), jnp.asarray(labels), 0.1, **options)
    found = trimmed_mle(jnp.asarray(x), jnp.asarray(labels), 0.1, **options, newton_limit=2)
    np.testing.assert_allclose(found.theta, expected.theta, atol=1e-5)
    np.testing.assert_allclose(found.objective, expected.objective, rtol=1e-10)
    np.testing.assert_allclose(found.weights, expected.weights, atol=1e-4)
    np.testing.assert_allclose(found.theta[-1], found.theta[0], atol=1e-10)
    assert found.rank == expected.rank == min(n, k - 1)
    separable = n < k  # more parameters than pairs explain any labels
    assert found.status == expected.status == (Status.SEPARABLE if separable else Status.CONVERGED)


@pytest.mark.parametrize("radius", [1e6, 1e10, np.inf])
def test_separable_labels_are_named_whatever_the_ball(radius):
    """A ball that no step of float32 reaches: the fit gives up the way and says why."""
    x, labels, _ = separable()
    x, labels = jnp.asarray(x, jnp.float32), jnp.asarray(labels, jnp.float32)
    found = trimmed_mle(x, labels, 0.0, radius=radius, newton_limit=1)
    assert found.status == Status.SEPARABLE
    assert found.newton_steps < 200
    assert (labels * (x @ found.theta) > 0).all()


def test_trimmed_fit_reports_nan():
    x, labels, _ = sample(30, 6)
    x[3, 1] = np.nan
    assert (
        trimmed_mle(x.astype(np.float32), labels, 0.1, radius=2.0, newton_limit=2).status == Status.NONFINITE
    )


@pytest.mark.slow
def test_many_parameters():
    """k = 2100 by default takes the solver without k×k arrays, and the trimmed fit works on it."""
    n, k = 1000, 2100
    assert k > NEWTON_LIMIT
    rng = np.random.default_rng(12)
    x, theta = 2 * rng.normal(size=(n, k)) / np.sqrt(k), rng.normal(size=k)
    labels = np.where(rng.uniform(size=n) < scipy.special.expit(x @ theta), 1.0, -1.0)
    x, labels = jnp.asarray(x, jnp.float32), jnp.asarray(labels, jnp.float32)
    problem = LogisticProblem(x, labels, jnp.ones(n), jnp.asarray(46.0), None, jnp.zeros(k), None, 2.0)
    kept = [v.aval for e in jax.make_jaxpr(fit_logistic)(problem).jaxpr.eqns for v in e.outvars]
    assert all(np.prod(value.shape) < k * k for value in kept)
    began = time.perf_counter()
    plain = jax.block_until_ready(by_default(problem))
    seconds = time.perf_counter() - began
    found = trimmed_mle(x, labels, 0.1, radius=46.0, robust_start=False)
    for theta in (plain.theta, found.theta):
        np.testing.assert_allclose(np.linalg.norm(theta), 46.0, rtol=1e-6)  # fewer rows than parameters
    assert plain.status == Status.CONVERGED
    assert found.status == Status.SEPARABLE
    assert plain.curvature is None
    assert plain.stationarity < 1e-4
    assert found.objective >= plain.value
    assert found.rank == n
    assert seconds < 20  # compilation too


def test_downhill_no_step_is_taken(x64):
    """However short: the old point comes back, with a length of 0."""
    problem = problem_of(*sample())
    state = logistic_lbfgs.BallLBFGS().init(problem, key=None)
    scale, point = logistic_lbfgs.backtrack(problem, state, -state.gradient, 0.0)
    assert scale == 0
    for old, new in zip((state.theta, state.margins, state.value, state.gradient), point, strict=True):
        np.testing.assert_array_equal(new, old)


@pytest.mark.parametrize(("scale", "kept"), [(0.0, False), (0.5, True)])
def test_a_step_that_failed_empties_the_memory(scale, kept, x64):
    """A step that moved too little to measure leaves it as it was."""
    problem = problem_of(*sample()[:3])
    solver = logistic_lbfgs.BallLBFGS()
    state = solver.init(problem, key=None)
    state = solver.step(problem, state, key=None)
    assert np.any(state.moves != 0)
    here = (state.theta, state.margins, state.value, state.gradient)
    moves, changes, sigma = logistic_lbfgs._remember(problem, state, here, jnp.asarray(scale))
    np.testing.assert_array_equal(moves, state.moves * kept)
    np.testing.assert_array_equal(changes, state.changes * kept)
    assert sigma == state.scale


@pytest.mark.parametrize(("share", "taken"), [(0.98, False), (1.02, True)])
def test_a_pair_is_remembered_where_its_curvature_is_resolved(share, taken, x64):
    """Beyond four roundings of the gradient along the step: it comes last, the oldest goes, and σ = yᵀy/sᵀy."""
    problem = problem_of(*sample())
    memory = jnp.asarray(np.random.default_rng(1).normal(size=(2, MEMORY, 4)))
    state = logistic_lbfgs.BallLBFGS().init(problem, key=None)
    state = dataclasses.replace(state, moves=memory[0], changes=memory[1], scale=jnp.asarray(0.7))
    curvature = share * 4 * logistic_lbfgs._gradient_rounding(problem, state.margins)
    move, change = np.array([0.0, 2.0, 0.0, 0.0]), np.array([0.3, curvature, 0.0, 0.0])
    # A gradient of zero leaves the change as it is, to the last digit.
    state = dataclasses.replace(state, gradient=jnp.zeros(4))
    there = (state.theta + move, state.margins, state.value, -jnp.asarray(change))
    moves, changes, sigma = logistic_lbfgs._remember(problem, state, there, jnp.ones(()))
    for found, old, new in ((moves, memory[0], move), (changes, memory[1], change)):
        np.testing.assert_allclose(found, np.vstack([old[1:], new]) if taken else old, rtol=1e-12)
    np.testing.assert_allclose(sigma, change @ change / (2 * curvature) if taken else 0.7, rtol=1e-12)


@pytest.mark.slow
def test_a_pair_whose_change_underflows_is_not_remembered():
    """In float32 a change of 10⁻²³ has the square 0, and σ would be 0."""
    problem = problem_of(*(part.astype(np.float32) for part in separable()))
    state = logistic_lbfgs.BallLBFGS().init(problem, key=None)
    change = jnp.asarray([1e-23, 0.0, 0.0, 0.0])
    state = dataclasses.replace(
        state, gradient=jnp.zeros(4), margins=jnp.full(200, 80.0), scale=jnp.asarray(0.7)
    )
    there = (state.theta + jnp.asarray([1.0, 0.0, 0.0, 0.0]), state.margins, state.value, -change)
    moves, _, sigma = logistic_lbfgs._remember(problem, state, there, jnp.ones(()))
    np.testing.assert_array_equal(moves, 0.0)
    assert sigma == state.scale


def test_rounding_errors_are_those_of_the_weighted_sums(x64):
    """One of the gradient's, Σwσ(−m)‖x‖/Σw; four of the value's, Σw(|m|σ(−m) − log σ(m))/Σw."""
    problem, eps = problem_of(*sample()), np.finfo(np.float64).eps
    margins = np.random.default_rng(2).normal(size=200) * 3.0
    missed = scipy.special.expit(-margins)
    of_gradient = eps * float(problem.row_size) * np.average(missed, weights=problem.weights)
    terms = np.abs(margins) * missed - scipy.special.log_expit(margins)
    of_value = 4 * eps * np.average(terms, weights=problem.weights)
    arguments = problem, jnp.asarray(margins)
    np.testing.assert_allclose(logistic_lbfgs._gradient_rounding(*arguments), of_gradient, rtol=1e-12)
    np.testing.assert_allclose(logistic_lbfgs._value_rounding(*arguments), of_value, rtol=1e-12)


def test_the_first_curvature_bounds_that_along_the_gradient(x64):
    """A quarter of the weighted mean of (xᵀĝ)², 1 without a gradient."""
    problem, slope = problem_of(*sample()), np.array([3.0, -1.0, 2.0, 0.5])
    along = (np.asarray(problem.x) @ slope / np.linalg.norm(slope)) ** 2
    found = logistic_lbfgs._steepest_curvature(problem, jnp.asarray(slope))
    np.testing.assert_allclose(found, np.average(along, weights=problem.weights) / 4, rtol=1e-12)
    assert logistic_lbfgs._steepest_curvature(problem, jnp.zeros(4)) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("theta", "slope", "radius", "expected"),
    [
        ([0.6, 0.0], [2.0, 0.0], 1.0, 0.4 / 0.9 * 2.0),  # a step of 0.3 + 0.6 is cut to 0.4
        ([0.6, 0.0], [2.0, 0.0], 0.8, 0.2 / 0.8 * 2.0),  # a step of 0.8 is cut to 0.2
        ([0.6, 0.0], [0.0, 1e-20], 9.0, 1e-20),
        ([0.6, 0.0], [0.0, 3.0], np.inf, 3.0),
        ([0.6, 0.0], [0.0, 0.0], 1.0, 0.0),
    ],
)
def test_far_stationarity_is_that_of_a_long_step(theta, slope, radius, expected, x64):
    """As long as one over the rows' length, 0.3, and ‖θ‖ together, within the radius."""
    problem = problem_of(np.ones((1, 2)), np.ones(1), np.ones(1), radius, np.array(theta))
    problem = dataclasses.replace(problem, row_size=jnp.asarray(1 / 0.3))
    state = logistic_lbfgs.BallLBFGS().init(problem, key=None)
    state = dataclasses.replace(state, theta=jnp.asarray(theta), gradient=jnp.asarray(slope))
    np.testing.assert_allclose(logistic_lbfgs._far_stationarity(problem, state), expected, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "saturated"),
    [
        ({}, True),
        ({"margins": [0.5, 0.0]}, False),
        ({"margins": [0.5, -0.5]}, False),
        ({"margins": [0.5, -0.5], "weights": [1.0, 1e-3]}, False),
        ({"margins": [0.5, -0.5], "weights": [1.0, 0.0]}, True),
        ({"gradient": [0.0, 1e-10]}, False),
        ({"gradient": [0.0, 1e-30]}, True),  # its square is 0
        ({"theta": [0.0, 0.0]}, False),
        ({"theta": [9.98, 0.0]}, True),
        ({"theta": [9.995, 0.0]}, False),  # on the sphere, nearly
        ({"radius": np.inf}, False),
    ],
)
def test_saturated_is_who_explains_all_pairs_inside_the_ball(change, saturated):
    of = {
        "theta": [0.5, 0.0],
        "margins": [0.5, 0.5],
        "gradient": [0.0, 0.0],
        "weights": [1.0, 1.0],
        "radius": 10.0,
    }
    of = {name: jnp.asarray(value, jnp.float32) for name, value in (of | change).items()}
    problem = LogisticProblem(
        jnp.ones((2, 2)), jnp.ones(2), of.pop("weights"), of.pop("radius"), None, jnp.zeros(2)
    )
    state = dataclasses.replace(logistic_lbfgs.BallLBFGS().init(problem, key=None), **of)
    assert logistic_lbfgs._is_saturated(problem, state) == saturated


@pytest.mark.parametrize(
    ("share", "idle", "done"),
    [
        (0.98, 0, True),
        (1.02, 0, False),
        (1.02, PATIENCE - 1, False),
        (1.02, PATIENCE, True),
        (1.02, PATIENCE + 1, True),
        (0.98, PATIENCE, True),
        # Saturated: θ is on its way along the ray.
        (0.0, 0, False),
        (0.0, PATIENCE, False),
        (0.0, 2 * PATIENCE - 1, False),
        (0.0, 2 * PATIENCE, True),
        (0.0, 2 * PATIENCE + 1, True),
    ],
)
def test_it_ends_at_a_flat_gradient_or_without_gains(share, idle, done, x64):
    """Flat: 32 rounding errors of the gradient. A ray is followed twice as long without gains."""
    problem = problem_of(*sample())
    state = logistic_lbfgs.BallLBFGS().init(problem, key=None)
    margins = jnp.full(200, 2.0).at[0].set(2.0 if share == 0 else -2.0)
    flat = 32 * logistic_lbfgs._gradient_rounding(problem, margins)
    slope = share * flat * jnp.asarray([0.0, 1.0, 0.0, 0.0])
    state = dataclasses.replace(
        state, theta=jnp.ones(4), margins=margins, gradient=slope, idle=jnp.asarray(idle, jnp.int32)
    )
    status = Status.CONVERGED if done else Status.RUNNING
    assert logistic_lbfgs.BallLBFGS().terminate(problem, state) == status


lbfgs_step = jax.jit(lambda problem, state: logistic_lbfgs.BallLBFGS().step(problem, state, key=None))


@pytest.mark.slow
@pytest.mark.parametrize(("gaps", "risen"), [(0.5, False), (2.0, True)])
def test_only_a_measurable_rise_moves_the_mark(gaps, risen, x64):
    """Else the steps without one are counted."""
    problem = problem_of(*sample())
    state = dataclasses.replace(
        logistic_lbfgs.BallLBFGS().init(problem, key=None), idle=jnp.asarray(3, jnp.int32)
    )
    reached = lbfgs_step(problem, state).value
    mark = reached - gaps * logistic_lbfgs._value_rounding(problem, state.margins)
    after = lbfgs_step(problem, dataclasses.replace(state, mark=mark))
    assert (float(after.mark), int(after.idle)) == ((float(reached), 0) if risen else (float(mark), 4))


def test_a_saturated_step_goes_straight_to_the_sphere(x64):
    data = x, labels, _ = separable()
    direction = np.linspace(1, -0.6, 4)
    problem = problem_of(*data, radius=1e6, start=1e5 * direction)
    near = np.abs(x @ direction) > 0.05  # of these every likelihood is 1
    problem = dataclasses.replace(problem, weights=jnp.asarray(near.astype(float)))
    state = logistic_lbfgs.BallLBFGS().init(problem, key=None)
    assert jnp.dot(state.gradient, state.gradient) == 0
    after = lbfgs_step(problem, state)
    np.testing.assert_allclose(after.theta, 1e6 * direction / np.linalg.norm(direction), rtol=1e-12)
    assert (labels * (x @ after.theta) > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("radius", [0.5, 1e3])
def test_a_move_maximises_the_model_of_all_parameters(radius, x64):
    """With a full memory, in forty dimensions, beside the model written out in all of them."""
    rng = np.random.default_rng(3)
    root, theta, slope = rng.normal(size=(40, 40)), 0.01 * rng.normal(size=40), rng.normal(size=40)
    moves = rng.normal(size=(MEMORY, 40))
    changes = moves @ (root @ root.T) / 40
    problem = problem_of(*sample(1000, 40, 3), radius=radius)
    state = logistic_lbfgs.BallLBFGS().init(problem, key=None)
    theta, slope, moves, changes, scale = map(jnp.asarray, (theta, slope, moves, changes, 0.7))
    state = dataclasses.replace(state, theta=theta, gradient=slope, moves=moves, changes=changes, scale=scale)
    target = newton_point(theta, slope, bfgs_matrix(moves, changes, scale), jnp.asarray(radius))
    np.testing.assert_allclose(logistic_lbfgs._move(problem, state), target - theta, rtol=1e-7, atol=1e-9)


def test_rows_that_nearly_depend_are_orthogonal_to_the_last_digit(x64):
    """A single pass leaves 10⁻¹⁰, the rounding of what is left of the second row."""
    rows = np.random.default_rng(4).normal(size=(3, 6))
    rows[1] = rows[0] + 1e-6 * rows[1]
    basis = np.asarray(orthonormal_rows(jnp.asarray(rows)))
    np.testing.assert_allclose(basis @ basis.T, np.eye(3), atol=1e-15)


def test_a_pair_of_little_curvature_counts_as_well(x64):
    moves = np.array([[1e-4, 2e-4, 0.0]])
    changes = np.array([[3e-4, 0.0, 1e-4]])
    b = np.asarray(bfgs_matrix(jnp.asarray(moves), jnp.asarray(changes), jnp.asarray(1.7)))
    np.testing.assert_allclose(b @ moves[0], changes[0], rtol=1e-12, atol=1e-18)
