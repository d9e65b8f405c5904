"""Limited-memory fits on a ball against scikit-learn (free), SciPy (constrained) and the Newton solver."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.special
from sklearn.linear_model import LogisticRegression
from slow_parameters import slow

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.likelihood import LogisticProblem, fit_logistic, trimmed_mle
from robust_rlhf_jax.likelihood.logistic_regression import NEWTON_LIMIT

from .limited_memory_fits import PRECISIONS, problem_of, sample, separable
from .logistic_reference import gradient, mean_likelihood, slsqp


@jax.jit
def lbfgs(problem):
    return fit_logistic(problem, newton_limit=0)


by_default = jax.jit(fit_logistic)


def fit(*data, **options):
    return lbfgs(problem_of(*data, **options))


@pytest.mark.slow
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


@pytest.mark.parametrize(("wide", "tolerance"), [slow(False, 1e-4), (True, 1e-6)])
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


@pytest.mark.parametrize(("wide", "tolerance"), [slow(False, 1e-2), (True, 1e-6)])
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


@pytest.mark.parametrize("wide", [False, slow(True)])
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


@pytest.mark.slow
def test_a_given_projector_moves_the_start_into_the_span(x64):
    x, labels, weights = sample(seed=6)
    half = np.diag([1.0, 1.0, 0.0, 0.0])
    start = np.array([1.0, -1.0, 0.0, 2.5])
    found = fit(x @ half, labels, weights, start=start, projector=half).theta
    np.testing.assert_array_equal(found[2:], 0.0)
    np.testing.assert_allclose(found, fit(x @ half, labels, weights).theta, atol=1e-7)


@pytest.mark.slow
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


@pytest.mark.slow
def test_jit_equals_eager_and_a_new_radius_compiles_nothing(x64, count_compilations):
    first, second = (problem_of(*sample(), radius=r) for r in (0.7, 0.9))
    compiled = lbfgs(first)
    with count_compilations() as count:
        lbfgs(second)
    assert count.compiled == count.traced == []
    eager = fit_logistic(first, newton_limit=0)
    np.testing.assert_allclose(eager.theta, compiled.theta, rtol=1e-10)


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("radius", [1e6, 1e10, np.inf])
def test_separable_labels_are_named_whatever_the_ball(radius):
    """A ball that no step of float32 reaches: the fit gives up the way and says why."""
    x, labels, _ = separable()
    x, labels = jnp.asarray(x, jnp.float32), jnp.asarray(labels, jnp.float32)
    found = trimmed_mle(x, labels, 0.0, radius=radius, newton_limit=1)
    assert found.status == Status.SEPARABLE
    assert found.newton_steps < 200
    assert (labels * (x @ found.theta) > 0).all()


@pytest.mark.slow
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
