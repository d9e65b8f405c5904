"""Quadratics on a cut ball against SciPy and the optimality conditions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st

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


@given(st.integers(0, 2**16), st.floats(0.1, 10.0))
def test_an_uncut_ball_is_one_that_the_half_space_holds(seed, radius):
    with jax.enable_x64(True):
        a, b, normal, *_ = model(seed, 0.0, radius)
        found = minimise_quadratic_in_ball(*map(jnp.asarray, (a, b, radius)))
        level = -2 * radius * np.linalg.norm(normal)
        whole = solve(*map(jnp.asarray, (a, b, normal, level, radius)))
        np.testing.assert_allclose(found, whole.point, rtol=1e-12)
        assert whole.multiplier == 0
