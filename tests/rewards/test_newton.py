"""`maximise` against SciPy: weights, a Gaussian prior, the curvature; and what it says when it could not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.special

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.rewards import newton

maximise = jax.jit(newton.maximise)
m, r = 120, 4


def problem(seed, spread=1.0):
    """(rows, weights, start, precision): a tenth of the weights is 0."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(m, r))
    z *= np.where(rng.uniform(size=m) < scipy.special.expit(z @ rng.normal(scale=spread, size=r)), 1.0, -1.0)[
        :, None
    ]
    weights = rng.uniform(size=m) * (rng.uniform(size=m) < 0.9)
    return z, weights, rng.normal(size=r), np.array([0.5, 1.0, 2.0, 0.0])


def value(t, z, weights, precision):
    return (weights @ scipy.special.log_expit(z @ t) - 0.5 * precision @ t**2) / weights.sum()


def reference(z, weights, precision):
    """Newton with a trust region, in float64."""

    def slope(t):
        return (precision * t - (weights * scipy.special.expit(-(z @ t))) @ z) / weights.sum()

    def bend(t):
        chance = scipy.special.expit(z @ t)
        return ((z.T * (weights * chance * (1 - chance))) @ z + np.diag(precision)) / weights.sum()

    loss = lambda t: -value(t, z, weights, precision)  # noqa: E731
    options = {"gtol": 1e-12}
    return scipy.optimize.minimize(
        loss, np.zeros(r), jac=slope, hess=bend, method="trust-exact", options=options
    ).x


def run(z, weights, start, precision):
    return maximise(*map(jnp.asarray, (z, weights, start, precision)))


@pytest.mark.parametrize(("wide", "tolerance"), [(False, 2e-3), (True, 1e-6)])
@pytest.mark.parametrize("spread", [0.0, 1.0, 4.0])
def test_weighted_with_a_prior_equals_scipy(wide, tolerance, spread):
    with jax.enable_x64(wide):
        for seed in range(5):
            z, weights, start, precision = problem(seed, spread)
            found = run(z, weights, start, precision)
            assert found.t.dtype == (jnp.float64 if wide else jnp.float32)
            expected = reference(z, weights, precision)
            np.testing.assert_allclose(found.t, expected, rtol=tolerance, atol=tolerance)
            np.testing.assert_allclose(found.value, value(expected, z, weights, precision), rtol=1e-5)
            assert found.status == Status.CONVERGED


def test_the_factor_is_that_of_the_curvature_with_the_prior(x64):
    z, weights, _, precision = problem(0)
    expected = reference(z, weights, precision)
    found = run(z, weights, expected, precision)
    chance = scipy.special.expit(z @ expected)
    curvature = ((z.T * (weights * chance * (1 - chance))) @ z + np.diag(precision)) / weights.sum()
    np.testing.assert_allclose(found.t, expected, atol=1e-7)
    own = run(z, weights, found.t + 1e-3, precision).factor
    np.testing.assert_allclose(own @ own.T, curvature, rtol=0.01, atol=1e-3)


def test_an_axis_that_no_row_shows_stays_at_its_prior(x64):
    z, weights, start, precision = problem(0)
    z[:, 0], start[0] = 0.0, 3.0
    found = run(z, weights, start, precision)
    np.testing.assert_allclose(found.t[0], 0.0, atol=1e-9)
    assert found.status == Status.CONVERGED


def test_what_is_not_finite_is_said():
    z, weights, start, precision = problem(0)
    z[3, 1] = np.nan
    assert run(z, weights, start, precision).status == Status.NONFINITE


def test_too_few_steps_are_said(monkeypatch):
    monkeypatch.setattr(newton, "MAX_STEPS", 2)
    z, weights, start, precision = problem(0)
    arguments = map(jnp.asarray, (z, weights, start, precision))
    assert jax.jit(lambda *given: newton.maximise(*given))(*arguments).status == Status.MAX_STEPS


def test_a_batch_is_a_loop():
    problems = [problem(seed) for seed in range(3)]
    batch = [jnp.asarray(np.stack(parts), jnp.float32) for parts in zip(*problems, strict=True)]
    together = jax.jit(jax.vmap(newton.maximise))(*batch)
    for i, given in enumerate(problems):
        np.testing.assert_allclose(together.t[i], run(*given).t, rtol=1e-3, atol=1e-4)
