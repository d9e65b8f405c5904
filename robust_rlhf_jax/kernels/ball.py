"""Quadratic models and projections on a Euclidean ball, solved exactly."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .linalg import matmul


def project_ball(theta: Float[Array, " k"], radius: Float[Array, ""]) -> Float[Array, " k"]:
    """The closest point with ‖·‖₂ ≤ radius."""
    norm = jnp.linalg.norm(theta)
    return theta * jnp.minimum(1.0, radius / jnp.where(norm > 0, norm, 1.0))


def minimise_quadratic_in_ball(
    a: Float[Array, "k k"], b: Float[Array, " k"], radius: Float[Array, ""], max_steps: int = 40
) -> Float[Array, " k"]:
    """argmin over ‖u‖₂ ≤ radius of ½uᵀAu − bᵀu for positive definite A.

    u(ν) = (A + νI)⁻¹b with the multiplier ν ≥ 0 that puts ‖u‖ on the sphere where the free minimiser lies
    outside: Newton's method on 1/‖u(ν)‖ − 1/radius, monotone from ν = 0 because A ≻ 0 (Moré & Sorensen 1983);
    one Cholesky factor a step, three to six in practice.
    """
    eye = jnp.eye(a.shape[0], dtype=a.dtype)
    tolerance = 8 * jnp.finfo(a.dtype).eps

    def solve(nu):
        factor = jnp.linalg.cholesky(a + nu * eye)
        u = jax.scipy.linalg.cho_solve((factor, True), b)
        return factor, u, jnp.linalg.norm(u)

    def outside(carry):
        step, _, _, _, norm = carry
        return (step < max_steps) & (norm > radius * (1 + tolerance))

    def newton(carry):
        step, nu, factor, u, norm = carry
        q = jax.scipy.linalg.solve_triangular(factor, u, lower=True)
        nu = nu + (norm / jnp.linalg.norm(q)) ** 2 * (norm - radius) / radius
        return (step + 1, nu, *solve(nu))

    start = (jnp.zeros((), jnp.int32), jnp.zeros((), a.dtype), *solve(jnp.zeros((), a.dtype)))
    u = jax.lax.while_loop(outside, newton, start)[3]
    return project_ball(u, radius)


def ball_stationarity(
    theta: Float[Array, " k"], gradient: Float[Array, " k"], radius: Float[Array, ""]
) -> Float[Array, ""]:
    """‖Proj(θ + g) − θ‖₂: zero exactly at a maximiser over the ball of a concave f with gradient g."""
    return jnp.linalg.norm(project_ball(theta + gradient, radius) - theta)


def newton_point(
    theta: Float[Array, " k"],
    gradient: Float[Array, " k"],
    curvature: Float[Array, "k k"],
    radius: Float[Array, ""],
) -> Float[Array, " k"]:
    """Maximiser over the ball of the quadratic model f(θ) + gᵀp − ½pᵀCp at θ + p.

    A ridge of a few rounding errors keeps null directions of C (where g vanishes as well) from dividing 0 by 0.
    """
    k = curvature.shape[0]
    scale = jnp.trace(curvature) / k
    ridge = 16 * jnp.finfo(curvature.dtype).eps * jnp.where(scale > 0, k * scale, 1.0)
    a = curvature + ridge * jnp.eye(k, dtype=curvature.dtype)
    return minimise_quadratic_in_ball(a, gradient + matmul(a, theta), radius)
