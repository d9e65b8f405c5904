"""R of A = QR by Householder reflections, for a whole batch at once: cuSOLVER factorises one matrix after the other."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .divisors import positive_or_one


def householder_factor(matrix: Float[Array, "n d"]) -> Float[Array, "d d"]:
    """R of a matrix QR, n ≥ d; the signs of its rows are those that the reflections leave.

    Column j is reflected to −sign(a_jj)·‖a_j‖·e_j by I − 2vvᵀ/vᵀv, which adds, and never cancels, in v (Golub & Van
    Loan, Matrix Computations, Algorithm 5.2.1). 4nd² operations in d steps, each of two products.
    """
    below = jnp.arange(len(matrix))

    def reflect(j, a):
        column = jnp.where(below >= j, a[:, j], 0.0)
        length = jnp.linalg.norm(column)
        v = column.at[j].add(jnp.where(column[j] < 0, -length, length))
        along = jnp.matmul(v, a, precision="highest")
        return a - jnp.outer(v, along * (2.0 / positive_or_one(jnp.sum(v**2))))

    width = matrix.shape[1]
    return jnp.triu(jax.lax.fori_loop(0, width, reflect, matrix)[:width])
