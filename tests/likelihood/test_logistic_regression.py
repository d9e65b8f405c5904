"""Maximum likelihood on a ball against scikit-learn (free) and SciPy (constrained)."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.special
from sklearn.linear_model import LogisticRegression

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.likelihood import LogisticProblem, fit_logistic

from .logistic_reference import gradient, mean_likelihood, slsqp

# The solver stops where the value no longer rises: a gain of 4 rounding errors moves the gradient by their root.
GRADIENT = {False: 1e-4, True: 1e-8}


@jax.jit
def run(x, labels, weights, radius, projector, start):
    return fit_logistic(LogisticProblem(x, labels, weights, radius, projector, start))


def fit(x, labels, weights=None, radius=100.0, projector=None, start=None):
    n, k = x.shape
    weights = np.ones(n) if weights is None else weights
    projector = np.eye(k) if projector is None else projector
    start = np.zeros(k) if start is None else start
    return run(*map(jnp.asarray, (x, labels, weights, radius, projector, start)))


def sample(n=200, k=4, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    x, theta = rng.normal(size=(n, k)), scale * rng.normal(size=k)
    labels = np.where(rng.uniform(size=n) < scipy.special.expit(x @ theta), 1.0, -1.0)
    return x, labels, rng.uniform(0.1, 1.0, n)


@pytest.mark.parametrize(("wide", "tolerance"), [(False, 3e-4), (True, 1e-7)])
def test_free_fit_is_that_of_scikit_learn(wide, tolerance):
    x, labels, weights = sample()
    model = LogisticRegression(C=1e12, fit_intercept=False, tol=1e-12, max_iter=10_000)
    model.fit(x, labels, sample_weight=weights)
    with jax.enable_x64(wide):
        theta, value, norm, steps, _, _, status = fit(x, labels, weights)
        assert theta.dtype == value.dtype == (jnp.float64 if wide else jnp.float32)
    np.testing.assert_allclose(theta, model.coef_[0], atol=tolerance)
    np.testing.assert_allclose(value, mean_likelihood(model.coef_[0], x, labels, weights), rtol=1e-6)
    assert norm < GRADIENT[wide]
    slope = np.linalg.norm(gradient(np.asarray(theta, float), x, labels, weights))
    np.testing.assert_allclose(norm, slope, rtol=1e-2, atol=1e-6 if not wide else 1e-14)
    assert status == Status.CONVERGED
    assert 2 <= steps <= 25


@pytest.mark.parametrize(("wide", "tolerance"), [(False, 1e-4), (True, 1e-6)])
@pytest.mark.parametrize("share", [0.1, 0.6, 0.95])
def test_binding_ball_against_scipy(wide, tolerance, share):
    x, labels, weights = sample(seed=1)
    free = slsqp(x, labels, weights, 1e3)
    radius = share * np.linalg.norm(free)
    expected = slsqp(x, labels, weights, radius)
    with jax.enable_x64(wide):
        theta, value, norm, _, _, _, status = fit(x, labels, weights, radius)
    np.testing.assert_allclose(theta, expected, atol=tolerance * radius)
    np.testing.assert_allclose(np.linalg.norm(theta), radius, rtol=1e-6)
    # KKT: the gradient points along θ.
    theta = np.asarray(theta, np.float64)
    slope = gradient(theta, x, labels, weights)
    assert slope @ theta / np.linalg.norm(slope) / radius > 1 - (1e-12 if wide else 1e-5)
    np.testing.assert_allclose(value, mean_likelihood(expected, x, labels, weights), rtol=1e-6)
    assert norm < GRADIENT[wide]
    assert status == Status.CONVERGED


@pytest.mark.parametrize(("wide", "tolerance"), [(False, 1e-2), (True, 1e-5)])
@pytest.mark.parametrize("radius", [3.0, 20.0])
def test_separable_data_end_on_the_sphere(wide, tolerance, radius):
    """No maximiser exists without the ball; on it there is exactly one."""
    x, _, weights = sample(seed=2)
    labels = np.sign(x @ np.array([1.0, -1.0, 0.5, 0.0]))
    expected = slsqp(x, labels, weights, radius)
    with jax.enable_x64(wide):
        theta, value, norm, _, _, _, status = fit(x, labels, weights, radius)
    np.testing.assert_allclose(np.linalg.norm(theta), radius, rtol=1e-5)
    np.testing.assert_allclose(theta, expected, atol=tolerance * radius)
    assert value >= mean_likelihood(expected, x, labels, weights) - 1e-6
    assert np.isfinite(norm)
    assert status == Status.CONVERGED


def test_far_starts_reach_the_same_optimum(x64):
    """Damping: from far out the full Newton step overshoots."""
    x, labels, weights = sample(seed=3, scale=2.0)
    expected = fit(x, labels, weights).theta
    for direction in (np.ones(4), np.array([1.0, -1.0, 1.0, -1.0])):
        theta, _, _, _, _, _, status = fit(x, labels, weights, start=40.0 * direction)
        np.testing.assert_allclose(theta, expected, atol=1e-7)
        assert status == Status.CONVERGED


# Two directions of four carry no data; programs are shared with the tests above, since shapes are.
HALF = np.diag([1.0, 1.0, 0.0, 0.0])


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("radius", [0.5, 100.0])
def test_null_directions_are_left_alone(wide, radius):
    """θ keeps none of them in any basis, and elsewhere fits as if they did not exist."""
    x, labels, weights = sample(seed=4)
    rotation = np.linalg.qr(np.random.default_rng(5).normal(size=(4, 4)))[0]
    with jax.enable_x64(wide):
        small = fit(x @ HALF, labels, weights, radius, HALF)[0]
        turned = rotation @ HALF @ rotation.T
        theta, _, _, _, _, _, status = fit(x @ HALF @ rotation.T, labels, weights, radius, turned)
    eps = np.finfo(theta.dtype).eps
    theta = np.asarray(theta, np.float64)
    np.testing.assert_allclose(theta - turned @ theta, 0.0, atol=100 * eps)
    np.testing.assert_allclose(rotation.T @ theta, small, atol=10 * GRADIENT[wide])
    np.testing.assert_array_equal(small[2:], 0.0)
    assert status == Status.CONVERGED


def test_a_start_off_the_span_leaves_no_trace(x64):
    x, labels, weights = sample(seed=6)
    far = fit(x @ HALF, labels, weights, 100.0, HALF, np.array([1.0, -1.0, 0.0, 2.5])).theta
    np.testing.assert_array_equal(far[2:], 0.0)
    np.testing.assert_allclose(far[:2], fit(x @ HALF, labels, weights, 100.0, HALF).theta[:2], atol=1e-7)


@pytest.mark.parametrize(
    ("start", "radius"),
    [
        ([0.0, 0.0, 0.0, 0.9], 1.0),  # inside, mostly along a null direction
        ([30.0, -30.0, 0.0, 0.0], 1.0),  # outside
    ],
)
def test_the_answer_is_feasible_whatever_the_start(start, radius, x64):
    x, _, weights = sample(seed=6)
    labels = np.sign(x @ np.array([1.0, -1.0, 0.0, 0.0]))
    theta = fit(x @ HALF, labels, weights, radius, HALF, np.array(start))[0]
    assert np.linalg.norm(theta) <= radius * (1 + 1e-9)


def test_step_limit_is_reported(x64):
    x, labels, weights = sample(seed=8)
    problem = LogisticProblem(*map(jnp.asarray, (x, labels, weights, 100.0, np.eye(4), np.zeros(4))))
    _, _, norm, steps, _, _, status = jax.jit(lambda p: fit_logistic(p, max_steps=1))(problem)
    assert status == Status.MAX_STEPS
    assert steps == 1
    assert norm > 1e-6


def test_nan_is_reported():
    x, labels, weights = sample()
    x[3, 1] = np.nan
    assert fit(x, labels, weights).status == Status.NONFINITE


def test_the_curvature_comes_with_newtons_answer_alone(x64):
    """F = Σ w P(1 − P)xxᵀ/Σw at θ̂ or near it; the quasi-Newton solver forms none."""
    x, labels, _ = sample()
    ones, radius = jnp.ones(len(x)), jnp.asarray(100.0)
    problem = LogisticProblem(jnp.asarray(x), jnp.asarray(labels), ones, radius, None, jnp.zeros(4))
    found = jax.jit(fit_logistic)(problem)
    chance = scipy.special.expit(x @ np.asarray(found.theta))
    expected = (x.T * (chance * (1 - chance))) @ x / len(x)
    np.testing.assert_allclose(found.curvature, expected, rtol=0.05, atol=0.02 * np.trace(expected))
    assert jax.jit(partial(fit_logistic, newton_limit=1))(problem).curvature is None
