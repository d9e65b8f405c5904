"""Directions of θ that only suspect pairs cover: which they are, what the others know without them."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from robust_rlhf_jax.kernels.lapack import cholesky, eigh, lower_solve
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.kernels.units import relative_lengths

from .coordinates import UnitFreePairs
from .posterior_fit import secant_information

# Information that is added along every axis, that of a hundredth of a pair, so that nothing is divided by zero.
FLOOR = 0.01
# Squared length of a direction's share of unit rows, from which on it is in their span.
IN_SPAN = 1e-3


class Coverage(NamedTuple):
    """`directions` [r, r]: rows in which all pairs know 1 of t; `share` [r]: what the kept know of each."""

    directions: Float[Array, "r r"]
    share: Float[Array, " r"]


def coverage(pairs: UnitFreePairs, kept: Float[Array, " N"], margins: Float[Array, " N"]) -> Coverage:
    """Generalised eigenvectors of (F_kept, F_all): along row i, F_all is 1 and F_kept is `share`_i."""
    r = pairs.rows.shape[1]
    floor = FLOOR * jnp.eye(r, dtype=margins.dtype)
    factor = cholesky(secant_information(pairs, jnp.ones_like(kept), margins) + floor)
    half = lower_solve(factor, secant_information(pairs, kept, margins) + floor)
    share, axes = eigh(lower_solve(factor, half.T))
    return Coverage(jax.scipy.linalg.solve_triangular(factor, axes, trans=1, lower=True).T, share)


def doubted_directions(
    pairs: UnitFreePairs,
    proposal: Float[Array, " N"],
    weights: Float[Array, " N"],
    t: Float[Array, " r"],
    covered: float,
) -> Float[Array, "r r"]:
    """Unit directions of t as rows, 0 where not doubted: those that only the suspects of `proposal` cover, if the rest
    contradicts suspects that carry much of the information (`weights` 0). Nothing contradicts or confirms the other
    suspects.

    Suspects alone cover a direction if the other pairs know less than the share `covered` of what all know of it; it is
    doubted if those that are contradicted know at least that share.
    """

    def directions():
        margins, seen = pairs.margins(t), of_middling_length(pairs)
        found = coverage(seen, proposal, margins)
        gone = secant_information(seen, 1.0 - weights, margins)
        contradicted = jnp.sum(matmul(found.directions, gone) * found.directions, axis=1)
        return unit_rows(found.directions, (found.share < covered) & (contradicted > covered))

    # If no pair is contradicted, no direction is doubted, and the eigenvectors need not be computed.
    r = len(t)
    return jax.lax.cond(jnp.any(weights < 1), directions, lambda: jnp.zeros((r, r), t.dtype))


def of_middling_length(pairs: UnitFreePairs) -> UnitFreePairs:
    """The pairs with their longer rows shortened to the median length.

    Rows that are planted far out would otherwise hold most of the information along every direction on which they have
    a component, and nobody else would seem to cover it.
    """
    shorter = 1.0 / jnp.maximum(relative_lengths(pairs.rows), 1.0)
    return eqx.tree_at(lambda p: p.rows, pairs, shorter[:, None] * pairs.rows)


def unit_rows(directions: Float[Array, "r r"], mask: Bool[Array, " r"]) -> Float[Array, "r r"]:
    """The rows of the mask at length 1, the others 0."""
    length = jnp.linalg.norm(directions, axis=1, keepdims=True)
    return jnp.where(mask[:, None], directions / jnp.maximum(length, 1e-30), 0.0)


def span_basis(rows: Float[Array, "m r"]) -> Float[Array, "r r"]:
    """Orthonormal basis of the span of unit rows, as rows; 0 beyond its dimension."""
    values, vectors = eigh(matmul(rows.T, rows))
    return jnp.where(values[:, None] > IN_SPAN, vectors.T, 0.0)
