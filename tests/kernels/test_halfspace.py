"""Quadratics on a cut ball against SciPy and the optimality conditions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st

from robust_rlhf_jax.kernels import halfspace
from robust_rlhf_jax.kernels.halfspace import minimise_quadratic_in_ball, minimise_quadratic_in_cut_ball

solve = jax.jit(minimise_quadratic_in_cut_ball)
K = 4


def model(seed, level, radius):
    rng = np.random.default_rng(seed)
    return rng.uniform(0.5, 4.0, K), 3 * rng.normal(size=K), rng.normal(size=K), level, radius


def slsqp(a, b, normal, level, radius):
    bounds = [
        {"type": "ineq", "fun": lambda u: radius**2 - u @ u, "jac": lambda u: -2 * u},
        {"type": "ineq", "fun": lambda u: normal @ u - level, "jac": lambda u: normal},
    ]
    return scipy.optimize.minimize(
        lambda u: 0.5 * u @ (a * u) - b @ u, normal * level / (normal @ normal), jac=lambda u: a * u - b,
        method="SLSQP", constraints=bounds, options={"ftol": 1e-15, "maxiter": 500},
    ).x  # fmt: skip


@pytest.mark.parametrize("radius", [0.7, 2.0, 50.0])
@pytest.mark.parametrize("level", [-3.0, 0.1, 0.5])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_minimiser_is_that_of_scipy(seed, level, radius, x64):
    args = model(seed, level, radius)
    found = solve(*map(jnp.asarray, args))
    assert found.feasible
    np.testing.assert_allclose(found.point, slsqp(*args), atol=1e-6)


@pytest.mark.slow
@given(st.integers(0, 2**16), st.floats(-2.0, 2.0), st.floats(0.1, 10.0))
def test_optimality_conditions(seed, level, radius):
    """b − Au + m·normal points out of the ball and nowhere else; m ≥ 0, and 0 where the half-space is slack."""
    with jax.enable_x64(True):
        a, b, normal, *_ = args = model(seed, level, radius)
        found = solve(*map(jnp.asarray, args))
        reachable = radius * np.linalg.norm(normal)
        assert bool(found.feasible) == (level <= reachable)
        u, m = np.asarray(found.point), float(found.multiplier)
        assert np.linalg.norm(u) <= radius * (1 + 1e-9)
        if level > reachable:
            np.testing.assert_allclose(u, radius * normal / np.linalg.norm(normal), rtol=1e-9)
            return
        slack = normal @ u - level
        assert slack >= -1e-8 * (1 + radius)
        assert m >= 0
        assert m * slack <= 1e-6 * (1 + m) * (1 + radius)
        pull = b - a * u + m * normal
        outward = u / np.linalg.norm(u)
        nu = max(0.0, pull @ outward) if np.linalg.norm(u) > radius * (1 - 1e-7) else 0.0
        # At a corner, where ball and plane touch almost tangentially, the multipliers grow without bound.
        assert np.linalg.norm(pull - nu * outward) <= 1e-6 * (1 + m + nu) * (1 + np.linalg.norm(b))


def test_a_plane_without_direction(x64):
    """normal = 0: no restriction for level ≤ 0, an empty set above."""
    a, b, _, _, radius = model(0, 0.0, 1.0)
    for level, feasible in ((-1.0, True), (1.0, False)):
        found = solve(*map(jnp.asarray, (a, b, np.zeros(K), level, radius)))
        assert bool(found.feasible) == feasible
        assert np.isfinite(found.point).all()


def test_batch_is_the_loop_and_a_nan_lane_stays_alone(x64):
    args = [model(seed, 0.2, 1.0) for seed in range(3)]
    stacked = [jnp.asarray(np.stack(column)) for column in zip(*args, strict=True)]
    stacked[1] = stacked[1].at[1].set(jnp.nan)
    batch = jax.jit(jax.vmap(minimise_quadratic_in_cut_ball))(*stacked)
    assert np.isnan(batch.point[1]).all()
    for i in (0, 2):
        np.testing.assert_allclose(batch.point[i], solve(*map(jnp.asarray, args[i])).point, rtol=1e-12)


def test_single_precision():
    args = model(3, 0.3, 1.0)
    found = solve(*(jnp.asarray(x, jnp.float32) for x in args))
    assert found.point.dtype == jnp.float32
    np.testing.assert_allclose(found.point, slsqp(*args), atol=2e-5)


@pytest.mark.slow
@given(st.integers(0, 2**16), st.floats(0.1, 10.0))
def test_an_uncut_ball_is_one_that_the_half_space_holds(seed, radius):
    with jax.enable_x64(True):
        a, b, normal, *_ = model(seed, 0.0, radius)
        found = minimise_quadratic_in_ball(*map(jnp.asarray, (a, b, radius)))
        level = -2 * radius * np.linalg.norm(normal)
        whole = solve(*map(jnp.asarray, (a, b, normal, level, radius)))
        np.testing.assert_allclose(found, whole.point, rtol=1e-12)
        assert whole.multiplier == 0


def secular(excess, radius):
    """ν ≥ 0 with excess(ν) = radius, by a bracketed root."""
    if excess(0.0) <= radius:
        return 0.0
    high = 1.0
    while excess(high) > radius:
        high *= 2.0
    return scipy.optimize.brentq(lambda nu: excess(nu) - radius, 0.0, high, xtol=1e-300, rtol=1e-15)


def reference(a, b, normal, level, radius):
    """(point, multiplier) by roots in ν and the closed form of the half-space's multiplier."""
    nu = secular(lambda nu: np.linalg.norm(b / (a + nu)), radius)
    ball_only = b / (a + nu)
    if normal @ ball_only >= level:
        return ball_only, 0.0

    def in_plane(nu):
        d = 1.0 / (a + nu)
        m = (level - normal @ (d * b)) / (normal @ (d * normal))
        return d * (b + m * normal), m

    return in_plane(secular(lambda nu: np.linalg.norm(in_plane(nu)[0]), radius))


def cut_model(seed, share, radius):
    """A plane as far out as a `share` of the radius."""
    a, b, normal, *_ = model(seed, 0.0, radius)
    return a, b, normal, share * radius * np.linalg.norm(normal), radius


@pytest.mark.parametrize("radius", [0.4, 2.0, 50.0])
@pytest.mark.parametrize("share", [-2.0, 0.2, 0.9])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_point_and_multiplier_are_those_of_bracketed_roots(seed, share, radius, x64):
    args = cut_model(seed, share, radius)
    found = solve(*map(jnp.asarray, args))
    point, multiplier = reference(*args)
    np.testing.assert_allclose(found.point, point, atol=1e-12 * radius)
    np.testing.assert_allclose(found.multiplier, multiplier, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_newtons_method_takes_few_steps(monkeypatch, x64):
    """From ν = 0 the error of 1/‖u‖, nearly linear in ν, is squared by every step."""
    monkeypatch.setattr(halfspace, "MAX_SECULAR_STEPS", 6)
    after_few = jax.jit(lambda *args: minimise_quadratic_in_cut_ball(*args).point)
    for seed in range(3):
        for share in (-2.0, 0.2, 0.9):
            args = cut_model(seed, share, 0.4)
            np.testing.assert_allclose(after_few(*map(jnp.asarray, args)), reference(*args)[0], atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("steps", [0, 1, 2])
def test_after_the_last_step_the_point_is_drawn_into_the_ball(steps, monkeypatch, x64):
    """So many steps of Newton's method on 1/‖u‖ from ν = 0, in the ball alone and in the plane about its foot."""
    monkeypatch.setattr(halfspace, "MAX_SECULAR_STEPS", steps)
    capped = jax.jit(lambda *args: minimise_quadratic_in_cut_ball(*args).point)
    for share in (-2.0, 0.9):
        a, b, normal, level, radius = cut_model(1, share, 0.4)
        foot = normal * (level / (normal @ normal)) if share > 0 else np.zeros(K)
        room, nu = np.sqrt(radius**2 - foot @ foot), 0.0

        def from_foot(nu, a=a, b=b, normal=normal, level=level, share=share, foot=foot):
            d = 1.0 / (a + nu)
            m = (level - normal @ (d * b)) / (normal @ (d * normal)) if share > 0 else 0.0
            return d * (b + m * normal) - foot

        for _ in range(steps):
            norm, change = np.linalg.norm(from_foot(nu)), 1e-6 * (1.0 + nu)
            slope = (
                1 / np.linalg.norm(from_foot(nu + change)) - 1 / np.linalg.norm(from_foot(nu - change))
            ) / (2 * change)
            nu += (1 / room - 1 / norm) / slope
        tangent = from_foot(nu)
        assert np.linalg.norm(tangent) > room * (1 + 1e-6)
        found = capped(*map(jnp.asarray, (a, b, normal, level, radius)))
        np.testing.assert_allclose(found, foot + room * tangent / np.linalg.norm(tangent), rtol=1e-6)


def test_a_half_space_that_touches_the_ball_leaves_one_point(x64):
    a, b, *_ = model(0, 0.0, 1.0)
    normal = np.eye(K)[1]
    found = solve(*map(jnp.asarray, (a, b, normal, 2.0, 2.0)))
    assert found.feasible
    np.testing.assert_array_equal(found.point, 2.0 * normal)
    beyond = solve(*map(jnp.asarray, (a, b, normal, 2.0 + 1e-12, 2.0)))
    assert not beyond.feasible
    assert beyond.multiplier == 0
    np.testing.assert_array_equal(beyond.point, 2.0 * normal)


def test_a_ball_of_radius_zero_is_its_centre(x64):
    a, b, normal, *_ = model(2, 0.0, 1.0)
    found = solve(*map(jnp.asarray, (a, b, normal, -1.0, 0.0)))
    np.testing.assert_array_equal(found.point, 0.0)
    assert found.feasible
    assert found.multiplier == 0


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_the_length_of_the_normal_is_no_part_of_the_half_space(unit, x64):
    a, b, normal, level, radius = cut_model(0, 0.9, 2.0)
    plain = solve(*map(jnp.asarray, (a, b, normal, level, radius)))
    other = solve(*map(jnp.asarray, (a, b, unit * normal, unit * level, radius)))
    assert other.feasible
    np.testing.assert_allclose(other.point, plain.point, atol=1e-10)
    np.testing.assert_allclose(unit * other.multiplier, plain.multiplier, rtol=1e-8)
