"""Doubted directions of many columns: by iteration where they are few, by `doubt.py` where they are not."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from robust_rlhf_jax.kernels.divisors import positive_or_one
from robust_rlhf_jax.kernels.lapack import cholesky, eigh, lower_solve, qr_basis
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.kernels.logistic import secant_curvature

from .coordinates import UnitFreePairs
from .doubt import FLOOR, IN_SPAN, doubted_directions, of_middling_length, span_basis, unit_rows
from .fisher_products import ROUGH, Curvature, diagonal_of, signs

# Directions sought at once; and iterations, which shrink a direction that owes 30 % of its information to suspects
# below 1e-3.
BLOCK, ITERATIONS = 8, 6
# Relative residual up to which a direction counts as found. Shares that lack this much of what doubts are close calls.
FOUND, CLOSE = 0.1, 0.1
# Probes of what contradicted pairs know beyond the directions found, and the share of `covered` up to which no other
# direction can be doubted: of one that is, they show so little once in 10⁵ times (χ² of 16 degrees of freedom below 2).
PROBES, TOO_LITTLE = 16, 1 / 8


class _Few(NamedTuple):
    """`rows` [b, r], doubted directions or 0; `sure`: whether no other is; `found` [b, r]: doubted or not, those that
    are eigenvectors, along which all pairs know 1, or 0.
    """

    rows: Float[Array, "b r"]
    sure: Bool[Array, ""]
    found: Float[Array, "b r"]


def doubted_span(
    pairs: UnitFreePairs,
    proposals: Float[Array, "E N"],
    weights: Float[Array, "E N"],
    t: Float[Array, "E r"],
    covered: float,
    none: Bool[Array, ""],
) -> Float[Array, "m r"]:
    """Orthonormal basis of the directions that `doubted_directions` finds for any of E explanations, as rows; 0 beyond
    its dimension, and where `none` is asked for.
    """
    e, r = t.shape

    def few():
        return jax.vmap(lambda p, w, t: _few_directions(pairs, p, w, t, covered))(proposals, weights, t)

    def nothing():
        none = jnp.zeros((e, BLOCK, r), t.dtype)
        return _Few(none, jnp.ones(e, bool), none)

    def one(given):
        few, proposal, weight, explanation = given
        wide = lambda: jnp.zeros((r, r), t.dtype).at[:BLOCK].set(few.rows)  # noqa: E731
        left = lambda: _contradicted_beyond(pairs, few.found, weight, explanation)  # noqa: E731
        enough = jax.lax.cond(few.sure, lambda: few.sure, lambda: left() < TOO_LITTLE * covered)
        return jax.lax.cond(
            enough, wide, lambda: doubted_directions(pairs, proposal, weight, explanation, covered)
        )

    found = jax.lax.cond(none | ~jnp.any(weights < 1), nothing, few)
    return jax.lax.cond(
        jnp.all(found.sure),
        lambda: jnp.zeros((r, r), t.dtype).at[: e * BLOCK].set(_basis_of_few(found.rows.reshape(-1, r))[:r]),
        lambda: _basis_of_some(jax.lax.map(one, (found, proposals, weights, t)).reshape(-1, r)),
    )


def _few_directions(
    pairs: UnitFreePairs,
    proposal: Float[Array, " N"],
    weights: Float[Array, " N"],
    t: Float[Array, " r"],
    covered: float,
) -> _Few:
    """The doubted directions among the `BLOCK` to which suspects contribute the largest share of the information.

    Generalised eigenvectors of (F_suspect, F_all) by iteration of F_all⁻¹F_suspect on a block that begins with random
    sums of suspects.
    """
    everyone = _of_all(pairs, t)
    rows, known = everyone.rows, everyone.variance
    suspect = everyone._replace(variance=known * (1.0 - proposal))
    # The first two sums are of all suspects and of those contradicted, so that pairs in one place do not cancel.
    start = signs(pairs.n_pairs, BLOCK, t.dtype).at[0].set(1.0).at[1].set(1.0 - weights)
    block = matmul(start * jnp.sqrt(suspect.variance), rows)

    def improve(_, block):
        return suspect.of_pairs(qr_basis(everyone.solve(block, ROUGH).T).T)

    block = jax.lax.fori_loop(0, ITERATIONS - 1, improve, block)
    basis = qr_basis(everyone.solve(block).T).T
    margins = matmul(basis, rows.T)
    factor = cholesky(matmul(margins * known, margins.T) + FLOOR * jnp.eye(BLOCK, dtype=t.dtype))
    half = lower_solve(factor, matmul(margins * suspect.variance, margins.T))
    share, axes = eigh(lower_solve(factor, half.T))
    turn = lower_solve(factor, jnp.eye(BLOCK, dtype=t.dtype))
    directions, margins = matmul(axes.T, matmul(turn, basis)), matmul(axes.T, matmul(turn, margins))
    contradicted = matmul(margins**2, known * (1.0 - weights))
    images = matmul(margins * known, rows) + FLOOR * directions
    rest = matmul(margins * suspect.variance, rows) - share[:, None] * images
    length = lambda x: jnp.sum(x**2 / everyone.diagonal, axis=1)  # noqa: E731
    close = share > 1.0 - covered - CLOSE
    off = close & (length(rest) > FOUND**2 * length(images))
    doubted = (1.0 - share < covered) & (contradicted > covered)
    # If no pair is contradicted, no direction is doubted.
    anyone = jnp.any(weights < 1)
    sure = ~anyone | (~jnp.any(off) & ~jnp.all(close) & jnp.all(jnp.isfinite(share)))
    return _Few(unit_rows(directions, doubted & anyone), sure, jnp.where(off[:, None], 0.0, directions))


def _of_all(pairs: UnitFreePairs, t: Float[Array, " r"]) -> Curvature:
    """F_all: what all pairs know of t, longer ones taken as if of middling length."""
    known, rows = secant_curvature(pairs.margins(t)), of_middling_length(pairs).rows
    floor = jnp.full_like(t, FLOOR)
    return Curvature(rows, known, floor, diagonal_of(rows, known, floor))


def _contradicted_beyond(
    pairs: UnitFreePairs, found: Float[Array, "b r"], weights: Float[Array, " N"], t: Float[Array, " r"]
) -> Float[Array, ""]:
    """tr(F_all⁻¹F_gone) less what the directions `found` have of it: F_gone is what contradicted pairs know. All other
    directions share it, so that none of them knows more.

    By random sums of those pairs, from which the directions found are removed.
    """
    everyone = _of_all(pairs, t)
    gone = everyone.variance * (1.0 - weights)
    sums = matmul(signs(pairs.n_pairs, PROBES, t.dtype) * jnp.sqrt(gone), everyone.rows)
    rest = sums - matmul(matmul(sums, found.T), everyone.products(found))
    return jnp.sum(rest * everyone.solve(rest)) / PROBES


def _basis_of_some(rows: Float[Array, "m r"]) -> Float[Array, "r r"]:
    """`span_basis` of rows most of which are 0: where no more than r/4 are not, of those alone."""
    r = rows.shape[1]
    shown = jnp.any(rows != 0, axis=1)

    def few():
        first = jnp.argsort(~shown)[: r // 4]
        return jnp.zeros((r, r), rows.dtype).at[: r // 4].set(_basis_of_few(rows[first]))

    return jax.lax.cond(jnp.sum(shown) <= r // 4, few, lambda: span_basis(rows))


def _basis_of_few(rows: Float[Array, "m r"]) -> Float[Array, "m r"]:
    """`span_basis` of fewer rows than columns, from their products with one another."""
    values, vectors = eigh(matmul(rows, rows.T))
    basis = matmul(vectors.T, rows) / jnp.sqrt(positive_or_one(values))[:, None]
    return jnp.where(values[:, None] > IN_SPAN, basis, 0.0)
