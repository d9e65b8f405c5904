"""Halve until it holds: an interval around a boundary, or a step that is too long."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

Point = TypeVar("Point")


def bisect(
    holds: Callable[[Float[Array, "..."]], Bool[Array, "..."]],
    low: Float[Array, "..."],
    high: Float[Array, "..."],
    steps: int,
) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """The interval around the last point at which `holds` is true, halved `steps` times, entry by entry.

    It ends sooner where a halving changes no interval, as between neighbouring floats: further ones would not, either.

    **Arguments:** `holds`: true up to some point and false beyond it; not evaluated at `low` and `high`.
    """

    def unfinished(carry):
        step, _, moved = carry
        return moved & (step < steps)

    def halve(carry):
        step, (low, high), _ = carry
        middle = 0.5 * (low + high)
        below = holds(middle)
        found = jnp.where(below, middle, low), jnp.where(below, high, middle)
        moved = jnp.any(found[0] != low) | jnp.any(found[1] != high)
        return step + 1, found, moved

    begun = jnp.zeros((), jnp.int32), (low, high), jnp.asarray(True)
    return jax.lax.while_loop(unfinished, halve, begun)[1]


def longest_step(
    at: Callable[[Float[Array, ""]], Point],
    acceptable: Callable[[Float[Array, ""], Point], Bool[Array, ""]],
    most: int,
    dtype: Any,
) -> tuple[Int[Array, ""], Float[Array, ""], Point]:
    """(halvings, scale, at(scale)): the longest scale of 1, ½, ¼, … whose point is `acceptable(scale, point)`.

    After `most` halvings the last one is returned as it is, and halvings = most says so.
    """

    def too_long(carry):
        halvings, scale, point = carry
        return ~acceptable(scale, point) & (halvings < most)

    def halve(carry):
        halvings, scale, _ = carry
        return halvings + 1, 0.5 * scale, at(0.5 * scale)

    one = jnp.ones((), dtype)
    return jax.lax.while_loop(too_long, halve, (jnp.zeros((), jnp.int32), one, at(one)))
