"""Smoothed gradients against closed forms, gated at five standard errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from slow_parameters import slow

from robust_rlhf_jax.kernels.smoothing import DIRECTIONS, TRUNCATION, sample_directions, smoothed_gradient

K = 6
ROOT = np.random.default_rng(0).normal(size=(K, K))
SLOPE, THETA = np.random.default_rng(1).normal(size=(2, K))
MATRIX = ROOT @ ROOT.T / K
# One program each: step by step, every operation would be compiled by itself.
gradient_of = jax.jit(
    smoothed_gradient,
    static_argnums=0,
    static_argnames=("n_directions", "directions", "antithetic", "chunk"),
)


def linear(theta):
    return theta @ jnp.asarray(SLOPE, theta.dtype)


def quadratic(theta):
    return 0.5 * theta @ jnp.asarray(MATRIX, theta.dtype) @ theta


@pytest.mark.parametrize("directions", DIRECTIONS)
@pytest.mark.parametrize("antithetic", [False, True])
@pytest.mark.parametrize(("f", "slope"), [slow(linear, SLOPE), (quadratic, MATRIX @ THETA)])
def test_mean_is_the_gradient(f, slope, directions, antithetic, x64):
    def once(key):
        return smoothed_gradient(
            f, jnp.asarray(THETA), key, smoothing_std=0.3, n_directions=2 * K,
            directions=directions, antithetic=antithetic,
        ).gradient  # fmt: skip

    found = np.asarray(jax.jit(jax.vmap(once))(jax.random.split(jax.random.key(0), 4000)))
    error = np.std(found, axis=0) / np.sqrt(len(found))
    assert (np.abs(np.mean(found, axis=0) - slope) <= 5 * error + 1e-9).all()
    # A sample without finite variance has this mean as well.
    assert (error <= 0.02 * np.linalg.norm(slope)).all()


def test_standard_error_is_that_of_repeated_runs(x64):
    def once(key):
        found = smoothed_gradient(quadratic, jnp.asarray(THETA), key, smoothing_std=0.3, n_directions=64)
        return found.gradient, found.standard_error**2

    gradients, squares = map(np.asarray, jax.jit(jax.vmap(once))(jax.random.split(jax.random.key(1), 2000)))
    np.testing.assert_allclose(np.var(gradients, axis=0), np.mean(squares, axis=0), rtol=0.25)


@pytest.mark.parametrize("chunk", [1, 5, 64])
def test_chunks_change_nothing(chunk, x64):
    args = (quadratic, jnp.asarray(THETA), jax.random.key(2))
    whole = gradient_of(*args, smoothing_std=0.1, n_directions=20, chunk=32)
    found = gradient_of(*args, smoothing_std=0.1, n_directions=20, chunk=chunk)
    np.testing.assert_allclose(found.gradient, whole.gradient, rtol=1e-10)
    np.testing.assert_allclose(found.value, quadratic(jnp.asarray(THETA)), rtol=1e-12)


def test_two_antithetic_evaluations_are_one_direction_and_its_opposite(x64):
    """Whatever the slope, the estimate of one direction u is along u."""
    first, second = (
        gradient_of(
            lambda t, axis=axis: t[axis], jnp.zeros(K), jax.random.key(4),
            smoothing_std=0.5, n_directions=2, directions="normal", antithetic=True,
        ).gradient
        for axis in (0, 1)
    )  # fmt: skip
    cosine = first @ second / (jnp.linalg.norm(first) * jnp.linalg.norm(second))
    np.testing.assert_allclose(abs(cosine), 1.0, rtol=1e-12)


def test_antithetic_pairs_do_not_see_even_functions(x64):
    found = gradient_of(
        quadratic, jnp.zeros(K), jax.random.key(3), smoothing_std=0.5, n_directions=10, antithetic=True
    )
    np.testing.assert_allclose(found.gradient, 0.0, atol=1e-14)


@pytest.mark.slow
def test_directions(x64):
    u = np.asarray(sample_directions(jax.random.key(4), 2 * K, K, "orthogonal", jnp.float64))
    for block in (u[:K], u[K:]):
        gram = block @ block.T
        np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-10)
    cut = np.asarray(sample_directions(jax.random.key(5), 200_000, 2, "truncated", jnp.float64))
    np.testing.assert_allclose(np.mean(cut**2), 1.0, atol=5 * np.sqrt(2 / cut.size))
    assert TRUNCATION * 0.9 < np.abs(cut).max() < TRUNCATION * 1.01


@pytest.mark.slow
def test_smoothing_bias_and_subgradient_inequality(x64):
    """f = max of linear pieces: 0 ≤ f_μ − f ≤ μL√k, and ∇f_μ supports f up to μL√k (5 standard errors)."""
    pieces = jnp.asarray(np.random.default_rng(6).normal(size=(8, K)))
    lipschitz, std = float(jnp.max(jnp.linalg.norm(pieces, axis=1))), 0.2
    bound = std * lipschitz * K**0.5

    def f(theta):
        return jnp.max(pieces @ theta)

    theta = jnp.asarray(THETA)
    u = sample_directions(jax.random.key(7), 20_000, K, dtype=jnp.float64)
    values = jax.vmap(f)(theta + std * u)
    error = 5 * float(jnp.std(values)) / len(values) ** 0.5
    assert -error <= float(jnp.mean(values) - f(theta)) <= bound + error
    found = gradient_of(f, theta, jax.random.key(8), smoothing_std=std, n_directions=20_000, chunk=500)
    for other in np.random.default_rng(9).normal(size=(20, K)):
        step = other - THETA
        slack = 5 * np.linalg.norm(found.standard_error * step) + bound
        assert f(jnp.asarray(other)) >= f(theta) + found.gradient @ step - slack


@pytest.mark.slow
@pytest.mark.parametrize("directions", DIRECTIONS)
@pytest.mark.parametrize("n_directions", [2, 4, 14])
def test_gradient_error_and_value_are_those_of_their_definition(n_directions, directions, x64):
    """One-sided differences over K directions; the error is the deviation of the mean of independent samples."""
    key, std = jax.random.key(10), 0.3
    found = gradient_of(
        quadratic,
        jnp.asarray(THETA),
        key,
        smoothing_std=std,
        n_directions=n_directions,
        directions=directions,
    )
    u = np.asarray(sample_directions(key, n_directions, K, directions, jnp.float64))
    at = lambda points: 0.5 * np.einsum("ni,ij,nj->n", points, MATRIX, points)  # noqa: E731
    here = at(THETA[None])[0]
    samples = ((at(THETA + std * u) - here) / std)[:, None] * u
    np.testing.assert_allclose(found.gradient, samples.mean(axis=0), rtol=1e-9)
    error = samples.std(axis=0, ddof=1) / np.sqrt(n_directions)
    np.testing.assert_allclose(found.standard_error, error, rtol=1e-8)
    np.testing.assert_allclose(found.value, here, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("n_directions", [4, 14])
def test_antithetic_parts_are_those_of_their_definition(n_directions, x64):
    """Central differences over K/2 directions; the value is the mean over all evaluations."""
    key, std = jax.random.key(11), 0.3
    found = gradient_of(
        lambda t: jnp.sum(t**3), jnp.asarray(THETA), key,
        smoothing_std=std, n_directions=n_directions, antithetic=True,
    )  # fmt: skip
    u = np.asarray(sample_directions(key, n_directions // 2, K, dtype=jnp.float64))
    above, below = (((THETA + side * std * u) ** 3).sum(axis=1) for side in (1, -1))
    samples = ((above - below) / (2 * std))[:, None] * u
    np.testing.assert_allclose(found.gradient, samples.mean(axis=0), rtol=1e-9)
    error = samples.std(axis=0, ddof=1) / np.sqrt(n_directions // 2)
    np.testing.assert_allclose(found.standard_error, error, rtol=1e-8)
    np.testing.assert_allclose(found.value, np.mean([above, below]), rtol=1e-12)


@pytest.mark.parametrize(("n_directions", "antithetic"), [(1, False), (2, True)])
def test_a_single_direction_has_no_error_to_report(n_directions, antithetic):
    found = gradient_of(
        linear, jnp.asarray(THETA, jnp.float32), jax.random.key(12),
        smoothing_std=0.5, n_directions=n_directions, antithetic=antithetic,
    )  # fmt: skip
    np.testing.assert_array_equal(found.standard_error, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", DIRECTIONS)
@pytest.mark.parametrize("count", [1, K, 2 * K + 1])
def test_directions_have_the_shape_and_precision_asked_for(count, kind, x64):
    for dtype in (jnp.float32, jnp.float64):
        found = sample_directions(jax.random.key(0), count, K, kind, dtype)
        assert found.shape == (count, K)
        assert found.dtype == dtype
    assert sample_directions(jax.random.key(0), count, K, kind).dtype == jnp.float32


def test_truncated_directions_are_scaled_to_unit_variance(x64):
    key, limits = jax.random.key(5), (-TRUNCATION, TRUNCATION)
    found = sample_directions(key, 7, 2, "truncated", jnp.float64)
    raw = jax.random.truncated_normal(key, *limits, (7, 2), jnp.float64)
    np.testing.assert_allclose(found, raw / scipy.stats.truncnorm(*limits).std(), rtol=1e-10)


@pytest.mark.slow
def test_orthogonal_directions_have_the_lengths_of_normal_vectors(x64):
    u = np.asarray(sample_directions(jax.random.key(6), 4000, 4, "orthogonal", jnp.float64))
    assert scipy.stats.kstest(np.sum(u**2, axis=1), scipy.stats.chi2(4).cdf).pvalue > 1e-3
    assert scipy.stats.kstest(u[:, 1], scipy.stats.norm.cdf).pvalue > 1e-3


def test_directions_are_normal_unless_another_kind_is_named():
    key = jax.random.key(7)
    np.testing.assert_array_equal(sample_directions(key, 5, K), jax.random.normal(key, (5, K)))
    plain = gradient_of(linear, jnp.zeros(K), key, smoothing_std=0.5, n_directions=5)
    named = gradient_of(linear, jnp.zeros(K), key, smoothing_std=0.5, n_directions=5, directions="normal")
    np.testing.assert_array_equal(plain.gradient, named.gradient)


def test_options_must_be_named():
    with pytest.raises(TypeError):
        smoothed_gradient(linear, jnp.zeros(K), jax.random.key(0), 0.5, 4)
    with pytest.raises(AssertionError):
        smoothed_gradient(
            linear, jnp.zeros((1, K)), jax.random.key(0), smoothing_std=jnp.ones(()), n_directions=4
        )
