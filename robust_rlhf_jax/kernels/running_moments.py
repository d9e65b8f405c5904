"""Mean and covariance of weighted rows, brought up to date where a few of the weights have fallen.

A filter's step lowers the weights of about εn rows: taking those rows out of Σ_i w_i y_iy_iᵀ costs εn·d² where the
sum over all rows costs n·d². Rows are whitened a block at a time, so that no second copy of them is ever made.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .linalg import DENSE_EIGH_UP_TO, matmul, weighted_sum

# Multiplications n·d² and dimensions d from which products over a few rows pay for gathering them.
WORTH_IT, WIDE = 2**24, 32
# Rows of a block, of those that changed and of all.
FEW, MANY = 512, 2048
# A difference keeps fewer digits the smaller it is: below this share of the sum that it began with, that is two binary
# digits, all rows are summed anew.
HELD = 0.25


class RunningMoments(NamedTuple):
    """Sums over y_i = W(x_i − centre): `total` Σw_i, `first` [d] Σw_iy_i, `second` [d, d] Σw_iy_iy_iᵀ.

    `centre` [d] of the rows as they are; `reach`: trace of `second` when all rows were last summed.
    """

    centre: Float[Array, " d"]
    total: Float[Array, ""]
    first: Float[Array, " d"]
    second: Float[Array, "d d"]
    reach: Float[Array, ""]

    @property
    def shift(self) -> Float[Array, " d"]:
        """W(μ − centre) [d], μ the weighted mean."""
        return self.first / self.total

    @property
    def covariance(self) -> Float[Array, "d d"]:
        """WΣW [d, d], Σ the weighted covariance."""
        return self.second / self.total - jnp.outer(self.shift, self.shift)


def updates_pay(shape: tuple[int, ...]) -> bool:
    """Whether rows [n, d] are many enough and of the right width; an accelerator sums all rows in less time."""
    n, d = shape
    return jax.default_backend() == "cpu" and WIDE <= d <= DENSE_EIGH_UP_TO and n * d**2 >= WORTH_IT


def _add(
    sums: tuple[Float[Array, " d"], Float[Array, "d d"]],
    rows: Float[Array, "m d"],
    weights: Float[Array, " m"],
    whitener: Float[Array, "d r"] | None,
):
    """(Σw_iy_i, Σw_iy_iy_iᵀ) with a block of centred rows more."""
    y = rows if whitener is None else matmul(rows, whitener)
    weighted = y * weights[:, None]
    return sums[0] + jnp.sum(weighted, axis=0), sums[1] + matmul(weighted.T, y)


def _no_sums(x: Float[Array, "n d"]):
    d = x.shape[1]
    return jnp.zeros(d, x.dtype), jnp.zeros((d, d), x.dtype)


def no_moments(x: Float[Array, "n d"]) -> RunningMoments:
    """Moments of no rows yet: `follow` then sums all rows."""
    first, second = _no_sums(x)
    return RunningMoments(first, jnp.zeros((), x.dtype), first, second, jnp.asarray(jnp.inf, x.dtype))


def moments_of(
    x: Float[Array, "n d"], weights: Float[Array, " n"], whitener: Float[Array, "d d"] | None = None
) -> RunningMoments:
    """The moments of all rows under `weights` [n], centred at their mean; `whitener` W symmetric, None for I."""
    n, size = len(x), min(MANY, len(x))
    total = jnp.sum(weights)
    centre = weighted_sum(weights, x) / total

    def add(i, sums):
        # The last block starts early enough to be whole: what the one before it had counts no more.
        first = jnp.minimum(i * size, n - size)
        w = jax.lax.dynamic_slice(weights, (first,), (size,))
        w = jnp.where(first + jnp.arange(size) >= i * size, w, 0.0)
        return _add(sums, jax.lax.dynamic_slice_in_dim(x, first, size) - centre, w, whitener)

    first, second = jax.lax.fori_loop(0, -(-n // size), add, _no_sums(x))
    return RunningMoments(centre, total, first, second, jnp.trace(second))


def follow(
    moments: RunningMoments,
    x: Float[Array, "n d"],
    old: Float[Array, " n"],
    new: Float[Array, " n"],
    whitener: Float[Array, "d d"] | None = None,
) -> RunningMoments:
    """The moments under `new` weights [n], given those under `old`; all rows are summed where little is left.

    The centre stays that of the last full sum; `HELD` bounds what cancels in `second` and in taking the mean out of it.
    """
    n, changed = len(x), new != old
    rows = jnp.nonzero(changed, size=n + FEW, fill_value=n)[0]

    def add(i, sums):
        block = jax.lax.dynamic_slice(rows, (i * FEW,), (FEW,))
        change = (new - old).at[block].get(mode="fill", fill_value=0)
        # Past the last row stand copies of it, of weight 0: made-up rows might not be finite, and 0·∞ is not 0.
        return _add(sums, x.at[block].get(mode="clip") - moments.centre, change, whitener)

    blocks = (jnp.sum(changed) + FEW - 1) // FEW
    first, second = jax.lax.fori_loop(0, blocks, add, (moments.first, moments.second))
    updated = moments._replace(total=jnp.sum(new), first=first, second=second)
    held = jnp.trace(updated.covariance) * updated.total > HELD * moments.reach
    return jax.lax.cond(held, lambda: updated, lambda: moments_of(x, new, whitener))
