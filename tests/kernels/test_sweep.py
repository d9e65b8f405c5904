"""Inverses of many matrices at once against NumPy in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from slow_parameters import slow

from robust_rlhf_jax.kernels.sweep import inverses


@pytest.mark.parametrize(
    ("n", "d"), [(1, 1), (7, 2), (50, 9), slow(5, 16), (5, 17), slow(4, 33), slow(3, 40), (3, 64)]
)
def test_the_inverse_and_the_log_determinant(n, d):
    rng = np.random.default_rng(d)
    half = rng.normal(size=(n, d, d + 4))
    matrices = half @ np.swapaxes(half, 1, 2) + 0.1 * np.eye(d)
    found, log_determinant = jax.jit(inverses)(jnp.float32(matrices))
    expected = np.linalg.inv(matrices)
    size = np.max(np.abs(expected), axis=(1, 2), keepdims=True)
    np.testing.assert_allclose(found / size, expected / size, atol=1e-4)
    np.testing.assert_allclose(log_determinant, np.linalg.slogdet(matrices)[1], rtol=1e-5, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("d", [6, 21, 35])
def test_a_batch_is_a_loop_and_the_inverse_is_symmetric(d):
    rng = np.random.default_rng(0)
    half = jnp.float32(rng.normal(size=(5, 3, d, 2 * d)))
    matrices = half @ jnp.swapaxes(half, -1, -2)
    whole = inverses(matrices)
    one_by_one = jax.vmap(jax.vmap(inverses))(matrices)
    for one, other in zip(whole, one_by_one, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(whole[0], jnp.swapaxes(whole[0], -1, -2), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("d", [2, 30])
def test_columns_of_other_units_keep_their_digits(d):
    rng = np.random.default_rng(d)
    matrix = np.corrcoef(rng.normal(size=(d, 4 * d)))
    units = np.diag(10.0 ** rng.permutation(np.linspace(-4, 6, d)))
    found, _ = jax.jit(inverses)(jnp.float32(units @ matrix @ units))
    np.testing.assert_allclose(
        units @ np.asarray(found, float) @ units, np.linalg.inv(matrix), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("d", [17, slow(33), slow(64)])
@pytest.mark.parametrize("share", [0.3, 0.5, 0.8])
def test_nearly_singular_matrices_keep_the_digits_that_a_sweep_keeps(d, share):
    """Eigenvalues 1 and 1e-5, as of people who differ in few directions: blocks on the diagonal are as bad."""
    rng = np.random.default_rng(d)
    vectors = np.linalg.qr(rng.normal(size=(20, d, d)))[0]
    values = np.where(np.arange(d) < share * d, 1.0, 1e-5)
    matrices = np.float32(vectors * values @ np.swapaxes(vectors, 1, 2))
    matrices = 0.5 * (matrices + np.swapaxes(matrices, 1, 2))
    found, log_determinant = jax.jit(inverses)(matrices)
    expected, log_expected = (
        np.linalg.inv(matrices.astype(float)),
        np.linalg.slogdet(matrices.astype(float))[1],
    )
    error = np.linalg.norm(found - expected, axis=(1, 2)) / np.linalg.norm(expected, axis=(1, 2))
    assert np.max(error) < 0.1
    np.testing.assert_allclose(log_determinant, log_expected, atol=0.02 * d)


@pytest.mark.slow
@pytest.mark.parametrize("d", [3, 40])
def test_one_bad_matrix_leaves_the_others_alone(d):
    found, _ = inverses(jnp.stack([jnp.eye(d), jnp.full((d, d), jnp.nan), 2.0 * jnp.eye(d)]))
    np.testing.assert_allclose(found[0], np.eye(d))
    np.testing.assert_allclose(found[2], 0.5 * np.eye(d))
    assert bool(jnp.all(jnp.isnan(found[1])))
