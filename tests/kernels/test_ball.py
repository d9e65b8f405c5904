"""Quadratic models on a ball against the secular equation in float64 (SciPy), and projections."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from robust_rlhf_jax.kernels import ball

minimise = jax.jit(ball.minimise_quadratic_in_ball)
project = jax.jit(ball.project_ball)
stationarity = jax.jit(ball.ball_stationarity)
newton_point = jax.jit(ball.newton_point)


def secular_solution(a, b, radius):
    """argmin over the ball by eigendecomposition and a bracketed root in the multiplier."""
    values, vectors = np.linalg.eigh(a)
    rotated = vectors.T @ b

    def excess(nu):
        return np.linalg.norm(rotated / (values + nu)) - radius

    if excess(0.0) <= 0:
        return vectors @ (rotated / values)
    nu = scipy.optimize.brentq(excess, 0.0, np.linalg.norm(b) / radius, xtol=1e-300, rtol=1e-15, maxiter=500)
    return vectors @ (rotated / (values + nu))


def problem(seed, eigenvalues):
    rng = np.random.default_rng(seed)
    k = len(eigenvalues)
    basis = np.linalg.qr(rng.normal(size=(k, k)))[0]
    a = (basis * eigenvalues) @ basis.T
    return (a + a.T) / 2, rng.normal(size=k)


@pytest.mark.parametrize(("wide", "tolerance"), [(False, 2e-5), (True, 1e-11)])
@pytest.mark.parametrize("share", [1e-3, 0.3, 0.9, 0.9999, 1.0001, 3.0])
def test_against_the_secular_equation(wide, tolerance, share):
    """The radius is a share of the free minimiser's length: inside the ball above 1, on the sphere below."""
    for seed in range(4):
        a, b = problem(seed, np.geomspace(0.5, 10.0, 5))
        radius = share * np.linalg.norm(np.linalg.solve(a, b))
        expected = secular_solution(a, b, radius)
        with jax.enable_x64(wide):
            found = minimise(jnp.asarray(a), jnp.asarray(b), jnp.asarray(radius))
            assert found.dtype == (jnp.float64 if wide else jnp.float32)
        scale = np.linalg.norm(expected)
        np.testing.assert_allclose(found, expected, atol=tolerance * scale)
        size = np.linalg.norm(np.asarray(found, np.float64))
        assert size <= radius * (1 + tolerance)
        if share < 1:
            assert size >= radius * (1 - tolerance)


def test_against_trust_constr(x64):
    a, b = problem(7, np.array([0.2, 1.0, 5.0]))
    radius = 0.4 * np.linalg.norm(np.linalg.solve(a, b))
    ball_constraint = scipy.optimize.NonlinearConstraint(
        lambda u: u @ u, -np.inf, radius**2, jac=lambda u: 2 * u[None], hess=lambda u, v: 2 * v[0] * np.eye(3)
    )
    reference = scipy.optimize.minimize(
        lambda u: (u @ a @ u / 2 - b @ u, a @ u - b),
        np.zeros(3),
        jac=True,
        hess=lambda u: a,
        method="trust-constr",
        constraints=[ball_constraint],
        options={"gtol": 1e-12, "xtol": 1e-14, "maxiter": 2000},
    )
    found = minimise(jnp.asarray(a), jnp.asarray(b), jnp.asarray(radius))
    np.testing.assert_allclose(found, reference.x, atol=1e-6)


@pytest.mark.parametrize("smallest", [1e-4, 1e-8, 1e-12])
@pytest.mark.parametrize("share", [1e-6, 0.1, 0.99])
def test_nearly_singular_model_on_the_sphere(smallest, share, x64):
    """The free minimiser lies up to 10¹² away along a flat direction: the multiplier must still be found."""
    for seed in range(3):
        a, b = problem(seed, np.array([smallest, 1.0, 2.0, 3.0]))
        radius = share * np.linalg.norm(np.linalg.solve(a, b))
        expected = secular_solution(a, b, radius)
        found = minimise(jnp.asarray(a), jnp.asarray(b), jnp.asarray(radius))
        np.testing.assert_allclose(found, expected, atol=1e-15 / smallest * radius + 1e-9 * radius)
        np.testing.assert_allclose(np.linalg.norm(found), radius, rtol=1e-15 / smallest + 1e-12)


def test_nearly_singular_model_in_single_precision():
    """b has no part along the flat direction, as in Newton's method: the answer must not run away along it."""
    a = np.diag([1e-6, 1.0, 2.0]).astype(np.float32)
    b = np.array([0.0, 3.0, 1.0], np.float32)
    expected = secular_solution(a.astype(float), b.astype(float), 1.0)
    np.testing.assert_allclose(minimise(a, b, jnp.float32(1.0)), expected, atol=2e-6)


def test_zero_gradient_stays_at_the_centre():
    np.testing.assert_array_equal(minimise(jnp.eye(3), jnp.zeros(3), jnp.asarray(1.0)), 0.0)


@pytest.mark.slow
def test_batch_equals_loop(x64):
    problems = [problem(seed, np.geomspace(0.1, 5.0, 4)) for seed in range(4)]
    a, b = (jnp.asarray(np.stack(part)) for part in zip(*problems, strict=True))
    radii = jnp.array([1e-3, 0.3, 2.0, 1e3])
    batch = jax.vmap(ball.minimise_quadratic_in_ball)(a, b, radii)
    for i in range(4):
        np.testing.assert_allclose(batch[i], minimise(a[i], b[i], radii[i]), rtol=1e-11)


coordinates = st.floats(-1e3, 1e3, width=32)


@given(
    arrays(np.float32, 4, elements=coordinates),
    arrays(np.float32, 4, elements=coordinates),
    st.floats(0.125, 500.0, width=32),
)
def test_projection_is_the_closest_point(theta, other, radius):
    point = np.asarray(project(theta, radius), np.float64)
    theta, other = theta.astype(np.float64), other.astype(np.float64)
    assert np.linalg.norm(point) <= radius * (1 + 1e-6)
    if np.linalg.norm(theta) <= radius * (1 - 1e-6):
        np.testing.assert_array_equal(point, theta)
    # Variational inequality: ⟨θ − p, q − p⟩ ≤ 0 for every q in the ball.
    inside = other * min(1.0, radius / max(np.linalg.norm(other), 1e-30))
    slack = 1e-6 * (1 + np.linalg.norm(theta)) * (1 + radius)
    assert (theta - point) @ (inside - point) <= slack
    again = project(point.astype(np.float32), radius)
    np.testing.assert_allclose(again, point, rtol=1e-6)


@pytest.mark.parametrize("radius", [0.7, 3.0, 1e4])
def test_the_residual_is_what_the_ball_leaves_of_the_gradient(radius, x64):
    """All of it inside the ball and where it points inwards; on the sphere less what points outwards."""
    theta = radius * jnp.asarray([0.6, 0.0, -0.8])
    outward, along = jnp.asarray([0.6, 0.0, -0.8]), jnp.asarray([0.8, 2.0, 0.6])
    residual = jax.jit(ball.ball_residual)
    np.testing.assert_allclose(residual(theta, 5.0 * outward + along, radius), along, atol=1e-12)
    np.testing.assert_allclose(residual(theta, along - 5.0 * outward, radius), along - 5.0 * outward)
    for shorter in (0.999, 0.5, 0.0):
        found = residual(shorter * theta, 5.0 * outward + along, radius)
        np.testing.assert_allclose(found, 5.0 * outward + along)


def test_projection_of_the_centre():
    np.testing.assert_array_equal(project(jnp.zeros(3), 1.0), 0.0)


@pytest.mark.parametrize("share", [0.3, 3.0])
def test_stationarity_vanishes_at_the_optimum_only(share, x64):
    a, b = problem(3, np.geomspace(0.5, 4.0, 4))
    radius = share * np.linalg.norm(np.linalg.solve(a, b))
    best = secular_solution(a, b, radius)
    assert stationarity(best, b - a @ best, radius) < 1e-12
    rng = np.random.default_rng(0)
    for _ in range(20):
        other = best + 0.1 * radius * rng.normal(size=4)
        other *= min(1.0, radius / np.linalg.norm(other))
        assert stationarity(other, b - a @ other, radius) > 1e-3 * radius


@pytest.mark.parametrize("share", [0.5, 2.0])
def test_newton_point_solves_a_quadratic_in_one_step(share, x64):
    """f(θ) = bᵀθ − ½θᵀAθ, from any θ. A has a null direction; rounding along it stays bounded, callers drop it."""
    a, b = problem(11, np.array([0.0, 0.5, 1.0, 3.0]))
    null = np.linalg.eigh(a)[1][:, 0]
    b -= null * (null @ b)
    free = np.linalg.pinv(a, rcond=1e-9) @ b
    radius = share * np.linalg.norm(free)
    expected = secular_solution(a + np.outer(null, null), b, radius)
    start = 0.2 * radius * np.linalg.svd(np.outer(b, b))[0][:, 1]
    start -= null * (null @ start)
    found = newton_point(start, b - a @ start, a, radius)
    along = null @ np.asarray(found)
    assert abs(along) < 0.1
    tolerance = (
        1e-9 if share > 1 else along**2 + 1e-9
    )  # on the sphere what rounding adds is missing elsewhere
    np.testing.assert_allclose(found - along * null, expected, atol=tolerance * radius)


def newton_loop(a, b, radius, max_steps):
    """The iteration from its description: Newton on 1/‖u(ν)‖ − 1/r from ν = 0, then two steps more."""
    nu, eye = 0.0, np.eye(len(b))

    def solve():
        return np.linalg.solve(a + nu * eye, b)

    steps = 0
    while steps < max_steps and np.linalg.norm(solve()) > radius * 1.001:
        u, steps = solve(), steps + 1
        norm, slope2 = np.linalg.norm(u), u @ np.linalg.solve(a + nu * eye, u)
        nu += norm**2 / slope2 * (norm - radius) / radius
    for _ in range(2):
        u = solve()
        norm, slope2 = np.linalg.norm(u), u @ np.linalg.solve(a + nu * eye, u)
        nu += norm**2 / slope2 * (norm - radius) / radius
    u = solve()
    return u * min(1.0, radius / np.linalg.norm(u))


@pytest.mark.slow
@pytest.mark.parametrize("max_steps", [0, 1, 2, 3])
def test_the_loop_makes_as_many_steps_as_allowed_and_two_more(max_steps, x64):
    a, b = np.diag([1e-9, 1e-6, 1e-3, 1.0]), np.array([1e-6, 1e-4, 1e-2, 1.0])
    radius = 1e-3 * np.linalg.norm(np.linalg.solve(a, b))
    found = ball.minimise_quadratic_in_ball(*map(jnp.asarray, (a, b, radius)), max_steps)
    expected = newton_loop(a, b, radius, max_steps)
    further = newton_loop(a, b, radius, max_steps + 1)
    assert np.linalg.norm(further - expected) > 0.01 * radius
    np.testing.assert_allclose(found, expected, atol=1e-9 * radius)


@pytest.mark.parametrize("share", [0.9995, 0.99, 0.5])
def test_an_early_end_of_the_loop_leaves_nothing_but_rounding(share, x64):
    a, b = problem(6, np.geomspace(0.5, 10.0, 5))
    radius = share * np.linalg.norm(np.linalg.solve(a, b))
    found = minimise(jnp.asarray(a), jnp.asarray(b), jnp.asarray(radius))
    np.testing.assert_allclose(found, secular_solution(a, b, radius), atol=1e-14 * radius)


def test_a_point_within_32_roundings_of_the_sphere_is_on_it(x64):
    eps = np.finfo(float).eps
    for distance, residual in ((32, 0.0), (33, 3.0)):
        theta = jnp.asarray([1 - distance * eps])
        assert ball.ball_residual(theta, jnp.asarray([3.0]), jnp.asarray(1.0)) == residual


def test_the_residual_at_a_centre_of_radius_zero_is_finite(x64):
    """Any gradient points outwards there, and none of it lies along θ."""
    gradient = jnp.asarray([1.0, -2.0])
    np.testing.assert_array_equal(ball.ball_residual(jnp.zeros(2), gradient, jnp.asarray(0.0)), gradient)


def test_the_ridge_of_a_newton_point_follows_the_size_of_its_column(x64):
    """16·k·eps times the largest curvature, in steps of 2^ALIKE downwards; of a null column times the largest."""
    smaller = np.array([0.0, 1.0, ball.ALIKE - 0.1, ball.ALIKE + 0.1, 2 * ball.ALIKE + 1.0, 40.0])
    own = np.r_[8.0 * 2.0**-smaller, 0.0]
    k, eps = len(own), np.finfo(float).eps
    expected = 16 * k * eps * 8.0 * 2.0 ** -np.r_[ball.ALIKE * np.floor(smaller / ball.ALIKE), 0.0]
    gradient = np.where(own > 0, own, expected)
    found = np.asarray(newton_point(jnp.zeros(k), jnp.asarray(gradient), jnp.diag(own), jnp.asarray(1e30)))
    np.testing.assert_allclose(gradient / found - own, expected, rtol=0.03)


def test_without_curvature_the_newton_point_lies_along_the_gradient(x64):
    gradient = np.array([3.0, 0.0, -4.0])
    found = newton_point(jnp.zeros(3), jnp.asarray(gradient), jnp.zeros((3, 3)), jnp.asarray(2.0))
    np.testing.assert_allclose(found, 2.0 * gradient / 5.0, rtol=1e-12)
