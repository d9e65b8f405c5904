"""Moments and symmetric linear algebra against NumPy in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slow_parameters import slow

from robust_rlhf_jax.kernels import linalg

# Jitted: run eagerly, each of a kernel's operations would be compiled by itself.
weighted_mean = jax.jit(linalg.weighted_mean)
weighted_second_moment = jax.jit(linalg.weighted_second_moment)
pseudo_inverse_root = jax.jit(linalg.pseudo_inverse_root)
top_eigenpair = jax.jit(linalg.top_eigenpair)

TOLERANCE = {False: 2e-5, True: 1e-12}


def spectrum(values, seed=0):
    """A symmetric matrix with the given eigenvalues and a random basis, float64 NumPy."""
    noise = np.random.default_rng(seed).normal(size=(len(values), len(values)))
    basis = np.linalg.qr(noise)[0]
    return basis @ np.diag(values) @ basis.T, basis


@pytest.mark.parametrize("wide", [False, True])
def test_weighted_moments(wide):
    rng = np.random.default_rng(0)
    x, weights = rng.normal(size=(200, 5)) + 1.0, rng.uniform(0, 2, 200)
    weights[::3] = 0.0
    with jax.enable_x64(wide):
        args = jnp.asarray(x), jnp.asarray(weights)
        mean, second = weighted_mean(*args), weighted_second_moment(*args)
        scaled = weighted_mean(args[0], 7 * args[1])
    assert mean.dtype == second.dtype == (np.float64 if wide else np.float32)
    expected = sum(w * np.outer(row, row) for w, row in zip(weights, x, strict=True)) / weights.sum()
    np.testing.assert_allclose(mean, np.average(x, axis=0, weights=weights), rtol=TOLERANCE[wide])
    np.testing.assert_allclose(second, expected, rtol=TOLERANCE[wide], atol=TOLERANCE[wide])
    np.testing.assert_allclose(scaled, mean, rtol=TOLERANCE[wide])


def test_zero_weight_is_the_same_as_leaving_the_row_out(x64):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(30, 3))
    far = np.concatenate([x, 1e6 * np.ones((2, 3))])
    weights = jnp.concatenate([jnp.ones(30), jnp.zeros(2)])
    for moment in (weighted_mean, weighted_second_moment):
        np.testing.assert_allclose(
            moment(jnp.asarray(far), weights), moment(jnp.asarray(x), jnp.ones(30)), rtol=1e-13
        )


@pytest.mark.parametrize("wide", [False, True])
def test_pseudo_inverse_root_of_full_rank(wide):
    sigma, basis = spectrum([0.25, 1.0, 4.0, 9.0])
    with jax.enable_x64(wide):
        whitener, colourer, rank = map(np.asarray, pseudo_inverse_root(jnp.asarray(sigma)))
    tolerance = TOLERANCE[wide]
    assert rank == 4
    np.testing.assert_allclose(whitener, basis @ np.diag([2, 1, 0.5, 1 / 3]) @ basis.T, atol=tolerance)
    np.testing.assert_allclose(colourer, basis @ np.diag([0.5, 1, 2, 3]) @ basis.T, atol=tolerance)


@pytest.mark.parametrize("wide", [False, True])
def test_null_directions_are_dropped_not_inverted(wide):
    """Differences of simplex features: one exact null direction, here seen through rounded data."""
    rng = np.random.default_rng(2)
    x = rng.dirichlet(np.ones(5), 400) - rng.dirichlet(np.ones(5), 400)
    with jax.enable_x64(wide):
        sigma = weighted_second_moment(jnp.asarray(x), jnp.ones(400))
        whitener, colourer, rank = map(np.asarray, pseudo_inverse_root(sigma))
        sigma = np.asarray(sigma)
    assert rank == 4
    projector = np.eye(5) - 1 / 5
    tolerance = 1e-4 if wide is False else 1e-11
    np.testing.assert_allclose(whitener @ colourer, projector, atol=tolerance)
    np.testing.assert_allclose(whitener @ sigma @ whitener, projector, atol=tolerance)
    np.testing.assert_allclose(whitener @ np.ones(5), 0.0, atol=10 * tolerance)
    np.testing.assert_allclose(
        whitener @ whitener,
        np.linalg.pinv(x.T @ x / 400, rcond=1e-6),
        rtol=1e-2 * tolerance**0.5,
        atol=100 * tolerance,
    )


def test_a_small_direction_above_the_tolerance_is_kept(x64):
    sigma, _ = spectrum([1e-8, 1.0, 2.0])
    assert pseudo_inverse_root(jnp.asarray(sigma))[2] == 3
    whitener, _, rank = pseudo_inverse_root(jnp.asarray(sigma), 1e-6)
    assert rank == 2
    assert np.linalg.norm(whitener, 2) < 1.0 + 1e-6


def test_zero_and_negative_matrices_have_rank_zero():
    for matrix in (jnp.zeros((3, 3)), -jnp.eye(3)):
        whitener, colourer, rank = pseudo_inverse_root(matrix)
        assert rank == 0
        np.testing.assert_array_equal(whitener, 0.0)
        np.testing.assert_array_equal(colourer, 0.0)


def test_rank_under_vmap():
    stack = jnp.stack([jnp.diag(jnp.array(v)) for v in ([1.0, 2.0, 3.0], [1.0, 0.0, 1.0], [0.0, 0.0, 0.0])])
    np.testing.assert_array_equal(jax.vmap(pseudo_inverse_root)(stack)[2], [3, 2, 0])


@given(st.integers(0, 10_000), st.floats(1e-3, 1e3))
def test_whitening_scales_with_the_data(seed, scale):
    sigma, _ = spectrum([0.5, 1.0, 3.0], seed)
    with jax.enable_x64(True):
        once = [np.asarray(part) for part in pseudo_inverse_root(jnp.asarray(sigma))]
        scaled = [np.asarray(part) for part in pseudo_inverse_root(jnp.asarray(scale**2 * sigma))]
    np.testing.assert_allclose(scaled[0], once[0] / scale, rtol=1e-9, atol=1e-12 / scale)
    np.testing.assert_allclose(scaled[1], once[1] * scale, rtol=1e-9, atol=1e-12 * scale)


def test_top_eigenpair(x64):
    sigma, basis = spectrum([-7.0, 0.5, 3.0])
    value, vector = top_eigenpair(jnp.asarray(sigma))
    np.testing.assert_allclose(value, 3.0, rtol=1e-12)
    np.testing.assert_allclose(abs(basis[:, 2] @ vector), 1.0, rtol=1e-12)


def test_relative_tolerance_follows_the_dtype(x64):
    assert linalg.relative_tolerance(jnp.float32, 5).dtype == jnp.float32
    np.testing.assert_allclose(linalg.relative_tolerance(jnp.float32, 5), 40 * 2.0**-23)
    np.testing.assert_allclose(linalg.relative_tolerance(jnp.float64, 5), 40 * 2.0**-52)


# 2047 = 23·89 and 2049 = 3·683; 2053, 4099 and 8209 are prime.
@pytest.mark.parametrize(
    "n",
    [
        linalg.BLOCKED_FROM - 4,
        linalg.BLOCKED_FROM,
        2047 * 5,
        2049 * 5,
        8209,
        255 * 2053,
        256 * 2053,
        257 * 4099,
    ],
)
def test_rows_per_block_are_the_largest_divisor_between_256_and_2048(n):
    fitting = [size for size in range(256, 2049) if n % size == 0] if n >= linalg.BLOCKED_FROM else []
    assert linalg._blocks(n) == (max(fitting) if fitting else None)


@pytest.mark.parametrize("n", [linalg.BLOCKED_FROM, linalg.BLOCKED_FROM + 1])
def test_a_sum_over_many_rows_is_that_of_numpy(n, x64):
    rng = np.random.default_rng(3)
    x, weights = rng.normal(size=(n, 3)), rng.uniform(size=n)
    np.testing.assert_allclose(jax.jit(linalg.weighted_sum)(weights, x), weights @ x, rtol=1e-10)


def test_the_rank_does_not_depend_on_the_unit():
    for unit in (1e-30, 1e30):
        np.testing.assert_array_equal(pseudo_inverse_root(unit * jnp.eye(3))[2], 3)


def test_a_direction_exactly_at_the_tolerance_is_null(x64):
    sigma = jnp.diag(jnp.asarray([0.25, 1.0, 2.0]))
    assert [int(pseudo_inverse_root(sigma, tolerance)[2]) for tolerance in (0.124, 0.125, 0.5)] == [3, 2, 1]


def test_the_default_tolerance_is_that_of_the_dtype_and_size(x64):
    least = float(linalg.relative_tolerance(jnp.float64, 4))
    for share, rank in ((0.5, 3), (2.0, 4)):
        assert pseudo_inverse_root(jnp.diag(jnp.asarray([share * least, 1.0, 1.0, 1.0])))[2] == rank


@pytest.mark.parametrize("d", [1, 255, slow(256), 257, slow(300)])
def test_a_weighted_gram_is_numpys_and_symmetric_to_the_bit(d):
    rng = np.random.default_rng(d)
    x, weights = rng.normal(size=(40, d)).astype(np.float32), rng.random(40).astype(np.float32)
    found = np.asarray(linalg.weighted_gram(jnp.asarray(x), jnp.asarray(weights)))
    expected = (x.astype(float) * weights[:, None]).T @ x
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    if d >= 256:  # the quarters off the diagonal mirror each other
        half = d // 2
        np.testing.assert_array_equal(found[:half, half:], found[half:, :half].T)


@pytest.mark.parametrize(("n", "d"), [(1, 3), (7, 2**18 + 1), slow(1_500, 600), (1_747, 600)])
def test_weighted_squares_are_the_diagonal_of_the_gram_matrix(n, d):
    """Blocks that hold every row, one row, a whole number of times all rows, and not."""
    rng = np.random.default_rng(n)
    x, weights = rng.normal(size=(n, d)).astype(np.float32), rng.random(n).astype(np.float32)
    found = linalg.weighted_squares(jnp.asarray(x), jnp.asarray(weights))
    np.testing.assert_allclose(found, weights.astype(float) @ x.astype(float) ** 2, rtol=1e-5)
    lanes = jnp.stack([jnp.asarray(weights), jnp.zeros(n)])
    together = jax.vmap(linalg.weighted_squares, (None, 0))(jnp.asarray(x), lanes)
    np.testing.assert_allclose(together[0], found, rtol=1e-5)
    assert not together[1].any()
