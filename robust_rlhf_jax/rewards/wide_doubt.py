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
from .fisher_products import Curvature, flat_diagonal, signs

# Directions sought at once. Iterations: what owes 30 % of its information to suspects is then below 1e-3.
BLOCK, ITERATIONS = 8, 6
# Relative residual up to which a direction counts as found. Shares that lack this much of what doubts are close calls.
FOUND, CLOSE = 0.1, 0.1


class _Few(NamedTuple):
    """`rows` [b, r], doubted directions or 0; `sure`: whether no other is."""

    rows: Float[Array, "b r"]
    sure: Bool[Array, ""]


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
        return _Few(jnp.zeros((e, BLOCK, r), t.dtype), jnp.ones(e, bool))

    def one(given):
        (small, sure), proposal, weight, explanation = given
        wide = lambda: jnp.zeros((r, r), t.dtype).at[:BLOCK].set(small)  # noqa: E731
        return jax.lax.cond(
            sure, wide, lambda: doubted_directions(pairs, proposal, weight, explanation, covered)
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
    known, rows = secant_curvature(pairs.margins(t)), of_middling_length(pairs).rows
    floor = jnp.full_like(t, FLOOR)
    everyone = Curvature(rows, known, floor, flat_diagonal(rows, known, floor))
    suspect = everyone._replace(variance=known * (1.0 - proposal))
    # The first sum is of all suspects: of those in one place none cancels.
    start = signs(pairs.n_pairs, BLOCK, t.dtype).at[0].set(1.0)
    block = matmul(start * jnp.sqrt(suspect.variance), rows)

    def improve(_, block):
        return suspect.of_pairs(qr_basis(everyone.solve(block).T).T)

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
    # Where nobody is contradicted there are none.
    anyone = jnp.any(weights < 1)
    sure = ~anyone | (~jnp.any(off) & ~jnp.all(close) & jnp.all(jnp.isfinite(share)))
    return _Few(unit_rows(directions, doubted & anyone), sure)


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
