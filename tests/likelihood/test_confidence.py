"""Projections on sets of plausible rewards against SciPy, and what makes them projections."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.likelihood import (
    LogisticProblem,
    calibrated_zeta,
    confidence_set,
    ellipsoid,
    fit_logistic,
)
from robust_rlhf_jax.likelihood.confidence import chi_square_quantile, theory_zeta

project = jax.jit(lambda allowed, y: allowed.project(y))
project_warm = jax.jit(lambda allowed, y, warm: allowed.project(y, warm))
contains = jax.jit(lambda allowed, theta: allowed.contains(theta))
N, K = 300, 5


def sample(seed, norm=1.0):
    rng = np.random.default_rng(seed)
    x, theta = rng.normal(size=(N, K)) * rng.uniform(0.1, 1.5, K), rng.normal(size=K)
    theta *= norm / np.linalg.norm(theta)
    return x, np.where(rng.uniform(size=N) < 1 / (1 + np.exp(-x @ theta)), 1.0, -1.0), rng


def fitted_set(x, labels, zeta, radius):
    args = map(jnp.asarray, (x, labels, np.ones(N), float(radius), np.eye(K), np.zeros(K)))
    theta = fit_logistic(LogisticProblem(*args)).theta
    return confidence_set(jnp.asarray(x), jnp.asarray(labels), theta, zeta, radius=radius)


def slsqp(y, start, x, labels, floor, radius):
    def likelihood(t):
        return -np.mean(np.logaddexp(0, -labels * (x @ t))) - floor

    def slope(t):
        return (labels / (1 + np.exp(labels * (x @ t)))) @ x / len(labels)

    bounds = [
        {"type": "ineq", "fun": likelihood, "jac": slope},
        {"type": "ineq", "fun": lambda t: radius**2 - t @ t, "jac": lambda t: -2 * t},
    ]
    options = {"ftol": 1e-15, "maxiter": 1000}
    return scipy.optimize.minimize(
        lambda t: 0.5 * np.sum((t - y) ** 2), start, jac=lambda t: t - y, method="SLSQP",
        constraints=bounds, options=options,
    ).x  # fmt: skip


@pytest.mark.parametrize("radius", [0.8, 5.0])
@pytest.mark.parametrize("zeta", [0.003, 0.02, 0.2])
@pytest.mark.parametrize("distance", [0.3, 3.0, 30.0])
def test_projection_is_that_of_scipy(radius, zeta, distance, x64):
    x, labels, rng = sample(int(1000 * zeta + distance))
    allowed = fitted_set(x, labels, zeta, radius)
    y = np.asarray(allowed.centre) + distance * rng.normal(size=K)
    found = project(allowed, jnp.asarray(y))
    assert found.status == Status.CONVERGED
    assert contains(allowed, found.theta)
    expected = slsqp(y, np.asarray(allowed.centre), x, labels, float(allowed.floor), radius)
    np.testing.assert_allclose(found.theta, expected, atol=1e-5)


@functools.cache
def example_set(zeta):
    x, labels, _ = sample(3)
    return fitted_set(x, labels, zeta, 2.0)


@given(st.integers(0, 2**16), st.sampled_from([0.005, 0.05]), st.floats(0.1, 10.0))
def test_projection_is_idempotent_and_does_not_expand(seed, zeta, distance):
    with jax.enable_x64(True):
        allowed = example_set(zeta)
        points = distance * np.random.default_rng(seed).normal(size=(2, K))
        a, b = (project(allowed, jnp.asarray(p)).theta for p in points)
        np.testing.assert_allclose(project(allowed, a).theta, a, atol=1e-6)
        assert np.linalg.norm(a - b) <= np.linalg.norm(points[0] - points[1]) * (1 + 1e-6)


def test_warm_starts_save_solves(x64):
    """Along a descent three quadratic programs a projection are enough, and the point is that of a cold start."""
    x, labels, rng = sample(5)
    allowed = fitted_set(x, labels, 0.02, 3.0)
    warm, solves = project(allowed, allowed.centre).warm, 0
    direction = rng.normal(size=K)
    for _ in range(30):
        y = warm.theta - 0.02 * jnp.asarray(direction)
        found = project_warm(allowed, y, warm)
        np.testing.assert_allclose(found.theta, project(allowed, y).theta, atol=1e-6)
        warm, solves = found.warm, solves + int(found.solves)
    assert solves <= 3 * 30


def test_an_empty_set_and_a_nan_lane_leave_the_others_alone(x64):
    x, labels, rng = sample(7)
    allowed = fitted_set(x, labels, 0.02, 3.0)
    empty = eqx.tree_at(lambda s: s.floor, allowed, allowed.floor + 0.5)
    y = jnp.asarray(3.0 * rng.normal(size=(3, K))).at[1].set(jnp.nan)
    assert project(empty, y[0]).status == Status.INFEASIBLE
    batch = jax.jit(jax.vmap(allowed.project))(y)
    assert batch.status[1] == Status.NONFINITE
    for i in (0, 2):
        np.testing.assert_allclose(batch.theta[i], project(allowed, y[i]).theta, atol=1e-7)


@pytest.mark.slow
def test_single_precision(x64):
    x, labels, rng = sample(9)
    y = 2.0 * rng.normal(size=K)
    expected = project(fitted_set(x, labels, 0.02, 3.0), jnp.asarray(y)).theta
    with jax.enable_x64(False):
        found = project(fitted_set(x, labels, 0.02, 3.0), jnp.asarray(y))
        assert found.theta.dtype == jnp.float32
        assert found.status == Status.CONVERGED
    np.testing.assert_allclose(found.theta, expected, atol=3e-3)


@pytest.mark.parametrize("radius", [0.8, 5.0])
def test_ellipsoid_is_that_of_scipy(radius, x64):
    rng = np.random.default_rng(0)
    root = rng.normal(size=(K, K))
    sigma, centre = root @ root.T, rng.normal(size=K)
    centre *= 0.5 / np.linalg.norm(centre)
    allowed = ellipsoid(jnp.asarray(sigma), jnp.asarray(centre), 0.7, radius)
    y = 3.0 * rng.normal(size=K)
    bounds = [
        {"type": "ineq", "fun": lambda t: 0.49 - (t - centre) @ sigma @ (t - centre)},
        {"type": "ineq", "fun": lambda t: radius**2 - t @ t},
    ]
    expected = scipy.optimize.minimize(
        lambda t: 0.5 * np.sum((t - y) ** 2), centre, method="SLSQP", constraints=bounds,
        options={"ftol": 1e-14, "maxiter": 500},
    ).x  # fmt: skip
    found = project(allowed, jnp.asarray(y))
    np.testing.assert_allclose(found.theta, expected, atol=1e-5)
    assert contains(allowed, found.theta)


@pytest.mark.parametrize("degrees", [3, 10, 25, 100])
def test_chi_square_quantile(degrees):
    expected = scipy.stats.chi2.ppf(0.9, degrees)
    np.testing.assert_allclose(chi_square_quantile(0.9, jnp.asarray(degrees)), expected, rtol=0.01)
    zeta = calibrated_zeta(0.1, jnp.asarray(degrees), 1000)
    np.testing.assert_allclose(zeta, expected / 2000 + 0.002, rtol=0.01)


@pytest.mark.parametrize(("zeta", "radius", "message"), [(-0.1, 1.0, "zeta"), (0.1, 0.0, "radius")])
def test_bad_settings(zeta, radius, message):
    x, labels, _ = sample(0)
    with pytest.raises(ValueError, match=message):
        confidence_set(jnp.asarray(x), jnp.asarray(labels), jnp.zeros(K), zeta, radius=radius)


def test_theory_zeta_is_what_the_paper_prints():
    """6εH√d + (2d/N)log(HN/δ), each term by itself."""
    np.testing.assert_allclose(theory_zeta(0.1, 5, 9, 10**9), 6 * 0.1 * 5 * 3, rtol=1e-5)
    np.testing.assert_allclose(
        theory_zeta(0.0, 5, 9, 200, miss=0.05), 2 * 9 / 200 * np.log(5 * 200 / 0.05), rtol=1e-6
    )
