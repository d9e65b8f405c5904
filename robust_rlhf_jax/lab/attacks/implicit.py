"""How a fitted reward answers to its data: the derivative of a weighted logistic optimum on a ball."""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from robust_rlhf_jax.kernels.lapack import eigh
from robust_rlhf_jax.kernels.linalg import matmul, relative_tolerance
from robust_rlhf_jax.kernels.logistic import curvature_at, margins_of, value_gradient_at
from robust_rlhf_jax.rewards.registry import RewardEstimator

# ‖θ̂‖ from this share of the radius on counts as on the sphere.
ON_SPHERE = 1 - 1e-4


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def fitted_theta(
    victim: RewardEstimator,
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: Float[Array, ""],
    radius: Float[Array, ""],
) -> Float[Array, " k"]:
    """θ̂ of `victim`, differentiable in x (and in x alone).

    With the weights w that the victim ended on held fixed, θ̂ solves G = Σ_n w_n o_n σ(−o_nθ̂ᵀx_n)x_n = νθ̂, ν = 0
    inside the ball. The implicit function theorem gives (C + νI)dθ̂ = dG − θ̂dν with C the curvature, θ̂ᵀdθ̂ = 0 on
    the sphere; directions in which C is null are left alone. Weights move only where pairs enter or leave a
    trimmed set, or a filter's scores change: that part of the derivative is left out.

    **Example:**

    >>> import jax, jax.numpy as jnp
    >>> from robust_rlhf_jax.lab.attacks import fitted_theta
    >>> from robust_rlhf_jax.rewards import REWARD_ESTIMATORS
    >>> victim = REWARD_ESTIMATORS["maximum_likelihood"]
    >>> x, labels = jnp.array([[1.0], [1.0], [1.0]]), jnp.array([1.0, 1.0, -1.0])
    >>> def theta_of(x):
    ...     return fitted_theta(victim, x, labels, jnp.float32(0.0), jnp.float32(5.0))[0]
    >>> jax.grad(theta_of)(x).shape
    (3, 1)
    """
    return victim(x, labels, epsilon, radius=radius).theta


def _forward(
    victim: RewardEstimator,
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: Float[Array, ""],
    radius: Float[Array, ""],
):
    fit = victim(x, labels, epsilon, radius=radius)
    return fit.theta, (fit.theta, fit.weights, x, labels, epsilon, radius)


def _backward(victim: RewardEstimator, saved: tuple[Array, ...], cotangent: Float[Array, " k"]):
    theta, weights, x, labels, epsilon, radius = saved
    margins = margins_of(theta, x, labels)
    u = response(theta, weights, x, labels, radius, cotangent)
    share = (weights / jnp.sum(weights)) * jax.nn.sigmoid(-margins)
    moved = (share * labels)[:, None] * u - (share * jax.nn.sigmoid(margins) * matmul(x, u))[:, None] * theta
    return moved, jnp.zeros_like(labels), jnp.zeros_like(epsilon), jnp.zeros_like(radius)


def response(
    theta: Float[Array, " k"],
    weights: Float[Array, " n"],
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    radius: Float[Array, ""],
    cotangent: Float[Array, " k"],
) -> Float[Array, " k"]:
    """The u with cotangentᵀdθ̂ = uᵀdG: what a change of the mean gradient G does to a fit θ̂, along `cotangent`.

    A pair (x, o) that joins n others with weight 1 changes G by oσ(−oθ̂ᵀx)x/n.
    """
    margins = margins_of(theta, x, labels)
    _, gradient = value_gradient_at(margins, x, labels, weights)
    return _adjoint(curvature_at(margins, x, weights), gradient, theta, radius, cotangent)


def _adjoint(
    curvature: Float[Array, "k k"],
    gradient: Float[Array, " k"],
    theta: Float[Array, " k"],
    radius: Float[Array, ""],
    cotangent: Float[Array, " k"],
):
    """The u with uᵀdG = cotangentᵀdθ̂."""
    size = matmul(theta, theta)
    bound = size >= (ON_SPHERE * radius) ** 2
    multiplier = jnp.where(
        bound, jnp.maximum(matmul(theta, gradient) / jnp.where(bound, size, 1.0), 0.0), 0.0
    )
    values, vectors = eigh(curvature)
    keep = values > relative_tolerance(values.dtype, values.shape[0]) * values[-1]
    inverse = jnp.where(keep, 1.0 / jnp.where(keep, values + multiplier, 1.0), 0.0)
    solve = lambda b: matmul(vectors, inverse * matmul(vectors.T, b))  # noqa: E731
    free, inward = solve(cotangent), solve(theta)
    along = matmul(theta, inward)
    tangent = bound & (along > 0)
    return free - jnp.where(tangent, matmul(theta, free) / jnp.where(tangent, along, 1.0), 0.0) * inward


fitted_theta.defvjp(_forward, _backward)
