"""Which pairs to doubt first: weights from x and from margins, that `score_test` may take back."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.kernels.quantile import keep_top
from robust_rlhf_jax.moments.covariance import filter_whitened

from .coordinates import WIDE, Pairs
from .weighted_fit import first_factor, fit

ROUNDS = 6
# Widest coordinates for which a filter of second moments has power and is affordable.
FILTER_UP_TO = 64
# Rows alike to this share of the largest count as the same point.
SAME = 1e-5


def lengths(pairs: Pairs) -> Float[Array, " N"]:
    """‖z_n‖: the Mahalanobis length of pair n's difference."""
    return jnp.linalg.norm(pairs.z, axis=1)


def best_share(merit: Float[Array, " N"], share: Float[Array, ""]) -> Float[Array, " N"]:
    """Weights of the `share` of the rows that has the most merit; rows that tie share what is left."""
    return keep_top(merit, jnp.ones_like(merit), share * len(merit))


def crowds(pairs: Pairs) -> Float[Array, " N"]:
    """How many rows stand where row n stands, up to their sign: copies of one pair stand together."""
    r = pairs.z.shape[1]
    probe = jnp.cos(jnp.arange(1, r + 1, dtype=pairs.z.dtype) ** 2)
    key = jnp.abs(matmul(pairs.z, probe))
    cell = jnp.round(key / jnp.maximum(jnp.max(key), 1e-30) / SAME).astype(jnp.int32)
    return jnp.zeros(round(1.0 / SAME) + 1, key.dtype).at[cell].add(1.0)[cell]


class DoubtedRows(NamedTuple):
    """Weights by x alone: `short_half` [N]: the shorter half of the rows; `weights` [m, N]: without the 2ε longest
    rows, without the 2ε and without the ε that stand in the largest crowds.
    """

    short_half: Float[Array, " N"]
    weights: Float[Array, "m N"]


def doubted_rows(pairs: Pairs, epsilon: Float[Array, ""]) -> DoubtedRows:
    """The rows that their place alone makes suspect, all of them by one program."""
    short, lonely, most = -lengths(pairs), -crowds(pairs), 1.0 - 2.0 * epsilon
    ranked = [(short, jnp.full_like(epsilon, 0.5)), (short, most), (lonely, most), (lonely, 1.0 - epsilon)]
    merits, shares = (jnp.stack(c) for c in zip(*ranked[: 4 if pairs.z.shape[1] <= WIDE else 3], strict=True))
    half, *others = jax.lax.map(lambda given: best_share(*given), (merits, shares))
    return DoubtedRows(half, jnp.stack(others))


def filtered_rows(pairs: Pairs, epsilon: Float[Array, ""]) -> Float[Array, " N"]:
    """What the covariance filter leaves (`robust_covariance`)."""
    return filter_whitened(pairs.z, epsilon, pairs.rank)


def believed_rows(
    pairs: Pairs, share: Float[Array, ""], start: Float[Array, " r"], likely: Bool[Array, ""]
) -> tuple[Float[Array, " N"], Float[Array, " r"]]:
    """(weights, t): the `share` of the pairs that t prefers, t the fit to them, in turn until the pairs stay.

    `likely`: the pairs whose labels t finds likeliest (paper: Algorithm 2); else those about which t is least sure.
    Lies that decide a fit lie where it is sure: far out along t, or on labels that it takes for granted. Where it is
    unsure a label carries most information and least leverage.
    """
    rounds = ROUNDS if pairs.z.shape[1] > WIDE else jnp.where(likely, 2 * ROUNDS, ROUNDS)

    def again(carry):
        last, t, factor, moved, count = carry
        margins = pairs.margins(t)
        merit = jnp.where(likely, margins, -jnp.abs(margins))
        weights = best_share(merit, share)
        moved = jnp.sum(jnp.abs(weights - last)) > 0
        found = fit(pairs, weights, t, factor=factor)
        return weights, found.t, found.factor, moved, count + 1

    zero = jnp.zeros((), jnp.int32)
    first = (jnp.ones_like(pairs.o), start, first_factor(start), jnp.asarray(True), zero)
    weights, t, *_ = jax.lax.while_loop(lambda c: c[3] & (c[4] < rounds), again, first)
    return weights, t
