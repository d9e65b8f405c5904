"""Factorisations against NumPy, alone, vmapped and doubly vmapped, and the deadlock that they avoid."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from slow_parameters import slow

from robust_rlhf_jax.kernels import lapack


def batch_of_spd(shape, size, seed=0):
    """Positive definite matrices [*shape, size, size], float32."""
    root = np.random.default_rng(seed).normal(size=(*shape, size, size))
    return (root @ np.swapaxes(root, -1, -2) + size * np.eye(size)).astype(np.float32)


@pytest.mark.parametrize("shape", [(), slow((4,)), (3, 2)])
def test_every_wrapper_agrees_with_numpy_at_any_depth_of_vmap(shape):
    matrices = batch_of_spd(shape, 5)
    rhs = np.random.default_rng(1).normal(size=(*shape, 5, 2)).astype(np.float32)

    def all_four(matrix, right):
        values, vectors = lapack.eigh(matrix)
        factor = lapack.cholesky(matrix)
        return (
            values,
            vectors,
            factor,
            lapack.cholesky_solve(factor, right),
            lapack.lower_solve(factor, right),
        )

    for _ in shape:
        all_four = jax.vmap(all_four)
    values, vectors, factor, solution, forward = jax.jit(all_four)(matrices, rhs)
    wide = matrices.astype(np.float64)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(wide), rtol=1e-4)
    rebuilt = np.asarray(vectors) * np.asarray(values)[..., None, :] @ np.swapaxes(vectors, -1, -2)
    np.testing.assert_allclose(rebuilt, wide, atol=1e-4)
    np.testing.assert_allclose(factor, np.linalg.cholesky(wide), atol=1e-5)
    np.testing.assert_allclose(solution, np.linalg.solve(wide, rhs), atol=1e-5)
    np.testing.assert_allclose(np.asarray(factor) @ np.asarray(forward), rhs, atol=1e-5)


def test_unbatched_arguments_are_broadcast():
    matrix = batch_of_spd((), 3)
    rhs = np.arange(12.0, dtype=np.float32).reshape(4, 3, 1)
    factor = lapack.cholesky(matrix)
    solutions = jax.vmap(lapack.cholesky_solve, in_axes=(None, 0))(factor, rhs)
    np.testing.assert_allclose(solutions[..., 0], np.linalg.solve(matrix, rhs[..., 0].T).T, rtol=1e-4)


def test_one_indefinite_matrix_is_nan_and_leaves_the_others_alone():
    matrices = jnp.stack([jnp.diag(jnp.array([1.0, -1.0])), 4 * jnp.eye(2)])
    factors = jax.vmap(lapack.cholesky)(matrices)
    assert np.isnan(factors[0]).any()
    np.testing.assert_allclose(factors[1], 2 * np.eye(2))


RACE = """
import jax, jax.numpy as jnp
from robust_rlhf_jax.kernels import lapack
x = jax.random.normal(jax.random.key(0), (12, 400, 80))
def lane(x):
    gram = x.T @ x + jnp.eye(80)
    other = (x[:200].T @ x[:200]) * 2 + jnp.eye(80)
    def body(_, carry):
        a, b = carry
        values = lapack.eigh(gram + a * jnp.eye(80))[0]
        solved = lapack.lower_solve(lapack.cholesky(other + b * jnp.eye(80)), x[:80])
        return jnp.mean(values) * 1e-3, jnp.mean(solved) * 1e-3
    return jax.lax.fori_loop(0, 20, body, (0.0, 0.0))
print(jax.block_until_ready(jax.jit(jax.vmap(lane))(x))[0].shape)
"""


@pytest.mark.slow
def test_independent_batched_factorisations_do_not_wait_for_each_other_for_ever():
    done = subprocess.run([sys.executable, "-c", RACE], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "(12,)" in done.stdout


@pytest.mark.parametrize(
    "name", ["eigh", "svd", "qr_basis", "qr_factor", "cholesky", "cholesky_solve", "lower_solve"]
)
def test_on_cpu_a_batch_is_a_loop_of_single_calls(name):
    """No factorisation of more than one matrix is left to lock the thread pool."""
    function, matrices = getattr(lapack, name), batch_of_spd((3,), 4)
    arguments = (matrices, matrices) if name.endswith("solve") else (matrices,)
    lowered = jax.jit(jax.vmap(function)).trace(*arguments).lower(lowering_platforms=("cpu",)).as_text()
    assert "stablehlo.while" in lowered
    calls = [
        line
        for line in lowered.splitlines()
        if "lapack" in line or "cholesky" in line or "triangular" in line
    ]
    assert calls
    assert not any("tensor<3x4x4xf32>" in line for line in calls)


@pytest.mark.parametrize("name", ["eigh", "cholesky"])
def test_the_lower_triangle_alone_is_read(name):
    """What stands above it is no part of the matrix."""
    matrix = batch_of_spd((), 5)
    noise = np.triu(np.random.default_rng(0).normal(size=(5, 5)), 1).astype(np.float32)
    function = jax.jit(getattr(lapack, name))
    whole, read = (jax.tree.leaves(function(given)) for given in (matrix, np.tril(matrix) + noise))
    for one, other in zip(whole, read, strict=True):
        np.testing.assert_array_equal(*(map(np.tril, (one, other)) if name == "cholesky" else (one, other)))


@pytest.mark.slow
@pytest.mark.parametrize("size", [(6, 3), (3, 6)])
@pytest.mark.parametrize("shape", [(), (4,)])
def test_singular_values_and_orthonormal_bases_are_those_of_numpy(shape, size):
    matrices = np.random.default_rng(2).normal(size=(*shape, *size)).astype(np.float32)
    svd, basis_of = (jax.vmap(f) if shape else f for f in (lapack.svd, lapack.qr_basis))
    left, values, right = svd(matrices)
    assert left.shape == (*shape, size[0], 3)
    assert right.shape == (*shape, 3, size[1])
    np.testing.assert_allclose(values, np.linalg.svd(matrices, compute_uv=False), rtol=1e-5)
    np.testing.assert_allclose(left * values[..., None, :] @ right, matrices, atol=1e-5)
    basis = np.asarray(basis_of(matrices))
    assert basis.shape == (*shape, size[0], 3)
    np.testing.assert_allclose(
        np.swapaxes(basis, -1, -2) @ basis, np.broadcast_to(np.eye(3), (*shape, 3, 3)), atol=1e-5
    )
    first, span = matrices[..., :1], basis[..., :1]
    np.testing.assert_allclose(span @ (np.swapaxes(span, -1, -2) @ first), first, atol=1e-5)
