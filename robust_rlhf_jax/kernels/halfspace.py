"""Quadratic models on a Euclidean ball, whole or cut by a half-space, solved exactly."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .divisors import positive_or_one

MAX_SECULAR_STEPS = 30


class CutBallPoint(NamedTuple):
    """`point` [k]; `multiplier` ≥ 0 of the half-space; `feasible`: whether ball and half-space meet."""

    point: Float[Array, " k"]
    multiplier: Float[Array, ""]
    feasible: Bool[Array, ""]


def minimise_quadratic_in_ball(
    a: Float[Array, " k"], b: Float[Array, " k"], radius: Float[Array, ""]
) -> Float[Array, " k"]:
    """argmin of ½uᵀdiag(a)u − bᵀu over ‖u‖₂ ≤ radius, for a > 0: u(ν) = b/(a + ν) for the least ν ≥ 0 inside."""

    def free(nu):
        u = b / (a + nu)
        return u, jnp.sum(u**2 / (a + nu)), jnp.zeros((), a.dtype)

    return _on_sphere(free, jnp.zeros_like(b), radius)[0]


def minimise_quadratic_in_cut_ball(
    a: Float[Array, " k"],
    b: Float[Array, " k"],
    normal: Float[Array, " k"],
    level: Float[Array, ""],
    radius: Float[Array, ""],
) -> CutBallPoint:
    """argmin of ½uᵀdiag(a)u − bᵀu over ‖u‖₂ ≤ radius and normalᵀu ≥ level, for a > 0.

    Either the ball alone decides, or the half-space holds with equality; in both cases the multiplier of the ball
    solves a secular equation ‖u(ν)‖ = r by Newton's method on 1/‖u‖ (Moré & Sorensen 1983), in the hyperplane
    for the second. A dense A is rotated to its eigenbasis by the caller. Where ball and half-space do not meet, the
    point of the ball closest to the half-space comes back with `feasible` false.
    """
    size2 = jnp.sum(normal**2)
    safe2 = positive_or_one(size2)
    foot = normal * (level / safe2)  # the point of the hyperplane closest to 0

    def in_plane(nu):
        d = 1.0 / (a + nu)
        weight = jnp.sum(normal**2 * d)
        weight = positive_or_one(weight)
        m = (level - jnp.sum(normal * d * b)) / weight
        u = d * (b + m * normal)
        tangent = u - foot
        back = d * (tangent - normal * (jnp.sum(normal * d * tangent) / weight))
        return u, jnp.sum(tangent * back), m

    ball_only = minimise_quadratic_in_ball(a, b, radius)
    cut = jnp.sum(normal * ball_only) < level
    room2 = radius**2 - jnp.sum(foot**2)
    feasible = ~cut | ((size2 > 0) & (room2 >= 0))
    room = jnp.sqrt(jnp.maximum(room2, 0.0))
    both, m = _on_sphere(in_plane, foot, room)
    nearest = normal * (radius / jnp.sqrt(safe2))
    point = jnp.where(cut, jnp.where(feasible, both, nearest), ball_only)
    return CutBallPoint(point, jnp.where(cut & feasible, jnp.maximum(m, 0.0), 0.0), feasible)


def _on_sphere(
    solve: Callable[[Float[Array, ""]], tuple[Array, Array, Array]],
    centre: Float[Array, " k"],
    radius: Float[Array, ""],
):
    """(u, m) of the smallest ν ≥ 0 with ‖u(ν) − centre‖ ≤ radius; solve(ν) gives (u, uᵀA⁻¹u within, m)."""

    def excess(u):
        return jnp.linalg.norm(u - centre)

    tolerance = 16 * jnp.finfo(radius.dtype).eps
    tiny = jnp.finfo(radius.dtype).tiny

    def outside(carry):
        step, nu, (u, _, _) = carry
        return (step < MAX_SECULAR_STEPS) & (excess(u) > radius * (1 + tolerance)) & jnp.isfinite(nu)

    def newton(carry):
        step, nu, (u, slope, _) = carry
        norm = excess(u)
        move = norm**2 / jnp.maximum(slope, tiny) * (norm - radius) / jnp.maximum(radius, tiny)
        nu = nu + move
        return step + 1, nu, solve(nu)

    zero = jnp.zeros((), radius.dtype)
    _, _, (u, _, m) = jax.lax.while_loop(outside, newton, (0, zero, solve(zero)))
    norm = excess(u)
    shrink = jnp.minimum(1.0, radius / positive_or_one(norm))
    return centre + shrink * (u - centre), m
