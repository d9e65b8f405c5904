"""Bradley–Terry likelihood against NumPy and SciPy in float64 and against automatic differentiation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from hypothesis import given
from hypothesis import strategies as st
from slow_parameters import slow

from robust_rlhf_jax.kernels import logistic

# Jitted: run eagerly, each of a kernel's operations would be compiled by itself.
log_likelihoods = jax.jit(logistic.log_likelihoods)
mean_log_likelihood = jax.jit(logistic.mean_log_likelihood)
value_gradient = jax.jit(logistic.value_gradient)
slope_of = jax.jit(jax.grad(logistic.mean_log_likelihood))
curvature_of = jax.jit(jax.hessian(logistic.mean_log_likelihood))

TOLERANCE = {False: 5e-6, True: 1e-12}


@jax.jit
def value_gradient_hessian(theta, x, labels, weights):
    """Mean log-likelihood, gradient and negative Hessian, as Newton's method takes them."""
    margins = logistic.margins_of(theta, x, labels)
    value, gradient = logistic.value_gradient_at(margins, x, labels, weights)
    return value, gradient, logistic.curvature_at(margins, x, weights)


@pytest.fixture(scope="module")
def sample():
    """(θ, x, labels, weights), float64 NumPy; some weights are zero."""
    rng = np.random.default_rng(0)
    x, theta = rng.normal(size=(60, 4)), rng.normal(size=4)
    labels = rng.choice([-1.0, 1.0], 60)
    weights = rng.uniform(0, 1, 60) * (rng.uniform(size=60) > 0.2)
    return theta, x, labels, weights


def oracle(theta, x, labels, weights):
    """Log-likelihoods, weighted mean, gradient and negative Hessian, one row at a time."""
    margins = labels * (x @ theta)
    each = scipy.special.log_expit(margins)
    total = weights.sum()
    gradient = sum(
        w * o * scipy.special.expit(-m) * row
        for w, o, m, row in zip(weights, labels, margins, x, strict=True)
    )
    curvature = scipy.special.expit(margins) * scipy.special.expit(-margins)
    hessian = sum(w * c * np.outer(row, row) for w, c, row in zip(weights, curvature, x, strict=True))
    return each, weights @ each / total, gradient / total, hessian / total


@pytest.mark.parametrize("wide", [slow(False), True])
def test_against_scipy(sample, wide):
    each, mean, gradient, hessian = oracle(*sample)
    tolerance = TOLERANCE[wide]
    with jax.enable_x64(wide):
        arrays = [jnp.asarray(part) for part in sample]
        np.testing.assert_allclose(log_likelihoods(*arrays[:3]), each, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(mean_log_likelihood(*arrays), mean, rtol=tolerance)
        two, three = value_gradient(*arrays), value_gradient_hessian(*arrays)
    for part in (*two, *three):
        assert part.dtype == (np.float64 if wide else np.float32)
    for found in (two, three):
        np.testing.assert_allclose(found[0], mean, rtol=tolerance)
        np.testing.assert_allclose(found[1], gradient, atol=tolerance)
    np.testing.assert_allclose(three[2], hessian, atol=tolerance)
    assert np.linalg.eigvalsh(three[2])[0] > 0


def test_against_automatic_differentiation(sample, x64):
    theta, *rest = (jnp.asarray(part) for part in sample)
    _, gradient, hessian = value_gradient_hessian(theta, *rest)
    np.testing.assert_allclose(gradient, slope_of(theta, *rest), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(hessian, -curvature_of(theta, *rest), rtol=1e-11, atol=1e-15)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("margin", [1e4, -1e4])
def test_extreme_margins_stay_finite(wide, margin):
    with jax.enable_x64(wide):
        x, ones = jnp.array([[margin, 0.0], [margin, 0.0]]), jnp.ones(2)
        theta = jnp.array([1.0, 0.0])
        value, gradient, hessian = value_gradient_hessian(theta, x, ones, ones)
        slope = slope_of(theta, x, ones, ones)
    np.testing.assert_allclose(value, min(margin, 0.0), atol=1e-30)
    np.testing.assert_allclose(gradient, [margin if margin < 0 else 0.0, 0.0], rtol=1e-6)
    np.testing.assert_allclose(slope, gradient, rtol=1e-6)
    assert np.isfinite(hessian).all()


def test_small_likelihoods_keep_their_relative_precision():
    """log σ(20) = −2.06e-9 in float32, not 0."""
    found = log_likelihoods(jnp.ones(1), jnp.array([[20.0], [-20.0]]), jnp.ones(2))
    np.testing.assert_allclose(found, scipy.special.log_expit([20.0, -20.0]), rtol=1e-5)


@pytest.mark.parametrize("margin", [2.0, 8.0, 14.0, 20.0])
def test_curvature_does_not_depend_on_the_label(margin):
    """σ(m)σ(−m) is even, however badly the label fits: Newton's method divides by it."""
    x, ones = jnp.array([[margin]]), jnp.ones(1)
    expected = margin**2 * scipy.special.expit(margin) * scipy.special.expit(-margin)
    for label in (1.0, -1.0):
        curvature = value_gradient_hessian(ones, x, label * ones, ones)[2]
        np.testing.assert_allclose(curvature, expected, rtol=1e-5)


signs = st.lists(st.sampled_from([-1.0, 1.0]), min_size=6, max_size=6)


@given(st.integers(0, 1000), signs, st.floats(0.1, 50.0))
def test_symmetries(seed, flips, scale):
    """Swapping (x, o) → (−x, −o) changes nothing; only relative weights count; zero weight is absence."""
    rng = np.random.default_rng(seed)
    x, theta, weights = rng.normal(size=(6, 3)), rng.normal(size=3), rng.uniform(0.1, 1, 6)
    labels, flips = rng.choice([-1.0, 1.0], 6), np.array(flips)
    with jax.enable_x64(True):
        plain = value_gradient_hessian(*map(jnp.asarray, (theta, x, labels, weights)))
        swapped = value_gradient_hessian(
            *map(jnp.asarray, (theta, flips[:, None] * x, flips * labels, scale * weights))
        )
        absent = value_gradient_hessian(
            *map(
                jnp.asarray,
                (theta, np.vstack([x, 100 * x[:1]]), np.append(labels, 1.0), np.append(weights, 0.0)),
            )
        )
    for part, same, also in zip(plain, swapped, absent, strict=True):
        np.testing.assert_allclose(same, part, rtol=1e-11, atol=1e-14)
        np.testing.assert_allclose(also, part, rtol=1e-11, atol=1e-14)
    total = np.exp(scipy.special.log_expit(labels * (x @ theta)))
    other = np.exp(np.asarray(log_likelihoods(*map(jnp.asarray, (theta, x, -labels)))))
    np.testing.assert_allclose(total + other, 1.0, rtol=1e-5)


def test_null_direction_of_theta_changes_no_likelihood(x64):
    rng = np.random.default_rng(4)
    x = rng.dirichlet(np.ones(3), 20) - rng.dirichlet(np.ones(3), 20)
    labels = np.ones(20)
    args = lambda shift: map(jnp.asarray, (np.arange(3.0) + shift, x, labels))  # noqa: E731
    np.testing.assert_allclose(log_likelihoods(*args(5.0)), log_likelihoods(*args(0.0)), rtol=1e-12)


@pytest.mark.slow
def test_the_parts_at_known_margins_are_those_of_theta(sample, x64):
    theta, x, labels, weights = (jnp.asarray(part) for part in sample)
    margins = logistic.margins_of(theta, x, labels)
    np.testing.assert_allclose(margins, np.asarray(labels) * (np.asarray(x) @ np.asarray(theta)), rtol=1e-12)
    _, mean, gradient, hessian = oracle(*sample)
    value, slope = logistic.value_gradient_at(margins, x, labels, weights)
    np.testing.assert_allclose(value, mean, rtol=1e-12)
    np.testing.assert_allclose(slope, gradient, atol=1e-13)
    np.testing.assert_allclose(logistic.curvature_at(margins, x, weights), hessian, atol=1e-13)
    np.testing.assert_allclose(logistic.curvature(theta, x, labels, weights), hessian, atol=1e-13)


def test_the_variance_of_a_label_keeps_its_digits_where_the_sigmoid_rounds_to_one():
    margins = jnp.asarray([0.0, 1.5, -1.5, 30.0, -60.0])
    wide = np.asarray(margins, np.float64)
    expected = scipy.special.expit(wide) * scipy.special.expit(-wide)
    np.testing.assert_allclose(logistic.label_variance(margins), expected, rtol=1e-5)


def test_other_numbers_of_rows_are_refused(sample):
    theta, x, labels, weights = (jnp.asarray(part) for part in sample)
    with pytest.raises(AssertionError):
        logistic.margins_of(theta, x, labels[:1])
    with pytest.raises(AssertionError):
        logistic.value_gradient_at(labels, x, labels, weights[:1])
