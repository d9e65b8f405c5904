"""Labelled differences in coordinates without units and without sides: scaled, shortened where absurd, whitened."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.kernels.divisors import positive_or_one
from robust_rlhf_jax.kernels.linalg import matmul, weighted_mean
from robust_rlhf_jax.kernels.units import (
    LONGEST_IN_SCALES,
    honest_size,
    in_units,
    row_sizes,
    shortened,
    shortening,
    typical_entries,
)
from robust_rlhf_jax.moments.span import row_span

# With this many coordinates or more every fit is expensive: candidates get fewer rounds, and no filter of second
# moments.
WIDE = 128


class UnitFreePairs(eqx.Module):
    """N labelled differences as `rows` y_n = o_n·x_n·M [N, r], preferred less other, of second moment I on their span.

    A reward t agrees with label n where tᵀy_n > 0. Only o·x enters, so that nothing depends on which option of a pair
    stands first. `penalty` [r]: the squared length of a unit along each axis in columns of root mean square 1, scaled
    to mean 1: what the prior of t shrinks; `to_theta` M [k, r]: θ = M·t, `from_theta` [r, k] back; `rank` of the span.

    `informative` [N]: 1 where the options differ. A pair of equal options says nothing of any reward: its row is 0, its
    `informative` 0, and all that is found is as if it were absent.
    """

    rows: Float[Array, "N r"]
    penalty: Float[Array, " r"]
    to_theta: Float[Array, "k r"]
    from_theta: Float[Array, "r k"]
    rank: Int[Array, ""]
    informative: Float[Array, " N"]

    @property
    def n_pairs(self) -> int:
        return self.rows.shape[0]

    @property
    def n_informative(self) -> Float[Array, ""]:
        return count_of(self.informative)

    @property
    def wide(self) -> bool:
        return len(self.penalty) > WIDE

    def margins(self, t: Float[Array, " r"]) -> Float[Array, " N"]:
        """tᵀy_n, positive where t agrees with the label."""
        return matmul(self.rows, t)

    def lengths(self) -> Float[Array, " N"]:
        """‖y_n‖: the Mahalanobis length of pair n's difference."""
        return jnp.linalg.norm(self.rows, axis=1)


@jax.jit
def unit_free(x: Float[Array, "n k"], labels: Float[Array, " n"]) -> UnitFreePairs:
    """`UnitFreePairs` of x: nothing computed from them depends on the columns' units or on the sides of a pair.

    Columns are divided by a typical entry, which half of the rows cannot move. Rows that are 10⁴ times as long as the
    typical one (`honest_size`) are shortened (`kernels.units`), and the whitening shortens further. A direction that
    any row shows is kept however rare it is, up to the precision.
    """
    x = labels[:, None] * x
    size = typical_entries(x)
    scaled = in_units(x, size)
    lengths = row_sizes(scaled)
    relative = lengths / honest_size(lengths)
    scaled = shortened(scaled, relative)
    weights = weights_in_scales(relative)
    # If no pair is informative, all rows are 0, whatever their weights.
    weights = jnp.where(jnp.any(weights > 0), weights, 1.0)
    span = row_span(scaled, weights)
    deviations = jnp.sqrt(positive_or_one(span.variances))
    whiten, colour = span.axes / deviations, span.axes * deviations
    spread = jnp.sqrt(weighted_mean(scaled**2, weights))
    return UnitFreePairs(
        matmul(scaled, whiten),
        penalty_along(whiten, spread, span.rank),
        whiten / size[:, None],
        (colour * size[:, None]).T,
        span.rank,
        informative_rows(relative),
    )


def informative_rows(lengths: Float[Array, " n"]) -> Float[Array, " n"]:
    """`UnitFreePairs.informative` of rows of such lengths, of any unit: 0 for those of length 0, else 1."""
    return jnp.where(lengths == 0, 0.0, 1.0).astype(lengths.dtype)


def count_of(informative: Float[Array, " n"]) -> Float[Array, ""]:
    """How many pairs are informative, and 1 where none is, so that shares can be divided by it."""
    return jnp.maximum(jnp.sum(informative), 1.0)


def weights_in_scales(relative: Float[Array, " n"]) -> Float[Array, " n"]:
    """How much rows of such relative lengths count in second moments: far ones as if they lay nearer."""
    return informative_rows(relative) * shortening(relative, LONGEST_IN_SCALES) ** 2


def penalty_along(
    whiten: Float[Array, "k r"], spread: Float[Array, " k"], rank: Int[Array, ""]
) -> Float[Array, " r"]:
    """`UnitFreePairs.penalty` of axes that whiten columns of root mean square `spread`."""
    penalty = jnp.sum((spread[:, None] * whiten) ** 2, axis=0)
    return penalty * rank / positive_or_one(jnp.sum(penalty))
