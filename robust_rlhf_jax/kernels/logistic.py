"""Bradley–Terry log-likelihood of labelled differences, its gradient and its Hessian."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .linalg import matmul


def log_likelihoods(
    theta: Float[Array, " k"], x: Float[Array, "n k"], labels: Float[Array, " n"]
) -> Float[Array, " n"]:
    """log σ(o_n θᵀx_n), one per pair (paper: log P_θ(oⁿ | xⁿ), Assumption 2.1)."""
    return jax.nn.log_sigmoid(labels * matmul(x, theta))


def mean_log_likelihood(theta, x, labels, weights) -> Float[Array, ""]:
    """Σ_n w_n log σ(o_n θᵀx_n) / Σ_n w_n."""
    return jnp.dot(weights, log_likelihoods(theta, x, labels)) / jnp.sum(weights)


def value_gradient(theta, x, labels, weights) -> tuple[Float[Array, ""], Float[Array, " k"]]:
    """Weighted mean log-likelihood and its gradient Σ_n w_n o_n σ(−o_n θᵀx_n) x_n / Σ_n w_n."""
    margins = labels * matmul(x, theta)
    total = jnp.sum(weights)
    value = jnp.dot(weights, jax.nn.log_sigmoid(margins)) / total
    gradient = matmul(weights * labels * jax.nn.sigmoid(-margins), x) / total
    return value, gradient


def value_gradient_hessian(
    theta, x, labels, weights
) -> tuple[Float[Array, ""], Float[Array, " k"], Float[Array, "k k"]]:
    """As `value_gradient`, with the negative Hessian Σ_n w_n σ(m_n)σ(−m_n) x_n x_nᵀ / Σ_n w_n ⪰ 0.

    The sign is that of the loss: the matrix is the curvature that Newton's method divides by.
    """
    margins = labels * matmul(x, theta)
    total = jnp.sum(weights)
    wrong = jax.nn.sigmoid(-margins)
    value = jnp.dot(weights, jax.nn.log_sigmoid(margins)) / total
    gradient = matmul(weights * labels * wrong, x) / total
    # Not wrong·(1 − wrong): that loses the curvature of badly fitted rows to rounding.
    curvature = weights * wrong * jax.nn.sigmoid(margins) / total
    return value, gradient, matmul(x.T * curvature, x)
