"""Weighted sums and moments of rows beside the machine's rates, and the root of a moment, beside their rivals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from rivals import assert_same, rival_run
from samples import size_of, trimmed_rows

from robust_rlhf_jax.kernels import linalg

weighted_sum = jax.jit(linalg.weighted_sum)
weighted_second_moment = jax.jit(linalg.weighted_second_moment)
pseudo_inverse_root = jax.jit(linalg.pseudo_inverse_root)


def moment(x, weights):
    """The same words in NumPy and PyTorch."""
    return ((x * weights[:, None]).T @ x / weights.sum(),)


def sum_of(weights, x):
    return (weights @ x,)


SUMS = {"NumPy": sum_of, "PyTorch": sum_of}
MOMENTS = {"NumPy": moment, "PyTorch": moment}


@pytest.mark.parametrize("rival", SUMS)
def test_weighted_sum(measure, beside, against_copy, rows, rival):
    x, weights = trimmed_rows(rows(500_000), 128)
    name, run = rival_run(rival, SUMS, (weights, x))
    found = measure(
        weighted_sum, weights, x, what="`weighted_sum`", size=size_of(x), work=(x.shape[0], "rows")
    )
    assert_same((found,), run(), rtol=1e-3, atol=0.1)
    beside(lambda: weighted_sum(weights, x), run, name=name)
    against_copy(x.nbytes, "X once")


@pytest.mark.parametrize("rival", MOMENTS)
def test_weighted_second_moment(measure, beside, against_product, rows, rival):
    x, weights = trimmed_rows(rows(200_000), 128)
    n, d = x.shape
    name, run = rival_run(rival, MOMENTS, (x, weights))
    found = measure(
        weighted_second_moment,
        x,
        weights,
        what="`weighted_second_moment`",
        size=size_of(x),
        work=(n, "rows"),
    )
    assert_same((found,), run(), atol=1e-3)
    beside(lambda: weighted_second_moment(x, weights), run, name=name)
    against_product(2 * n * d**2, "2nd²")


def roots_by_scipy(sigma):
    """(Σ^{-1/2}, Σ^{1/2}) of a matrix of full rank."""
    values, vectors = scipy.linalg.eigh(sigma)
    return (vectors / np.sqrt(values)) @ vectors.T, (vectors * np.sqrt(values)) @ vectors.T


@pytest.mark.parametrize("d", [16, 64, 256])
def test_pseudo_inverse_root(measure, beside, against_product, d):
    sigma = linalg.weighted_second_moment(*trimmed_rows(10 * d, d)) + jnp.eye(d)
    name, run = rival_run("SciPy", {"SciPy": roots_by_scipy}, (sigma,))
    found = measure(
        pseudo_inverse_root, sigma, what="`pseudo_inverse_root`", size=f"d = {d}", work=(1, "matrices")
    )
    assert_same(found[:2], run(), atol=1e-4)
    beside(lambda: pseudo_inverse_root(sigma), run, name=f"{name}: `eigh`")
    against_product(13 * d**3, "9d³ for the eigenvectors, 4d³ for the products")
