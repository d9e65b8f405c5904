"""Directions of θ that so few pairs show that corrupting those pairs decides what is said of them."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from robust_rlhf_jax.kernels.linalg import matmul

from .coordinates import unit_free
from .doubt import COVERED, span_basis, without_directions
from .fit import RewardFit

# Steps from the longest row to the direction that it and its like have in common; each is about cubic.
SHARPENINGS = 4


class Secured(NamedTuple):
    """`theta` [k]: θ̂ without what it says of directions about which nothing is known; `information` [k, k]."""

    theta: Float[Array, " k"]
    information: Float[Array, "k k"]


def secured(x: Float[Array, "N k"], found: RewardFit, epsilon: Float[Array, ""]) -> Secured:
    """What the undisputed pairs tell of θ whichever share ε of the pairs is corrupt: `found.information`, with 0 along
    the directions that no more than εN pairs show (`scarce_directions`), and θ̂ with 0 along those and the doubted.

    Nothing contradicts a lie that is told by every pair that speaks of a direction: only their number says whether it
    could be one.
    """
    undisputed = jnp.where(found.undisputed[:, None] > 0, x, 0.0)
    pairs = unit_free(undisputed, jnp.ones_like(found.undisputed))
    scarce = scarce_directions(pairs.z, epsilon)
    known = matmul(pairs.to_theta.T, matmul(found.information, pairs.to_theta))
    left = without_directions(known, scarce)
    doubted = matmul(found.doubted, pairs.from_theta.T)
    length = jnp.linalg.norm(doubted, axis=1, keepdims=True)
    unknown = span_basis(
        jnp.concatenate([scarce, jnp.where(length > 0, doubted / jnp.maximum(length, 1e-30), 0.0)])
    )
    t = matmul(pairs.from_theta, found.theta)
    t = t - matmul(matmul(unknown, t), unknown)
    return Secured(matmul(pairs.to_theta, t), matmul(pairs.from_theta.T, matmul(left, pairs.from_theta)))


def scarce_directions(z: Float[Array, "N r"], share: Float[Array, ""]) -> Float[Array, "r r"]:
    """Orthonormal directions as rows, 0 where not scarce: those of whose Σ_n (vᵀz_n)² a `share` of the rows holds more
    than 1 − `COVERED`.

    The candidates v are the longest row, the longest of what the rows have beyond it, and so on: in whitened
    coordinates the rows that alone show a direction are the long ones. Each is sharpened to the direction of largest
    Σ_n (vᵀz_n)⁴ nearby, which the row shares with its like. All turn with z.

    **Source:** the fixed point of Hyvärinen & Oja 1997 for the fourth moment.
    """
    n, r = z.shape

    def unit(v):
        return v / jnp.maximum(jnp.linalg.norm(v), 1e-30)

    count = jnp.floor(share * n).astype(jnp.int32)
    last = jnp.arange(n) >= n - count

    def next_direction(rest, _):
        length = jnp.linalg.norm(rest, axis=1)
        longest = jnp.argmax(length)
        v = jax.lax.fori_loop(
            0, SHARPENINGS, lambda _, v: unit(matmul(matmul(rest, v) ** 3, rest)), unit(rest[longest])
        )
        shown = jnp.sort(matmul(z, v) ** 2)
        held = jnp.sum(jnp.where(last, shown, 0.0))
        scarce = held > (1.0 - COVERED) * jnp.sum(shown)
        # What rounding leaves after the last direction of the span is none.
        alive = length[longest] > 1e-3
        return rest - jnp.outer(matmul(rest, v), v), jnp.where(scarce & alive, v, 0.0)

    return jax.lax.scan(next_direction, z, length=r)[1]
