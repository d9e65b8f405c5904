"""Quadratic models and projections on a Euclidean ball, solved exactly."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .divisors import positive_or_one
from .lapack import cholesky, cholesky_solve, lower_solve
from .linalg import matmul

# Columns whose curvature differs by less than this many powers of two are alike.
ALIKE = 6


def project_ball(theta: Float[Array, " k"], radius: Float[Array, ""]) -> Float[Array, " k"]:
    """The closest point with ‖·‖₂ ≤ radius."""
    norm = jnp.linalg.norm(theta)
    return theta * jnp.minimum(1.0, radius / positive_or_one(norm))


def minimise_quadratic_in_ball(
    a: Float[Array, "k k"], b: Float[Array, " k"], radius: Float[Array, ""], max_steps: int = 12
) -> Float[Array, " k"]:
    """argmin over ‖u‖₂ ≤ radius of ½uᵀAu − bᵀu for positive definite A.

    u(ν) = (A + νI)⁻¹b with the multiplier ν ≥ 0 that puts ‖u‖ on the sphere where the free minimiser lies
    outside: Newton's method on 1/‖u(ν)‖ − 1/radius, monotone from ν = 0 because A ≻ 0 (Moré & Sorensen 1983);
    one Cholesky factor a step. Convergence is quadratic, so the loop stops at a relative excess of 10⁻³ and two
    further steps reach rounding; a stricter loop would chase rounding errors in single precision.
    """
    eye = jnp.eye(len(a), dtype=a.dtype)

    def solve(nu):
        factor = cholesky(a + nu * eye)
        u = cholesky_solve(factor, b[:, None])[:, 0]
        return nu, factor, u, jnp.linalg.norm(u)

    def newton(nu, factor, u, norm):
        size = jnp.linalg.norm(lower_solve(factor, u[:, None]))
        step = (norm / positive_or_one(size)) ** 2 * (norm - radius) / radius
        return solve(jnp.maximum(nu + jnp.where(size > 0, step, 0.0), 0.0))

    def outside(carry):
        return (carry[0] < max_steps) & (carry[1][3] > radius * (1 + 1e-3))

    def body(carry):
        return carry[0] + 1, newton(*carry[1])

    free = solve(jnp.zeros((), a.dtype))
    last = jax.lax.while_loop(outside, body, (jnp.zeros((), jnp.int32), free))[1]
    polished = jax.lax.cond(free[3] > radius, lambda c: newton(*newton(*c)), lambda c: c, last)
    return project_ball(polished[2], radius)


def ball_stationarity(
    theta: Float[Array, " k"], gradient: Float[Array, " k"], radius: Float[Array, ""]
) -> Float[Array, ""]:
    """‖Proj(θ + g) − θ‖₂: zero exactly at a maximiser over the ball of a concave f with gradient g."""
    return jnp.linalg.norm(project_ball(theta + gradient, radius) - theta)


def ball_residual(
    theta: Float[Array, " k"], gradient: Float[Array, " k"], radius: Float[Array, ""]
) -> Float[Array, " k"]:
    """g less its part along θ where the ball holds θ back: zero exactly at a maximiser over the ball of a concave f.

    Unlike `ball_stationarity` it adds nothing to g that has other units.
    """
    size2 = matmul(theta, theta)
    held = jnp.sqrt(size2) >= radius * (1 - 32 * jnp.finfo(theta.dtype).eps)
    outward = jnp.maximum(matmul(gradient, theta), 0.0) / positive_or_one(size2)
    return gradient - jnp.where(held, outward, 0.0) * theta


def newton_point(
    theta: Float[Array, " k"],
    gradient: Float[Array, " k"],
    curvature: Float[Array, "k k"],
    radius: Float[Array, ""],
) -> Float[Array, " k"]:
    """Maximiser over the ball of the quadratic model f(θ) + gᵀp − ½pᵀCp at θ + p.

    A ridge of a few rounding errors keeps null directions of C (where g vanishes as well) from dividing 0 by 0. It is
    the same for columns of like size, so that it leaves null directions be, and smaller where a column is small.
    """
    k, own = len(curvature), jnp.diagonal(curvature)
    most = positive_or_one(jnp.max(own))
    smaller = jnp.log2(most) - jnp.log2(jnp.where(own > 0, own, most))
    level = most * 2.0 ** -(ALIKE * jnp.floor(smaller / ALIKE))
    a = curvature + jnp.diag(16 * k * jnp.finfo(curvature.dtype).eps * level)
    return minimise_quadratic_in_ball(a, gradient + matmul(a, theta), radius)
