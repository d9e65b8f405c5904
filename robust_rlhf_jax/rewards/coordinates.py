"""Labelled differences in coordinates without units: scaled, shortened where absurd, whitened on their span."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from robust_rlhf_jax.kernels.divisors import positive_or_one
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.kernels.units import (
    LONGEST_IN_SCALES,
    in_units,
    relative_lengths,
    shortened,
    typical_entries,
)
from robust_rlhf_jax.moments.span import row_span

# Coordinates from which on every fit is expensive: fewer proposals are tried, eigenpairs found without a matrix.
WIDE = 128


class Pairs(eqx.Module):
    """N labelled differences as rows z = x·M whose second moment is I on their span, up to what the whitening shortens.

    `z` [N, r]; `o` [N]: the labels ±1; `to_theta` M [k, r]: θ = M·t for a fit t in these coordinates, `from_theta`
    [r, k] back; `rank` of the span; `far` [N]: rows `LONGEST_IN_SCALES` times as long as the typical one.
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


@jax.jit
def unit_free(x: Float[Array, "n k"], labels: Float[Array, " n"]) -> Pairs:
    """`Pairs` of x: nothing computed from them depends on the columns' units, nor on an invertible map of x but by
    rounding.

    Columns are divided by a typical entry, which half of the rows cannot move. Rows that are 10⁴ times as long as the
    typical one are shortened (`kernels.units`), and the whitening shortens further. A direction that any
    row shows is kept however rare it is, up to the precision.
    """
    size = typical_entries(x)
    scaled = in_units(x, size)
    relative = relative_lengths(scaled)
    scaled = shortened(scaled, relative)
    span = row_span(scaled, jnp.minimum(1.0, LONGEST_IN_SCALES / jnp.maximum(relative, 1.0)) ** 2)
    deviations = jnp.sqrt(positive_or_one(span.variances))
    whiten, colour = span.axes / deviations, span.axes * deviations
    far = relative > LONGEST_IN_SCALES
    to_theta, from_theta = whiten / size[:, None], (colour * size[:, None]).T
    return Pairs(matmul(scaled, whiten), labels, to_theta, from_theta, span.rank, far)
