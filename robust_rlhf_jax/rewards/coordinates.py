"""Labelled differences in coordinates without units: scaled, shortened where absurd, whitened on their span."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from robust_rlhf_jax.estimators.row_span import row_span
from robust_rlhf_jax.kernels.linalg import matmul

# A row longer than this many typical rows keeps its direction and is shortened: no precision tells it from infinity.
LONGEST = 1e4
# Rows count in the whitening as if they were at most this many typical rows long.
LONGEST_IN_WHITENING = 10.0
# Entries count as at most this many typical ones: the reciprocal of larger ones is what float32 flushes to 0.
LARGEST = 1e36


class Pairs(eqx.Module):
    """N labelled differences as rows z = x·M whose second moment is I on their span, up to what the whitening shortens.

    `z` [N, r]; `o` [N]: the labels ±1; `to_theta` M [k, r]: θ = M·t for a fit t in these coordinates, `from_theta`
    [r, k] back; `rank` of the span; `far` [N]: rows `LONGEST_IN_WHITENING` times as long as the typical one.
    """

    z: Float[Array, "N r"]
    o: Float[Array, " N"]
    to_theta: Float[Array, "k r"]
    from_theta: Float[Array, "r k"]
    rank: Int[Array, ""]
    far: Bool[Array, " N"]

    @property
    def n_pairs(self) -> int:
        return self.o.shape[-1]

    def margins(self, t: Float[Array, " r"]) -> Float[Array, " N"]:
        """o_n·tᵀz_n, positive where t agrees with the label."""
        return self.o * matmul(self.z, t)


def unit_free(x: Float[Array, "n k"], labels: Float[Array, " n"]) -> Pairs:
    """`Pairs` of x: nothing computed from them depends on the columns' units, nor on an invertible map of x but by
    rounding.

    Columns are divided by the median of their entries that are not 0, which half of the rows cannot move. Rows that are
    `LONGEST` times as long as the typical one are shortened, and the whitening shortens further. A direction that any
    row shows is kept however rare it is, up to the precision.
    """
    size = typical_sizes(x)
    scaled = jnp.where(jnp.isfinite(x), jnp.clip(x / size, -LARGEST, LARGEST), jnp.nan)
    length = jnp.linalg.norm(
        scaled / jnp.maximum(jnp.max(jnp.abs(scaled), axis=1, keepdims=True), 1e-30), axis=1
    )
    length = length * jnp.max(jnp.abs(scaled), axis=1)
    relative = length / _typical(length, axis=0)
    scaled = scaled * jnp.minimum(1.0, LONGEST / jnp.maximum(relative, 1.0))[:, None]
    relative = jnp.minimum(relative, LONGEST)
    span = row_span(scaled, jnp.minimum(1.0, LONGEST_IN_WHITENING / jnp.maximum(relative, 1.0)) ** 2)
    deviations = jnp.sqrt(jnp.where(span.variances > 0, span.variances, 1.0))
    whiten, colour = span.axes / deviations, span.axes * deviations
    far = relative > LONGEST_IN_WHITENING
    to_theta, from_theta = whiten / size[:, None], (colour * size[:, None]).T
    return Pairs(matmul(scaled, whiten), labels, to_theta, from_theta, span.rank, far)


def typical_sizes(x: Float[Array, "n k"]) -> Float[Array, " k"]:
    """Median of |x_nj| over the rows where it is not 0, for each column j; 1 for a column of zeros."""
    return _typical(jnp.abs(x), axis=0)


def _typical(sizes, axis):
    """Median of the positive entries; 1 where there is none."""
    positive = jnp.where(sizes > 0, sizes, jnp.nan)
    return jax.lax.stop_gradient(jnp.nan_to_num(jnp.nanmedian(positive, axis=axis), nan=1.0))
