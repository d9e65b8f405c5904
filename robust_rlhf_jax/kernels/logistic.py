"""Bradley–Terry log-likelihood of labelled differences, its gradient and its Hessian."""

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .linalg import matmul, weighted_gram, weighted_sum


def log_likelihoods(
    theta: Float[Array, " k"], x: Float[Array, "n k"], labels: Float[Array, " n"]
) -> Float[Array, " n"]:
    """log σ(o_n θᵀx_n), one per pair (paper: log P_θ(oⁿ | xⁿ), Assumption 2.1)."""
    return jax.nn.log_sigmoid(margins_of(theta, x, labels))


def mean_log_likelihood(
    theta: Float[Array, " k"], x: Float[Array, "n k"], labels: Float[Array, " n"], weights: Float[Array, " n"]
) -> Float[Array, ""]:
    """Σ_n w_n log σ(o_n θᵀx_n) / Σ_n w_n."""
    return matmul(weights, log_likelihoods(theta, x, labels)) / jnp.sum(weights)


def margins_of(
    theta: Float[Array, " k"], x: Float[Array, "n k"], labels: Float[Array, " n"]
) -> Float[Array, " n"]:
    """m_n = o_n θᵀx_n: the one product with X that value, gradient and curvature share."""
    chex.assert_rank([theta, x, labels], [1, 2, 1])
    chex.assert_equal_shape_prefix([x, labels], 1)
    return labels * matmul(x, theta)


def label_variance(margins: Float[Array, " n"]) -> Float[Array, " n"]:
    """σ(m)σ(−m), the variance of a label and the curvature of its log-likelihood, without loss where σ rounds to 1."""
    small = jnp.exp(-jnp.abs(margins))
    return small / (1.0 + small) ** 2


def secant_curvature(margins: Float[Array, " n"]) -> Float[Array, " n"]:
    """tanh(m/2)/(2m), the curvature of log σ as far as the way from m to 0: its quadratic bound has it everywhere.

    **Source:** Jaakkola & Jordan 2000.
    """
    size = jnp.maximum(jnp.abs(margins), 1e-3)
    return jnp.tanh(0.5 * size) / (2.0 * size)


def value_gradient_at(
    margins: Float[Array, " n"],
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    weights: Float[Array, " n"],
) -> tuple[Float[Array, ""], Float[Array, " k"]]:
    """`value_gradient` where the margins are known."""
    chex.assert_equal_shape([margins, labels, weights])
    total = jnp.sum(weights)
    value = matmul(weights, jax.nn.log_sigmoid(margins)) / total
    gradient = weighted_sum(weights * labels * jax.nn.sigmoid(-margins), x) / total
    return value, gradient


def curvature_at(
    margins: Float[Array, " n"], x: Float[Array, "n k"], weights: Float[Array, " n"]
) -> Float[Array, "k k"]:
    """`curvature` where the margins are known."""
    return weighted_gram(x, weights * label_variance(margins) / jnp.sum(weights))


def value_gradient(
    theta: Float[Array, " k"], x: Float[Array, "n k"], labels: Float[Array, " n"], weights: Float[Array, " n"]
) -> tuple[Float[Array, ""], Float[Array, " k"]]:
    """Weighted mean log-likelihood and its gradient Σ_n w_n o_n σ(−o_n θᵀx_n) x_n / Σ_n w_n."""
    return value_gradient_at(margins_of(theta, x, labels), x, labels, weights)


def curvature(
    theta: Float[Array, " k"], x: Float[Array, "n k"], labels: Float[Array, " n"], weights: Float[Array, " n"]
) -> Float[Array, "k k"]:
    """The negative Hessian of the mean log-likelihood, Σ_n w_n σ(m_n)σ(−m_n) x_n x_nᵀ / Σ_n w_n ⪰ 0, m_n = o_nθᵀx_n."""
    return curvature_at(margins_of(theta, x, labels), x, weights)
