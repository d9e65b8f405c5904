"""The robust covariance: an independent NumPy filter, classical limits, and contaminated data."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.covariance import MinCovDet
from slow_parameters import slow

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.kernels import spectral
from robust_rlhf_jax.moments import covariance, robust_covariance
from robust_rlhf_jax.moments.covariance import (
    LONGEST_SCORED,
    CovarianceFilter,
    _covariance_problem,
    filter_whitened,
)
from robust_rlhf_jax.moments.influence import bounded_rows

from .contaminated_rows import EPSILON, above, contaminated


def check_moments(found, sigma, rank, tolerance):
    """Covariance, its roots and its rank belong together."""
    np.testing.assert_allclose(found.covariance, sigma, rtol=tolerance, atol=tolerance)
    assert found.rank == rank
    whitener, colourer = np.asarray(found.whitener), np.asarray(found.colourer)
    span = whitener @ colourer
    np.testing.assert_allclose(colourer @ colourer, sigma, atol=10 * tolerance)
    np.testing.assert_allclose(span, span @ span, atol=100 * tolerance)
    np.testing.assert_allclose(np.trace(span), rank, rtol=100 * tolerance)


@pytest.mark.parametrize(
    ("wide", "tolerance", "centred"),
    [(False, 1e-5, False), slow(False, 1e-5, True), slow(True, 1e-11, False), (True, 1e-11, True)],
)
@pytest.mark.parametrize("rank", [5, 3])
def test_covariance_without_corruption(wide, tolerance, centred, rank):
    rng = np.random.default_rng(8)
    x = rng.normal(size=(1000, rank)) @ rng.normal(size=(rank, 5))
    if rank == 5 or not centred:  # else the mean would be a direction of its own
        x = x + 0.5
    with jax.enable_x64(wide):
        found = robust_covariance(jnp.asarray(x), 0.0, assume_centered=centred)
        assert found.covariance.dtype == (jnp.float64 if wide else jnp.float32)
    sigma = x.T @ x / len(x) if centred else np.cov(x, rowvar=False, ddof=0)
    check_moments(found, sigma, rank, tolerance)
    np.testing.assert_allclose(found.mean, 0.0 if centred else x.mean(axis=0), atol=10 * tolerance)
    np.testing.assert_array_equal(found.weights, 1.0)
    assert found.steps == 0
    assert found.status == Status.CONVERGED


def relative_error(found, sigma):
    """‖Σ^{-1/2}(Σ̂ − Σ)Σ^{-1/2}‖₂."""
    root = np.linalg.inv(np.linalg.cholesky(sigma))
    return np.abs(np.linalg.eigvalsh(root @ (np.asarray(found, float) - sigma) @ root.T)).max()


@pytest.mark.parametrize("kind", ["spike", slow("point"), slow("two_clusters"), slow("far")])
def test_contaminated_covariance(kind):
    """Far below the empirical covariance, and of the order of the minimum covariance determinant."""
    mixing = np.random.default_rng(9).normal(size=(5, 5))
    z, clean = contaminated(kind, seed=2)
    x = z @ mixing.T
    oracle = np.cov(x[clean], rowvar=False, ddof=0)
    found = robust_covariance(x.astype(np.float32), EPSILON)
    error = relative_error(found.covariance, oracle)
    mcd = MinCovDet(assume_centered=False, support_fraction=1 - EPSILON, random_state=0).fit(x)
    # Clean tails go with the corrupt rows: ε log(1/ε), with the constant 2 of the fourth moment.
    assert error < 2 * EPSILON * np.log(1 / EPSILON)
    assert error < 0.25 * relative_error(np.cov(x, rowvar=False, ddof=0), oracle)
    assert error < 3 * relative_error(mcd.covariance_, oracle) + 0.1
    assert np.mean(np.asarray(found.weights)[~clean]) < 0.05
    assert np.mean(np.asarray(found.weights)[clean]) > 1 - 2 * EPSILON


def test_covariance_is_affinely_equivariant(x64):
    """The degree-2 filter whitens by its own estimate: any basis gives the same weights."""
    x, _ = contaminated("spike", seed=6)
    mixing = np.random.default_rng(11).normal(size=(5, 5))
    plain = robust_covariance(jnp.asarray(x), EPSILON)
    mixed = robust_covariance(jnp.asarray(x @ mixing.T), EPSILON)
    np.testing.assert_allclose(np.mean(np.abs(mixed.weights - plain.weights)), 0.0, atol=1e-2)
    assert relative_error(mixed.covariance, mixing @ np.asarray(plain.covariance) @ mixing.T) < 0.02


def test_the_covariance_filter_returns_a_bound_on_its_top_eigenvalue():
    x, _ = contaminated("spike")
    for epsilon in (0.0, EPSILON):
        found = robust_covariance(jnp.asarray(x), epsilon)
        assert found.top_eigenvalue <= found.top_bound <= 1.15 * found.top_eigenvalue


def test_the_covariance_filter_stops_at_the_level_of_normal_rows(x64):
    """2(1 + √(r(r+1)/2n))², with the budget of the mean's filter."""
    rows = jnp.ones((200, 4))
    problem = _covariance_problem(rows, jnp.asarray(0.1), 3)
    np.testing.assert_allclose(problem.level, 2 * (1 + np.sqrt(6 / 200)) ** 2, rtol=1e-12)
    np.testing.assert_allclose(problem.budget, 40.0, rtol=1e-12)
    np.testing.assert_allclose(_covariance_problem(rows, jnp.asarray(0.1), 3, 0.05).budget, 50.0, rtol=1e-12)
    assert problem.epsilon == 0.1
    assert problem.x is rows


def test_weights_of_white_rows_are_those_of_the_covariance(x64):
    z, _ = contaminated("spike", seed=3)
    expected = robust_covariance(jnp.asarray(z), EPSILON, assume_centered=True)
    found = jax.jit(filter_whitened)(jnp.asarray(z), jnp.asarray(EPSILON), 5, jnp.ones(len(z)))
    np.testing.assert_allclose(found, expected.weights, atol=1e-9)
    assert found.sum() < 950


@pytest.mark.parametrize("centred", [False, True])
def test_whitened_rows_have_unit_moments_and_no_endless_length(centred, x64):
    rng = np.random.default_rng(18)
    x, weights = rng.normal(size=(60, 3)) + 1.0, rng.uniform(0.5, 1.0, 60)
    x[0], weights[0] = 1e9, 1e-20
    y = np.asarray(jax.jit(CovarianceFilter(centred).whitened)(x, weights))
    np.testing.assert_allclose((y[1:].T * weights[1:]) @ y[1:] / weights.sum(), np.eye(3), atol=0.05)
    np.testing.assert_allclose(np.linalg.norm(y[0]), LONGEST_SCORED, rtol=1e-9)
    if not centred:
        np.testing.assert_allclose(weights[1:] @ y[1:] / weights.sum(), 0.0, atol=1e-9)


def test_a_covariance_filter_takes_rows_for_centred_unless_told():
    assert CovarianceFilter().assume_centered


@pytest.mark.slow
@pytest.mark.parametrize("rank", [3, 2])
def test_roots_of_a_covariance_in_units_far_apart(rank, x64):
    rng = np.random.default_rng(19)
    units = np.array([1e-3, 1.0, 1e3])
    x = rng.normal(size=(100, rank)) @ rng.normal(size=(rank, 3)) * units
    found = robust_covariance(jnp.asarray(x), 0.0)
    sigma = np.cov(x, rowvar=False, ddof=0)
    values, vectors = np.linalg.eigh(sigma)
    roots = np.where(values > 1e-14 * values[-1], np.sqrt(np.maximum(values, 0.0)), 0.0)
    assert found.rank == np.sum(roots > 0) == rank
    colourer = (vectors * roots) @ vectors.T
    np.testing.assert_allclose(found.colourer, colourer, atol=1e-8 * roots[-1])
    span = vectors * (roots > 0) @ vectors.T
    np.testing.assert_allclose(found.whitener @ found.colourer, span, atol=1e-6)
    # What the whitener makes of the rows has unit variance in as many directions as they have.
    y = (x - x.mean(axis=0)) @ np.asarray(found.whitener)
    np.testing.assert_allclose(np.linalg.eigvalsh(y.T @ y / 100), np.arange(3) >= 3 - rank, atol=1e-5)


def test_columns_of_zeros_and_of_signs_are_not_beyond_the_range():
    """A variance of 0 is lost only where the rows have one, and 1 is a variance like any other."""
    x = np.ones((1000, 5), np.float32)
    x[::2, 1], x[:, 2] = -1.0, 0.0
    found = robust_covariance(x, 0.0, assume_centered=True)
    assert found.status == Status.CONVERGED
    assert found.rank == 2
    np.testing.assert_allclose(np.diag(found.covariance), [1.0, 1.0, 0.0, 1.0, 1.0], rtol=1e-6)


@pytest.mark.slow
def test_long_rows_of_a_covariance_are_shortened_unless_all_are_trusted(x64):
    x, _ = contaminated("clean")
    x[7] *= 1e9
    bounded = np.asarray(bounded_rows(jnp.asarray(x), jnp.asarray(EPSILON)))
    assert np.linalg.norm(bounded[7]) < 1e6
    for epsilon, rows in ((0.0, x), (EPSILON, bounded)):
        found = robust_covariance(jnp.asarray(x), epsilon, assume_centered=True, max_steps=0)
        np.testing.assert_allclose(found.covariance, rows.T @ rows / 1000, rtol=1e-9)


def numpy_filter_covariance(x, epsilon):
    """The filter of degree 2 from its description, the d²×d² covariance formed and applied; rows centred at 0."""
    n, d = x.shape
    level = 2.0 * (1.0 + np.sqrt(d * (d + 1) / 2 / n)) ** 2
    weights = np.ones(n)
    for step in range(65):
        values, vectors = np.linalg.eigh((x.T * weights) @ x / weights.sum())
        y = x @ vectors / np.sqrt(values)
        squares = np.einsum("ni,nj->nij", y, y).reshape(n, -1)
        squares = squares - np.average(squares, axis=0, weights=weights)
        top = np.kron(*2 * [y[np.argmax(weights * np.sum(y**2, axis=1))]])
        for _ in range(spectral.POWER_STEPS):
            top = (squares.T * weights) @ (squares @ top)
            top /= np.linalg.norm(top)
        scores = (squares @ top) ** 2
        value = np.average(scores, weights=weights)
        gone = n - weights.sum()
        if value <= level or gone >= (2 - 1e-3) * epsilon * n:
            return weights, value, step
        far = np.max(scores[weights > 1e-5]) / 64
        share = np.minimum(scores / max(above(scores, weights, epsilon * n / 8), far), 1.0)
        share[scores < above(scores, weights, epsilon * n)] = 0.0
        weights = weights * (1 - min(1.0, (2 * epsilon * n - gone) / (weights @ share)) * share)
    return None


@pytest.mark.parametrize(("kind", "epsilon"), [("spike", 0.1), ("spike", 0.03), ("far", 0.1), ("clean", 0.1)])
def test_the_covariance_filter_against_an_independent_one(kind, epsilon, x64):
    x, _ = contaminated(kind, seed=7)
    if kind == "far":
        x = x + 0.1 * np.random.default_rng(8).normal(size=x.shape)
    weights, top, steps = numpy_filter_covariance(x, epsilon)
    found = robust_covariance(jnp.asarray(x), epsilon, assume_centered=True)
    assert found.steps == steps
    assert (steps > 0) == (kind != "clean")
    np.testing.assert_allclose(found.weights, weights, atol=1e-6)
    np.testing.assert_allclose(found.top_eigenvalue, top, rtol=1e-6)
    assert (found.status == Status.CONVERGED) == (epsilon == 0.1)


@pytest.mark.slow
def test_a_far_row_hides_no_direction_from_the_level(monkeypatch, x64):
    """Two columns that differ in their last digits, and a row so long that its square would hide the difference."""
    ranks, plain = [], covariance._covariance_problem

    def watched(rows, epsilon, rank, doubt):
        jax.debug.callback(lambda r: ranks.append(int(r)), rank)
        return plain(rows, epsilon, rank, doubt)

    monkeypatch.setattr(covariance, "_covariance_problem", watched)
    rng = np.random.default_rng(20)
    x = rng.normal(size=(103, 1)) + 2e-14 * rng.normal(size=(103, 2))
    x[5] = 1e5
    jax.block_until_ready(robust_covariance(jnp.asarray(x), EPSILON, assume_centered=True, max_steps=0))
    jax.effects_barrier()
    assert ranks == [2]
