"""What trimmed likelihood needs to know of the rows' shape: from a k×k second moment, or without one."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.kernels.linalg import matmul, pseudo_inverse_root, weighted_second_moment

from .logistic_regression import STRIDE, sample_suffices
from .row_span import row_span


class RowGeometry(NamedTuple):
    """`moment` [k, k] and the `projector` [k, k] to its span, None where k is large; `row_size`: root mean square
    length of a row; `rank` of the span; `lengths` [n] of the whitened rows, None if not asked for; `starts` [m, k].
    """

    moment: Float[Array, "k k"] | None
    projector: Float[Array, "k k"] | None
    row_size: Float[Array, ""]
    rank: Int[Array, ""]
    lengths: Float[Array, " n"] | None
    starts: Float[Array, "m k"]


def dense_geometry(x, weights, starts, whiten: bool) -> RowGeometry:
    """The starts as they are: whoever has the projector projects them."""
    moment, (whitener, colourer, rank) = _span(x, weights, exact=whiten)
    lengths = jnp.linalg.norm(matmul(x, whitener), axis=1) if whiten else None
    return RowGeometry(moment, matmul(whitener, colourer), jnp.sqrt(jnp.trace(moment)), rank, lengths, starts)


def wide_geometry(x, weights, starts, whiten: bool) -> RowGeometry:
    """The starts moved into the span, where L-BFGS stays. Dear is one `eigh` of size min(n, k)."""
    span = row_span(x, weights)
    row_size = jnp.sqrt(jnp.dot(weights, jnp.sum(x**2, axis=1)) / jnp.sum(weights))
    lengths = span.lengths(x) if whiten else None
    return RowGeometry(None, None, row_size, span.rank, lengths, span.project(starts))


def _span(x, weights, exact: bool):
    """Second moment of the rows, and its `pseudo_inverse_root`.

    A sample of the rows that spans every direction settles the span, and the rest only matters to a whitener.
    """
    k = x.shape[1]

    def of(rows, w):
        moment = weighted_second_moment(rows, w)
        return moment, pseudo_inverse_root(moment)

    if exact or not sample_suffices(x):
        return of(x, weights)
    sampled = of(x[::STRIDE], weights[::STRIDE])
    return jax.lax.cond(sampled[1][2] == k, lambda: sampled, lambda: of(x, weights))
