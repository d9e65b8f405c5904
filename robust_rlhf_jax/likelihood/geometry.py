"""What trimmed likelihood needs to know of the rows' shape: from a k×k second moment, or without one."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.kernels.linalg import matmul, weighted_second_moment
from robust_rlhf_jax.moments.scaled_span import scaled_span, typical_share
from robust_rlhf_jax.moments.span import row_span

from .logistic_regression import STRIDE, sample_suffices


class RowGeometry(NamedTuple):
    """`moment` [k, k] and the `projector` [k, k] to its span, None where k is large; `row_size`: root mean square
    length of a row, `column_size` [k] of a column's entries, None where k is large, far rows bounded; `rank` of the
    span; `lengths` [n] of the whitened rows, None if not asked for; `starts` [m, k].
    """

    moment: Float[Array, "k k"] | None
    projector: Float[Array, "k k"] | None
    row_size: Float[Array, ""]
    column_size: Float[Array, " k"] | None
    rank: Int[Array, ""]
    lengths: Float[Array, " n"] | None
    starts: Float[Array, "m k"]


def dense_geometry(
    x: Float[Array, "n k"],
    weights: Float[Array, " n"],
    epsilon: Float[Array, ""],
    starts: Float[Array, "m k"],
    whiten: bool,
) -> RowGeometry:
    """The starts are as given: the solver projects them, since it has the projector."""
    moment, span = _span(x, weights, epsilon, exact=whiten)
    lengths = span.lengths(x) if whiten else None
    size = span.column_size
    return RowGeometry(moment, span.projector(), jnp.linalg.norm(size), size, span.rank, lengths, starts)


def wide_geometry(
    x: Float[Array, "n k"],
    weights: Float[Array, " n"],
    epsilon: Float[Array, ""],
    starts: Float[Array, "m k"],
    whiten: bool,
) -> RowGeometry:
    """The starts moved into the span, where L-BFGS stays. Dear is one `eigh` of size min(n, k)."""
    weights = weights * typical_share(x, epsilon)
    span = row_span(x, weights)
    row_size = jnp.sqrt(matmul(weights, jnp.sum(x**2, axis=1)) / jnp.sum(weights))
    lengths = span.lengths(x) if whiten else None
    return RowGeometry(None, None, row_size, None, span.rank, lengths, span.project(starts))


def _span(x: Float[Array, "n k"], weights: Float[Array, " n"], epsilon: Float[Array, ""], exact: bool):
    """Second moment of the rows, and their `scaled_span`.

    A sample of the rows that spans every direction settles the span, and the rest only matters to a whitener.
    """
    k = x.shape[1]

    def of(rows, w):
        return weighted_second_moment(rows, w), scaled_span(rows, w, epsilon)

    if exact or not sample_suffices(x):
        return of(x, weights)
    sampled = of(x[::STRIDE], weights[::STRIDE])
    return jax.lax.cond(sampled[1].rank == k, lambda: sampled, lambda: of(x, weights))
