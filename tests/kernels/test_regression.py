"""Huber regression against NumPy: least squares, Huber's estimating equation, and derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from robust_rlhf_jax.kernels import regression
from robust_rlhf_jax.kernels.linalg import pseudo_inverse_root

huber_mean = jax.jit(regression.huber_mean)
scale_of = jax.jit(regression.residual_scale)
weights_of = jax.jit(regression.huber_weights)


@jax.jit
def fit(phi, targets, weights, multiple):
    root = pseudo_inverse_root((phi.T * weights) @ phi)[0]
    return regression.huber_regression(phi.T, targets, weights, root, multiple)


def sample(n=300, d=4, share=0.05, seed=0):
    """Linear targets with normal noise; the first `share` of them far too high."""
    rng = np.random.default_rng(seed)
    phi, w = rng.normal(size=(n, d)), rng.normal(size=d)
    targets = phi @ w + 0.5 * rng.normal(size=n)
    targets[: int(share * n)] += 20.0
    return phi, targets, rng.uniform(0.2, 1.0, n), w


def numpy_scale(residuals, weights, multiple):
    """Weighted RMS of what lies within 1, twice .63 and again 1 times `multiple` RMS's, never within 1.5."""
    cautious = max(0.63, min(1.0, 1.5 / multiple))
    inside = np.ones(len(residuals), bool)
    scale = np.sqrt(np.average(residuals**2, weights=weights))
    for times in (cautious, cautious, 1.0):
        inside = np.abs(residuals) <= times * multiple * scale
        scale = np.sqrt(np.average(residuals[inside] ** 2, weights=weights[inside]))
    return scale


def numpy_huber(phi, targets, weights, multiple):
    """Root of Σ_i ω_i φ_i ψ(y_i − φ_iᵀw) = 0 at the clip that the least-squares residuals give."""
    root = np.sqrt(weights)
    first = np.linalg.lstsq(phi * root[:, None], targets * root, rcond=None)[0]
    clip = multiple * numpy_scale(targets - phi @ first, weights, multiple)

    def equation(w):
        return phi.T @ (weights * np.clip(targets - phi @ w, -clip, clip))

    def slope(w):
        inside = np.abs(targets - phi @ w) < clip
        return -(phi.T * (weights * inside)) @ phi

    solution = scipy.optimize.root(equation, first, jac=slope, tol=1e-14)
    assert np.abs(equation(solution.x)).max() < 1e-8
    return solution.x, clip


@pytest.mark.parametrize(("wide", "tolerance"), [(False, 1e-5), (True, 1e-12)])
def test_infinite_multiple_is_least_squares(wide, tolerance):
    phi, targets, weights, _ = sample()
    root = np.sqrt(weights)
    expected = np.linalg.lstsq(phi * root[:, None], targets * root, rcond=None)[0]
    with jax.enable_x64(wide):
        found = fit(*map(jnp.asarray, (phi, targets, weights, np.inf)))
        assert found.dtype == (jnp.float64 if wide else jnp.float32)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def test_rank_deficient_least_squares_has_minimal_norm(x64):
    phi, targets, _, _ = sample()
    phi = np.hstack([phi, phi[:, :2] - phi[:, 2:]])
    expected = np.linalg.lstsq(phi, targets, rcond=1e-10)[0]
    found = fit(*map(jnp.asarray, (phi, targets, np.ones(len(phi)), np.inf)))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(("wide", "tolerance"), [(False, 5e-6), (True, 1e-12)])
@pytest.mark.parametrize("multiple", [2.2, 3.2])
def test_finite_multiple_solves_hubers_equation(wide, tolerance, multiple):
    """Each of the eight passes shrinks the error by the share of the Gram matrix that is clipped."""
    phi, targets, weights, truth = sample()
    expected, clip = numpy_huber(phi, targets, weights, multiple)
    clipped = weights * (np.abs(targets - phi @ expected) > clip)
    assert clipped.any()
    shares = np.linalg.eigvals(np.linalg.solve((phi.T * weights) @ phi, (phi.T * clipped) @ phi)).real
    with jax.enable_x64(wide):
        found = fit(*map(jnp.asarray, (phi, targets, weights, multiple)))
        plain = fit(*map(jnp.asarray, (phi, targets, weights, np.inf)))
    left = 3 * shares.max() ** 8 * np.linalg.norm(plain - expected)
    assert left < 1e-3
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance + left)
    assert np.linalg.norm(found - truth) < 0.5 * np.linalg.norm(plain - truth)


@pytest.mark.parametrize(("wide", "tolerance"), [(False, 1e-6), (True, 1e-14)])
def test_residual_scale(wide, tolerance):
    rng = np.random.default_rng(2)
    residuals, weights = rng.normal(size=500), rng.uniform(0, 1, 500)
    residuals[:20] = 100.0
    with jax.enable_x64(wide):
        args = jnp.asarray(residuals), jnp.asarray(weights)
        for multiple in (2.0, 3.0, 5.0):
            np.testing.assert_allclose(
                scale_of(*args, multiple), numpy_scale(residuals, weights, multiple), rtol=tolerance
            )
        rms = np.sqrt(np.average(residuals**2, weights=weights))
        np.testing.assert_allclose(scale_of(*args, jnp.inf), rms, rtol=tolerance)


@pytest.mark.parametrize("epsilon", [0.05, 0.1, 0.2])
@pytest.mark.parametrize("size", [10.0, 1e3])
def test_residual_scale_is_not_that_of_the_outliers(epsilon, size):
    """An ε-fraction of equal lies makes the RMS √ε times their size: clipped at 1/√ε RMS's, none would go."""
    residuals = np.random.default_rng(5).normal(size=2000).astype(np.float32)
    residuals[: int(2000 * epsilon)] = size
    scale = scale_of(residuals, jnp.ones(2000), jnp.asarray(epsilon**-0.5))
    assert 0.7 < scale < 1.1  # clean tails are clipped as well, the more the larger ε is


@pytest.mark.parametrize("multiple", [1.0, 3.0, np.inf])
def test_vanishing_residuals_give_no_nan(multiple):
    phi = np.random.default_rng(3).normal(size=(30, 3)).astype(np.float32)
    ones = np.ones(30, np.float32)
    assert scale_of(jnp.zeros(30), ones, multiple) == 0
    np.testing.assert_array_equal(fit(phi, np.zeros(30, np.float32), ones, multiple), 0.0)
    exact = fit(phi, phi @ np.arange(3, dtype=np.float32), ones, multiple)
    np.testing.assert_allclose(exact, np.arange(3), atol=1e-5)
    slope = jax.grad(lambda t: jnp.sum(fit(phi, t, ones, multiple)))(jnp.zeros(30))
    assert np.isfinite(slope).all()
    assert huber_mean(jnp.full(5, 2.0), jnp.ones(5), multiple) == 2.0


def test_no_weight_gives_no_nan():
    assert not np.isnan(scale_of(jnp.ones(4), jnp.zeros(4), 2.0))
    assert not np.isnan(fit(jnp.ones((4, 2)), jnp.ones(4), jnp.zeros(4), 2.0)).any()


def test_derivative_of_least_squares(x64):
    """w is linear in the targets with coefficients G⁺Φᵀω: exact, and by central differences."""
    phi, targets, weights, _ = sample(n=12, d=3)
    probe = np.array([1.0, -2.0, 0.5])

    def value(t):
        return jnp.dot(probe, fit(phi, t, weights, jnp.inf))

    slope = jax.grad(value)(jnp.asarray(targets))
    exact = probe @ np.linalg.pinv((phi.T * weights) @ phi) @ (phi.T * weights)
    np.testing.assert_allclose(slope, exact, rtol=1e-10, atol=1e-12)
    shifts = 1e-3 * np.eye(12)
    differences = [(value(targets + s) - value(targets - s)) / 2e-3 for s in shifts]
    np.testing.assert_allclose(slope, differences, rtol=1e-8, atol=1e-10)


def test_derivative_holds_the_clip_factors_fixed(x64):
    """Eight passes w ← w + G⁺Φᵀω f (y − Φw), with f recorded along the way, give the derivative."""
    phi, targets, weights, _ = sample(n=60, d=3, share=0.1)
    direction = np.random.default_rng(1).normal(size=60)
    inverse = np.linalg.inv((phi.T * weights) @ phi)
    w = inverse @ phi.T @ (weights * targets)
    clip = 2.0 * numpy_scale(targets - phi @ w, weights, 2.0)
    change = inverse @ phi.T @ (weights * direction)
    for _ in range(8):
        residuals = targets - phi @ w
        factor = np.minimum(1.0, clip / np.abs(residuals))
        change = change + inverse @ phi.T @ (weights * factor * (direction - phi @ change))
        w = w + inverse @ phi.T @ (weights * factor * residuals)
    found, slope = jax.jvp(
        lambda t: fit(phi, t, weights, 2.0), (jnp.asarray(targets),), (jnp.asarray(direction),)
    )
    np.testing.assert_allclose(found, w, rtol=1e-10)
    np.testing.assert_allclose(slope, change, rtol=1e-9)


def test_multiple_of_a_fraction():
    assert regression.huber_multiple(jnp.asarray(0.0)) == jnp.inf
    np.testing.assert_allclose(regression.huber_multiple(jnp.asarray(0.25)), 2.0)


def test_huber_mean(x64):
    rng = np.random.default_rng(4)
    values, weights = rng.normal(size=200), rng.uniform(0.1, 1, 200)
    np.testing.assert_allclose(
        huber_mean(values, weights, jnp.inf), np.average(values, weights=weights), rtol=1e-12
    )
    values[:10] = 50.0
    expected, _ = numpy_huber(np.ones((200, 1)), values, weights, 3.0)
    np.testing.assert_allclose(huber_mean(values, weights, 3.0), expected[0], rtol=1e-8)


def test_a_residual_exactly_at_the_clip_counts(x64):
    """RMS 4, 1.25 of it 5: nothing lies beyond."""
    assert scale_of(jnp.array([5.0, 3.0]), jnp.array([7.0, 9.0]), 1.25) == 4.0


@pytest.mark.parametrize("multiple", [1.0, 1.2, 1.6])
def test_a_close_clip_is_not_drawn_closer(multiple, x64):
    """Below LEAST the first rounds clip at the multiple itself, above it at LEAST."""
    rng = np.random.default_rng(6)
    residuals, weights = rng.standard_t(3, 500), rng.uniform(0, 1, 500)
    found = scale_of(jnp.asarray(residuals), jnp.asarray(weights), multiple)
    np.testing.assert_allclose(found, numpy_scale(residuals, weights, multiple), rtol=1e-12)


def test_without_weight_no_scale_is_known():
    assert scale_of(jnp.ones(4), jnp.zeros(4), 2.0) == jnp.inf


def test_huber_weights_are_the_clip_over_the_residual(x64):
    phi, targets, weights, w = sample()
    residuals = targets - phi @ w
    scale = numpy_scale(residuals, weights, 2.0)
    for least, clip in ((0.0, 2 * scale), (10.0, 10.0)):
        found = weights_of(*map(jnp.asarray, (residuals, weights, 2.0, least)))
        np.testing.assert_allclose(found, weights * np.minimum(1.0, clip / np.abs(residuals)), rtol=1e-12)


def test_vanishing_residuals_keep_their_weight():
    weights = jnp.array([0.5, 1.0, 0.25])
    zero = jnp.zeros(())
    np.testing.assert_array_equal(weights_of(jnp.zeros(3), weights, 2.0 + zero, zero), weights)
    out, slope = jax.jvp(lambda r: regression.clipped(r, zero), (jnp.zeros(3),), (weights,))
    np.testing.assert_array_equal(out, 0.0)
    np.testing.assert_array_equal(slope, weights)


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_a_fit_from_a_start_makes_its_steps_with_the_clip_of_that_start(steps, x64):
    phi, targets, weights, truth = sample(n=60, d=3, share=0.1)
    inverse = np.linalg.inv((phi.T * weights) @ phi)
    w = start = truth + 0.3
    clip = 2.0 * numpy_scale(targets - phi @ start, weights, 2.0)
    for _ in range(steps):
        w = w + inverse @ phi.T @ (weights * np.clip(targets - phi @ w, -clip, clip))
    root = np.linalg.cholesky(inverse)
    args = map(jnp.asarray, (phi.T, targets, weights, root, 2.0, start))
    np.testing.assert_allclose(regression.huber_regression(*args, steps), w, rtol=1e-11)


def test_other_numbers_of_rows_are_refused():
    columns, ones = jnp.ones((2, 6)), jnp.ones(6)
    for targets, weights in ((ones[:1], ones), (ones, ones[:1])):
        with pytest.raises(AssertionError):
            regression.huber_regression(columns, targets, weights, jnp.eye(2), jnp.ones(()))


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_only_relative_weights_count_in_a_scale(unit, x64):
    residuals, weights = np.random.default_rng(2).normal(size=(2, 500))
    plain, other = (
        scale_of(jnp.asarray(residuals), by * jnp.asarray(weights) ** 2, 2.0) for by in (1.0, unit)
    )
    np.testing.assert_allclose(other, plain, rtol=1e-12)
