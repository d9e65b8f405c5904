"""Factorisations that are safe to batch on a CPU.

jaxlib runs a batched LAPACK call by handing its matrices to XLA's thread pool and waiting for them on a thread of
that same pool (`jax::ParallelBatchMap`). Two independent batched calls can so occupy a pool of two threads and
wait for each other for ever: seen with jaxlib 0.10.2 on two cores, vmapped `eigh` beside a vmapped triangular
solve. On CPU these wrappers therefore batch by a sequential loop, whose single calls run in place; elsewhere they
batch natively. They are not differentiable: nothing here is differentiated through a factorisation.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Float

from .householder import householder_factor

# Directions up to which unused singular vectors cost next to nothing on a CPU; at 20,000 × 512 they take longest.
FEW = 128


def _sequential_on_cpu(function: Callable, elsewhere: Callable | None = None):
    """`function` of arrays. Its vmap rule loops on CPU, and on other platforms batches `elsewhere`, or the function."""
    wrapped = custom_vmap(function)

    @wrapped.def_vmap
    def rule(axis_size, in_batched, *arguments):
        full = [
            x if batched else jnp.broadcast_to(x, (axis_size, *x.shape))
            for x, batched in zip(arguments, in_batched, strict=True)
        ]
        out = jax.lax.platform_dependent(
            *full,
            cpu=lambda *xs: jax.lax.map(lambda row: wrapped(*row), xs),
            default=lambda *xs: jax.vmap(elsewhere or function)(*xs),
        )
        return out, jax.tree.map(lambda _: True, out)

    return wrapped


@_sequential_on_cpu
def eigh(matrix: Float[Array, "d d"]) -> tuple[Float[Array, " d"], Float[Array, "d d"]]:
    """(eigenvalues in ascending order, orthonormal eigenvectors as columns) of a symmetric matrix,
    of which the lower triangle is read.
    """
    vectors, values = jax.lax.linalg.eigh(matrix, symmetrize_input=False)
    return values, vectors


@_sequential_on_cpu
def svd(
    matrix: Float[Array, "n d"],
) -> tuple[Float[Array, "n r"], Float[Array, " r"], Float[Array, "r d"]]:
    """(U, singular values in descending order, Vᵀ), r = min(n, d)."""
    left, values, right = jnp.linalg.svd(matrix, full_matrices=False)
    return left, values, right


@_sequential_on_cpu
def qr_basis(matrix: Float[Array, "d m"]) -> Float[Array, "d m"]:
    """Orthonormal columns, the first j of which span the first j of the matrix where those are independent."""
    return jnp.linalg.qr(matrix)[0]


@functools.partial(_sequential_on_cpu, elsewhere=householder_factor)
def qr_factor(matrix: Float[Array, "n d"]) -> Float[Array, "d d"]:
    """R of a tall matrix QR, whose singular values and right singular vectors are those of the matrix."""
    return jnp.linalg.qr(matrix, mode="r")


def right_svd(matrix: Float[Array, "n d"]) -> tuple[Float[Array, " d"], Float[Array, "d d"]]:
    """(singular values in descending order, Vᵀ) of a tall matrix.

    They are those of R. A GPU decomposes small matrices in batches, but tall ones one after the other.
    """
    few = matrix.shape[1] <= FEW
    return jax.lax.platform_dependent(
        matrix, cpu=lambda a: svd(a if few else qr_factor(a))[1:], default=lambda a: svd(qr_factor(a))[1:]
    )


@_sequential_on_cpu
def cholesky(matrix: Float[Array, "d d"]) -> Float[Array, "d d"]:
    """Lower factor of a positive definite matrix; NaN, never silence, where it is not. The lower triangle is read."""
    return jax.lax.linalg.cholesky(matrix, symmetrize_input=False)


@_sequential_on_cpu
def cholesky_solve(factor: Float[Array, "d d"], rhs: Float[Array, "d m"]) -> Float[Array, "d m"]:
    """Solve L Lᵀ x = rhs given the lower factor L."""
    return jax.scipy.linalg.cho_solve((factor, True), rhs)


@_sequential_on_cpu
def lower_solve(factor: Float[Array, "d d"], rhs: Float[Array, "d m"]) -> Float[Array, "d m"]:
    """Solve L x = rhs given the lower factor L."""
    return jax.scipy.linalg.solve_triangular(factor, rhs, lower=True)
