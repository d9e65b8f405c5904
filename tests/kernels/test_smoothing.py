"""Smoothed gradients against closed forms, gated at five standard errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.kernels.smoothing import DIRECTIONS, TRUNCATION, sample_directions, smoothed_gradient

K = 6
ROOT = np.random.default_rng(0).normal(size=(K, K))
SLOPE, THETA = np.random.default_rng(1).normal(size=(2, K))
MATRIX = ROOT @ ROOT.T / K


def linear(theta):
    return theta @ jnp.asarray(SLOPE, theta.dtype)


def quadratic(theta):
    return 0.5 * theta @ jnp.asarray(MATRIX, theta.dtype) @ theta


@pytest.mark.parametrize("directions", DIRECTIONS)
@pytest.mark.parametrize("antithetic", [False, True])
@pytest.mark.parametrize(("f", "slope"), [(linear, SLOPE), (quadratic, MATRIX @ THETA)])
def test_mean_is_the_gradient(f, slope, directions, antithetic, x64):
    def once(key):
        return smoothed_gradient(
            f, jnp.asarray(THETA), key, smoothing_std=0.3, n_directions=2 * K,
            directions=directions, antithetic=antithetic,
        ).gradient  # fmt: skip

    found = jax.jit(jax.vmap(once))(jax.random.split(jax.random.key(0), 4000))
    error = np.std(found, axis=0) / np.sqrt(len(found))
    assert (np.abs(np.mean(found, axis=0) - slope) <= 5 * error + 1e-9).all()
    # A sample without finite variance has this mean as well.
    assert (error <= 0.02 * np.linalg.norm(slope)).all()


def test_standard_error_is_that_of_repeated_runs(x64):
    def once(key):
        found = smoothed_gradient(quadratic, jnp.asarray(THETA), key, smoothing_std=0.3, n_directions=64)
        return found.gradient, found.standard_error**2

    gradients, squares = jax.jit(jax.vmap(once))(jax.random.split(jax.random.key(1), 2000))
    np.testing.assert_allclose(np.var(gradients, axis=0), np.mean(squares, axis=0), rtol=0.25)


@pytest.mark.parametrize("chunk", [1, 5, 64])
def test_chunks_change_nothing(chunk, x64):
    args = (quadratic, jnp.asarray(THETA), jax.random.key(2))
    whole = smoothed_gradient(*args, smoothing_std=0.1, n_directions=20, chunk=32)
    found = smoothed_gradient(*args, smoothing_std=0.1, n_directions=20, chunk=chunk)
    np.testing.assert_allclose(found.gradient, whole.gradient, rtol=1e-10)
    np.testing.assert_allclose(found.value, quadratic(jnp.asarray(THETA)), rtol=1e-12)


def test_two_antithetic_evaluations_are_one_direction_and_its_opposite(x64):
    """Whatever the slope, the estimate of one direction u is along u."""
    first, second = (
        smoothed_gradient(
            lambda t, axis=axis: t[axis], jnp.zeros(K), jax.random.key(4),
            smoothing_std=0.5, n_directions=2, directions="normal", antithetic=True,
        ).gradient
        for axis in (0, 1)
    )  # fmt: skip
    cosine = first @ second / (jnp.linalg.norm(first) * jnp.linalg.norm(second))
    np.testing.assert_allclose(abs(cosine), 1.0, rtol=1e-12)


def test_antithetic_pairs_do_not_see_even_functions(x64):
    found = smoothed_gradient(
        quadratic, jnp.zeros(K), jax.random.key(3), smoothing_std=0.5, n_directions=10, antithetic=True
    )
    np.testing.assert_allclose(found.gradient, 0.0, atol=1e-14)


def test_directions(x64):
    u = np.asarray(sample_directions(jax.random.key(4), 2 * K, K, "orthogonal", jnp.float64))
    for block in (u[:K], u[K:]):
        gram = block @ block.T
        np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-10)
    cut = np.asarray(sample_directions(jax.random.key(5), 200_000, 2, "truncated", jnp.float64))
    np.testing.assert_allclose(np.mean(cut**2), 1.0, atol=5 * np.sqrt(2 / cut.size))
    assert TRUNCATION * 0.9 < np.abs(cut).max() < TRUNCATION * 1.01


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
    found = smoothed_gradient(f, theta, jax.random.key(8), smoothing_std=std, n_directions=20_000, chunk=500)
    for other in np.random.default_rng(9).normal(size=(20, K)):
        step = other - THETA
        slack = 5 * np.linalg.norm(found.standard_error * step) + bound
        assert f(jnp.asarray(other)) >= f(theta) + found.gradient @ step - slack
