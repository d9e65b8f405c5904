"""Products with the curvature, its trace and its leverages against the matrix itself."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.rewards import RobustFit, fisher_products
from robust_rlhf_jax.rewards.posterior_fit import (
    Fit,
    first_fit,
    margin_covariance,
    optimism,
    optimism_of,
    refit,
)

from .wide_worlds import K, N, unit_free_pairs, whitened

KINDS = [{}, {"heavy": True}, {"planted": N // 10}]
trace_left = jax.jit(fisher_products.trace_left)
leverages = jax.jit(fisher_products.leverages)
exact_leverages = jax.jit(fisher_products.exact_leverages)
optimistic, settle = jax.jit(optimism), jax.jit(lambda *given: refit(*given, RobustFit()))


@functools.cache
def stated(strength=30.0, **given):
    """(pairs, weights, margins, precision) of a fit of margins of length 1."""
    pairs = unit_free_pairs(**given)
    rng = np.random.default_rng(4)
    t = jnp.asarray(rng.normal(size=pairs.rows.shape[1]), jnp.float32) / 12.0
    weights = jnp.asarray(rng.uniform(0.5, 1.0, N), jnp.float32)
    return pairs, weights, t, strength * pairs.penalty


@jax.jit
def curvature(pairs, weights, t, precision):
    return fisher_products.curvature_of(pairs, weights, pairs.margins(t), precision)


def dense(pairs, weights, t, precision):
    """H in NumPy."""
    y = np.asarray(pairs.rows, np.float64)
    chance = 1.0 / (1.0 + np.exp(-y @ np.asarray(t, np.float64)))
    return (y.T * (np.asarray(weights) * chance * (1 - chance))) @ y + np.diag(np.asarray(precision))


@pytest.mark.slow
@pytest.mark.parametrize("given", KINDS)
def test_products_and_solutions(given):
    given = stated(**given)
    h, known = dense(*given), curvature(*given)
    right = np.random.default_rng(0).normal(size=(3, len(h))).astype(np.float32)
    np.testing.assert_allclose(known.products(right), right @ h, rtol=1e-3, atol=1e-2)
    solved = np.linalg.solve(h, right.T).T
    found = jax.jit(lambda c, right: c.solve(right))(known, right)
    assert np.linalg.norm(found - solved) < 0.02 * np.linalg.norm(solved)


@pytest.mark.parametrize("strength", [3.0, 100.0])
@pytest.mark.parametrize("given", KINDS)
def test_the_trace_is_known_to_a_percent(given, strength):
    given = stated(strength, **given)
    exact = np.trace(np.linalg.inv(dense(*given)) * np.asarray(given[3]))
    np.testing.assert_allclose(trace_left(curvature(*given)), exact, rtol=0.02)


@functools.cache
def dense_leverages(**given):
    """yᵀH⁻¹y of each row of the fit that is `stated`, in NumPy."""
    given = stated(**given)
    y = np.asarray(given[0].rows)
    return np.sum(y * np.linalg.solve(dense(*given), y.T).T, axis=1)


@pytest.mark.parametrize("given", KINDS)
def test_leverages_row_by_row_and_in_all(given):
    exact, known = dense_leverages(**given), curvature(*stated(**given))
    found = np.mean(np.asarray(leverages(known)), axis=0)
    # Relative noise of √(2/draws).
    spread = np.std(found / exact)
    assert spread < 1.5 * np.sqrt(2.0 / fisher_products.DRAWS)
    np.testing.assert_allclose(
        found @ np.asarray(known.variance), exact @ np.asarray(known.variance), rtol=0.01
    )


@pytest.mark.parametrize("given", KINDS)
def test_optimism_is_that_of_exact_leverages(given):
    """Five rows an axis: as few as are drawn."""
    (pairs, weights, t, precision), exact = stated(**given), dense_leverages(**given)
    expected = optimism_of(pairs.margins(t), weights, weights * jnp.asarray(exact, jnp.float32))
    fit = Fit(t, jnp.float32(30.0), precision, jnp.int32(0))
    np.testing.assert_allclose(optimistic(pairs, weights, fit), expected, rtol=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("n", [K - 10, K, K + 1, 2 * K])
def test_optimism_of_few_rows_is_that_of_float64(n):
    """As few rows as axes: the penalties along these are up to 10⁷ times apart, and take no digits from one another."""
    rng = np.random.default_rng(n)
    x, theta = rng.normal(size=(n, K)), rng.normal(size=K) * 2.0 / np.sqrt(K)
    labels = np.where(rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-x @ theta)), 1.0, -1.0)
    pairs = whitened(jnp.asarray(x, jnp.float32), jnp.asarray(labels, jnp.float32))
    weights = jnp.asarray(rng.uniform(size=n) < 0.9, jnp.float32)
    fit = first_fit(pairs)
    for _ in range(3):
        fit = settle(pairs, weights, fit)
    live = np.asarray(fit.factor) > 0
    h = dense(pairs, weights, fit.t, fit.factor)[np.ix_(live, live)]
    y = np.asarray(pairs.rows, np.float64)[:, live]
    exact = np.sum(y * np.linalg.solve(h, y.T).T, axis=1)
    found = exact_leverages(curvature(pairs, weights, fit.t, fit.factor))
    np.testing.assert_allclose(found, exact, rtol=1e-4)
    expected = optimism_of(pairs.margins(fit.t), weights, weights * jnp.asarray(exact, jnp.float32))
    np.testing.assert_allclose(optimistic(pairs, weights, fit), expected, rtol=1e-4)
    prior = margin_covariance(pairs)
    assert (prior is None) == (n > K)
    if prior is not None:
        np.testing.assert_allclose(optimistic(pairs, weights, fit, prior), expected, rtol=1e-4)
