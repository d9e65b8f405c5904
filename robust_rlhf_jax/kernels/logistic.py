"""Bradley–Terry log-likelihood of labelled differences, its gradient and its Hessian."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .linalg import matmul, weighted_sum


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
    gradient = weighted_sum(weights * labels * jax.nn.sigmoid(-margins), x) / total
    return value, gradient


def curvature(theta, x, labels, weights) -> Float[Array, "k k"]:
    """The negative Hessian of the mean log-likelihood, Σ_n w_n σ(m_n)σ(−m_n) x_n x_nᵀ / Σ_n w_n ⪰ 0, m_n = o_nθᵀx_n."""
    margins = labels * matmul(x, theta)
    # Not σ(−m)(1 − σ(−m)): that loses the curvature of badly fitted rows to rounding.
    scale = weights * jax.nn.sigmoid(-margins) * jax.nn.sigmoid(margins) / jnp.sum(weights)
    return matmul((x * scale[:, None]).T, x)


def value_gradient_hessian(
    theta, x, labels, weights
) -> tuple[Float[Array, ""], Float[Array, " k"], Float[Array, "k k"]]:
    """Mean log-likelihood, gradient and negative Hessian: the loss's curvature, which Newton's method divides by."""
    return *value_gradient(theta, x, labels, weights), curvature(theta, x, labels, weights)
