"""R by reflections against NumPy's, which is R up to the signs of its rows."""

import jax
import numpy as np
import pytest
from slow_parameters import slow

from robust_rlhf_jax.kernels.householder import householder_factor


def of_one_sign(r):
    """R with a diagonal that is not negative."""
    return np.where(np.diag(r) < 0, -1.0, 1.0)[:, None] * r


@pytest.mark.parametrize("shape", [(300, 6), slow((6, 6)), (5, 1)])
def test_it_is_numpys_up_to_signs_in_a_batch_as_alone(shape, x64):
    rng = np.random.default_rng(0)
    matrices = rng.normal(size=(3, *shape)) * 10.0 ** rng.uniform(-4, 4, shape[1])
    batch, alone = jax.jit(jax.vmap(householder_factor)), jax.jit(householder_factor)
    for found, matrix in zip(batch(matrices), matrices, strict=True):
        expected = of_one_sign(np.linalg.qr(matrix, mode="r"))
        np.testing.assert_allclose(of_one_sign(np.asarray(found)), expected, rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(alone(matrix), found, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("wide", "condition"), [(False, 1e4), (True, 1e11)])
def test_singular_values_survive_down_to_the_precision(wide, condition):
    rng = np.random.default_rng(1)
    left, right = (np.linalg.qr(rng.normal(size=(n, 6)))[0] for n in (300, 6))
    values = np.geomspace(1.0, 1.0 / condition, 6)
    with jax.enable_x64(wide):
        matrix = np.asarray(left * values @ right.T, np.float64 if wide else np.float32)
        found = np.linalg.svd(np.asarray(householder_factor(matrix), np.float64), compute_uv=False)
    np.testing.assert_allclose(found, values, atol=10 * np.finfo(matrix.dtype).eps)


def test_columns_of_zeros_and_repeats_leave_no_nan():
    matrix = np.zeros((7, 4), np.float32)
    assert not np.asarray(householder_factor(matrix)).any()
    matrix[:, 0] = matrix[:, 2] = np.arange(7)
    found = np.asarray(householder_factor(matrix), np.float64)
    np.testing.assert_allclose(found.T @ found, matrix.T @ matrix, atol=1e-4)
