"""Longer steps to where a slow iteration is going."""

from typing import TypeVar

import jax
import jax.numpy as jnp

# A leap goes at most so many rounds ahead.
FARTHEST = 8.0

Point = TypeVar("Point")


def leap(first: Point, second: Point, third: Point) -> Point:
    """Where three points in a row of an iteration p → F(p) are going: p + 2aΔ + a²Δ², a = ‖Δ‖/‖Δ²‖. Jit-able.

    Δ is the first step and Δ² the second less the first, over all arrays of the point together. With a = 1 it is the
    third point; near a fixed point that is neared by the same factor in every round the leap ends there.

    **Source:** Varadhan & Roland 2008, *Simple and globally convergent methods for accelerating the convergence of any
    EM algorithm*, scheme S3.
    """
    step = jax.tree.map(jnp.subtract, second, first)
    change = jax.tree.map(lambda a, b, c: c - 2.0 * b + a, first, second, third)
    ratio = jnp.sqrt(_square(step) / jnp.maximum(_square(change), 1e-20))
    ahead = jnp.clip(ratio, 1.0, FARTHEST)
    return jax.tree.map(lambda p, d, dd: p + 2.0 * ahead * d + ahead**2 * dd, first, step, change)


def _square(point):
    return sum(jnp.sum(part**2) for part in jax.tree.leaves(point))
