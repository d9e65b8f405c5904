"""The taste of each rater: θ_k = θ + u_k, shrunk towards a crowd whose spread the data show."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from robust_rlhf_jax.kernels.lapack import cholesky, cholesky_solve, lower_solve
from robust_rlhf_jax.kernels.linalg import einsum, matmul
from robust_rlhf_jax.kernels.logistic import label_variance, secant_curvature

from ._by_rater import RowsByRater


class Steps(NamedTuple):
    """Steps to each maximum: by a `bound` of the likelihood, which cannot overshoot, then by the curvature itself."""

    bound: int
    newton: int


# From the mean of the crowd, and from the tastes that were found with nearly the same crowd.
COLD, WARM = Steps(6, 2), Steps(1, 1)


class Crowd(NamedTuple):
    """A normal prior of tastes: `mean` [r] and `covariance` [r, r]."""

    mean: Float[Array, " r"]
    covariance: Float[Array, "r r"]


class Tastes(NamedTuple):
    """Of each of K raters: the likeliest `t` [K, r], its `covariance` [K, r, r], and the log `evidence` [K] of the
    rater's labels under the crowd.
    """

    t: Float[Array, "K r"]
    covariance: Float[Array, "K r r"]
    evidence: Float[Array, " K"]


def tastes(
    pairs: RowsByRater,
    crowd: Crowd,
    start: Float[Array, "K r"],
    steps: Steps = COLD,
) -> Tastes:
    """Maximum a posteriori and Laplace's evidence ∫ Π_{i∈k} σ(tᵀy_i) N(t; μ, Σ) dt of every rater. Jit- and vmap-able.

    The search for the maxima begins at `start`.
    With T the maximum and H the curvature there: Σ log σ(Tᵀy) − ½(T − μ)ᵀΣ⁻¹(T − μ) − ½ log|Σ| − ½ log|H|.

    **Source:** MacKay 1992 for the evidence; the bound of Jaakkola & Jordan 2000 for the first steps.
    """
    prior = cholesky(crowd.covariance)
    precision = cholesky_solve(prior, jnp.eye(len(crowd.mean), dtype=crowd.mean.dtype))
    at_mean = matmul(precision, crowd.mean)

    def curvature(weights):
        return precision + pairs.gram(weights)

    def by_bound(_, t):
        factor = jax.vmap(cholesky)(curvature(secant_curvature(pairs.margins(t))))
        pull = at_mean + 0.5 * pairs.sums(pairs.rows)
        return _solve(factor, pull)

    def by_newton(_, t):
        margins = pairs.margins(t)
        factor = jax.vmap(cholesky)(curvature(label_variance(margins)))
        pull = pairs.sums(jax.nn.sigmoid(-margins)[:, None] * pairs.rows)
        return t + _solve(factor, pull - matmul(t - crowd.mean, precision))

    t = jax.lax.fori_loop(0, steps.bound, by_bound, start)
    t = jax.lax.fori_loop(0, steps.newton, by_newton, t)
    margins = pairs.margins(t)
    factor = jax.vmap(cholesky)(curvature(label_variance(margins)))
    half = jax.vmap(lambda f: lower_solve(f, jnp.eye(len(f), dtype=f.dtype)))(factor)
    off = t - crowd.mean
    evidence = (
        pairs.sums(jax.nn.log_sigmoid(margins))
        - 0.5 * einsum("ki,ij,kj->k", off, precision, off)
        - jnp.sum(jnp.log(jnp.diagonal(prior)))
        - jnp.sum(jnp.log(jnp.diagonal(factor, axis1=1, axis2=2)), axis=1)
    )
    return Tastes(t, einsum("kji,kjl->kil", half, half), evidence)


def _solve(factor: Float[Array, "K r r"], rhs: Float[Array, "K r"]) -> Float[Array, "K r"]:
    return jax.vmap(lambda f, b: cholesky_solve(f, b[:, None])[:, 0])(factor, rhs)
