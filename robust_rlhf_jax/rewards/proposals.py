"""Which pairs to doubt first: weights from x and from margins, that `score_test` may take back."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from robust_rlhf_jax.estimators.moments import robust_covariance
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.kernels.quantile import keep_top

from .coordinates import Pairs
from .weighted_fit import fit

ROUNDS = 6
# Widest coordinates for which a filter of second moments has power and is affordable.
FILTER_UP_TO = 64
# Rows alike to this share of the largest count as the same point.
SAME = 1e-5


def lengths(pairs: Pairs) -> Float[Array, " N"]:
    """‖z_n‖: the Mahalanobis length of pair n's difference."""
    return jnp.linalg.norm(pairs.z, axis=1)


def short_rows(pairs: Pairs, share: Float[Array, ""]) -> Float[Array, " N"]:
    """The `share` of the rows that is shortest."""
    return keep_top(-lengths(pairs), jnp.ones_like(pairs.o), share * pairs.n_pairs)


def lonely_rows(pairs: Pairs, share: Float[Array, ""]) -> Float[Array, " N"]:
    """The `share` of the rows that stand at the least crowded points: copies of one pair stand together."""
    r = pairs.z.shape[1]
    probe = jnp.cos(jnp.arange(1, r + 1, dtype=pairs.z.dtype) ** 2)
    key = jnp.abs(matmul(pairs.z, probe))
    key = jnp.round(key / jnp.maximum(jnp.max(key), 1e-30) / SAME)
    ordered = jnp.sort(key)
    crowd = jnp.searchsorted(ordered, key, side="right") - jnp.searchsorted(ordered, key, side="left")
    return keep_top(-crowd.astype(pairs.z.dtype), jnp.ones_like(pairs.o), share * pairs.n_pairs)


def filtered_rows(pairs: Pairs, epsilon: Float[Array, ""]) -> Float[Array, " N"]:
    """What the covariance filter leaves (`robust_covariance`)."""
    return robust_covariance(pairs.z, epsilon, assume_centered=True).weights


def believed_rows(
    pairs: Pairs, share: Float[Array, ""], start: Float[Array, " r"], likely: Bool[Array, ""]
) -> tuple[Float[Array, " N"], Float[Array, " r"]]:
    """(weights, t): the `share` of the pairs that t prefers, t the fit to them, in turn until the pairs stay.

    `likely`: the pairs whose labels t finds likeliest (paper: Algorithm 2); else those about which t is least sure.
    Lies that decide a fit lie where it is sure: far out along t, or on labels that it takes for granted. Where it is
    unsure a label carries most information and least leverage.
    """
    rounds = jnp.where(likely, 2 * ROUNDS, ROUNDS)

    def again(carry):
        last, t, moved, count = carry
        margins = pairs.margins(t)
        merit = jnp.where(likely, margins, -jnp.abs(margins))
        weights = keep_top(merit, jnp.ones_like(pairs.o), share * pairs.n_pairs)
        moved = jnp.any(weights != last)
        return weights, fit(pairs, weights, t).t, moved, count + 1

    first = (jnp.ones_like(pairs.o), start, jnp.asarray(True), jnp.zeros((), jnp.int32))
    weights, t, _, _ = jax.lax.while_loop(lambda c: c[2] & (c[3] < rounds), again, first)
    return weights, t
