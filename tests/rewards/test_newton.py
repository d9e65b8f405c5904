"""`maximise` against SciPy: weights, prior rows, the ball; and what it says when it could not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.special
from hypothesis import given
from hypothesis import strategies as st

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.rewards import newton

maximise = jax.jit(newton.maximise, static_argnames="radius")
m, r = 120, 4


def problem(seed, spread=1.0):
    """(rows, labels, weights, start) with 2r prior rows at the end."""
    rng = np.random.default_rng(seed)
    z = np.concatenate([rng.normal(size=(m - 2 * r, r)), np.eye(r), np.eye(r)])
    labels = np.where(
        rng.uniform(size=m) < scipy.special.expit(z @ rng.normal(scale=spread, size=r)), 1.0, -1.0
    )
    labels[-2 * r :] = np.repeat([1.0, -1.0], r)
    weights = rng.uniform(size=m) * (rng.uniform(size=m) < 0.9)
    weights[-2 * r :] = 0.02
    return z, labels, weights, rng.normal(size=r)


def value(t, z, labels, weights):
    return np.average(scipy.special.log_expit(labels * (z @ t)), weights=weights)


def reference(z, labels, weights, radius=None):
    """In float64: Newton with a trust region, or sequential quadratic programming where a ball binds."""

    def slope(t):
        return -(weights * labels * scipy.special.expit(-labels * (z @ t))) @ z / weights.sum()

    def bend(t):
        chance = scipy.special.expit(z @ t)
        return (z.T * (weights * chance * (1 - chance))) @ z / weights.sum()

    loss = lambda t: -value(t, z, labels, weights)  # noqa: E731
    start = np.zeros(z.shape[1])
    if radius is None:
        options = {"gtol": 1e-12}
        return scipy.optimize.minimize(
            loss, start, jac=slope, hess=bend, method="trust-exact", options=options
        ).x
    ball = {"type": "ineq", "fun": lambda t: radius**2 - t @ t, "jac": lambda t: -2 * t}
    options = {"ftol": 1e-15, "maxiter": 500}
    return scipy.optimize.minimize(
        loss, start, jac=slope, method="SLSQP", constraints=ball, options=options
    ).x


@pytest.mark.parametrize(("wide", "tolerance"), [(False, 2e-3), (True, 1e-6)])
@pytest.mark.parametrize("spread", [0.0, 1.0, 4.0])
def test_weighted_with_a_prior_equals_scipy(wide, tolerance, spread):
    with jax.enable_x64(wide):
        for seed in range(5):
            z, labels, weights, start = problem(seed, spread)
            found = maximise(*map(jnp.asarray, (z, labels, weights, start)), radius=30.0)
            assert found.t.dtype == (jnp.float64 if wide else jnp.float32)
            expected = reference(z, labels, weights)
            np.testing.assert_allclose(found.t, expected, rtol=tolerance, atol=tolerance)
            np.testing.assert_allclose(found.value, value(expected, z, labels, weights), rtol=1e-5)
            assert found.status == Status.CONVERGED


@pytest.mark.parametrize("prior", [0.02, 1.0])
def test_a_prior_is_that_many_wins_and_losses_along_every_axis(prior, x64):
    z, labels, weights, start = problem(0)
    weights[-2 * r :] = prior
    some = [part[: -2 * r] for part in (z, labels, weights)]
    found = maximise(*map(jnp.asarray, (*some, start)), radius=30.0, prior=prior)
    expected = reference(z, labels, weights)
    np.testing.assert_allclose(found.t, expected, rtol=1e-6)
    np.testing.assert_allclose(found.value, value(expected, z, labels, weights), rtol=1e-9)
    chance = scipy.special.expit(z @ expected)
    curvature = (z.T * (weights * chance * (1 - chance))) @ z / weights.sum()
    # From the optimum, since the factor is that of the last step.
    factor = maximise(*map(jnp.asarray, (*some, expected)), radius=30.0, prior=prior).factor
    np.testing.assert_allclose(factor @ factor.T, curvature, rtol=1e-6)


def test_the_factor_of_a_similar_problem_serves_as_long_as_the_gradient_falls_fast(x64):
    """Kept where its steps converge, replaced by the problem's own where they do not; the optimum is the same."""
    z, labels, weights, start = problem(0)
    own = maximise(*map(jnp.asarray, (z, labels, weights, start)), radius=30.0)
    for factor, kept in ((1.02 * own.factor, True), (6.0 * own.factor, False), (0.1 * own.factor, False)):
        arguments = map(jnp.asarray, (z, labels, weights, own.t + 0.01))
        found = maximise(*arguments, radius=30.0, factor=factor)
        assert np.array_equal(found.factor, factor) == kept
        np.testing.assert_allclose(found.t, own.t, atol=1e-6)
        assert found.status == Status.CONVERGED


def test_a_ball_that_binds(x64):
    """Steps are projected on the ball: the end is in it, no worse than the start, and near the best point of it."""
    for seed in range(5):
        z, labels, weights, start = problem(seed, 4.0)
        found = maximise(*map(jnp.asarray, (z, labels, weights, start)), radius=1.0)
        assert np.linalg.norm(found.t) <= 1 + 1e-12
        best = value(reference(z, labels, weights, 1.0), z, labels, weights)
        first = value(start / max(1.0, np.linalg.norm(start)), z, labels, weights)
        assert first - 1e-12 <= found.value <= best + 1e-9
        assert best - found.value < 0.05


@given(st.integers(0, 2**16), st.floats(0.0, 30.0))
def test_the_start_does_not_matter(seed, far):
    z, labels, weights, start = problem(seed)
    start = far * start / np.linalg.norm(start)
    one = maximise(*map(jnp.asarray, (z, labels, weights, 0 * start)), radius=30.0)
    other = maximise(*map(jnp.asarray, (z, labels, weights, start)), radius=30.0)
    np.testing.assert_allclose(other.t, one.t, atol=5e-3)
    np.testing.assert_allclose(other.value, one.value, atol=1e-6)


def test_the_scale_of_the_weights_does_not_matter(x64):
    z, labels, weights, start = problem(0)
    one = maximise(*map(jnp.asarray, (z, labels, weights, start)), radius=30.0)
    other = maximise(*map(jnp.asarray, (z, labels, 1e3 * weights, start)), radius=30.0)
    np.testing.assert_allclose(other.t, one.t, rtol=1e-10)


def test_no_weight_at_all_is_said():
    z, labels, weights, start = problem(0)
    found = maximise(*map(jnp.asarray, (z, labels, 0 * weights, start)), radius=30.0)
    assert found.status == Status.NONFINITE


def test_nan_is_said_and_batches_keep_their_lanes():
    lanes = [problem(seed) for seed in range(4)]
    batch = [jnp.asarray(np.stack(part), jnp.float32) for part in zip(*lanes, strict=True)]
    many = jax.jit(jax.vmap(lambda *a: newton.maximise(*a, 30.0)))
    clean = many(*batch)
    batch[0] = batch[0].at[1, 3, 2].set(jnp.nan)
    found = many(*batch)
    assert found.status[1] == Status.NONFINITE
    for i in (0, 2, 3):
        np.testing.assert_array_equal(found.t[i], clean.t[i])
        alone = maximise(*(part[i] for part in batch), radius=30.0)
        np.testing.assert_allclose(found.t[i], alone.t, rtol=1e-3, atol=1e-4)
        assert found.status[i] == alone.status == Status.CONVERGED


@pytest.mark.slow
def test_eager_equals_jit():
    arguments = [jnp.asarray(part, jnp.float32) for part in problem(0)]
    with jax.disable_jit():
        eager = newton.maximise(*arguments, 30.0)
    found = maximise(*arguments, radius=30.0)
    np.testing.assert_allclose(eager.t, found.t, rtol=1e-4, atol=1e-5)
    assert eager.status == found.status
