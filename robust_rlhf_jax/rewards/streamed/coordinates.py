"""The coordinates of `UnitFreePairs` from passes over the pairs: columns from a sample, moments from all."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from robust_rlhf_jax.kernels.linalg import matmul, relative_tolerance, weighted_gram
from robust_rlhf_jax.kernels.units import (
    honest_size,
    in_units,
    row_sizes,
    shortened,
    shortening,
    typical_entries,
)
from robust_rlhf_jax.sources import PairSource
from robust_rlhf_jax.sources.protocol import place_in_words

from ..coordinates import UnitFreePairs, informative_rows, penalty_along, weights_in_scales
from .comparisons import KEYS, row_keys
from .one_pass import Kind, Pass
from .passes import Passes

# Ratio of standard deviations up to which float32 products lose no more than 1e-4 of the smallest second moment: eps
# times its square.
STEEP = 30.0
# Typical lengths from which on a row is shortened, 10⁴ in memory. Here the curvature comes from a sample, in which one
# such row of many is not: Newton's steps settle with rows of 100 typical lengths, and not with those of 1,000.
LONGEST = 100.0


class Columns(eqx.Module):
    """`size` [k]: a typical entry of each column; `typical`: a typical row's size in columns divided by those."""

    size: Float[Array, " k"]
    typical: Float[Array, ""]


class StreamedCoordinates(eqx.Module):
    """`UnitFreePairs` but for its rows: `penalty` [r], `to_theta` [k, r], `from_theta` [r, k] and `rank`; `columns`."""

    columns: Columns
    penalty: Float[Array, " r"]
    to_theta: Float[Array, "k r"]
    from_theta: Float[Array, "r k"]
    rank: Int[Array, ""]

    def of_rows(self, x: Float[Array, "m k"]) -> UnitFreePairs:
        """Some of the pairs in these coordinates."""
        x = straight(x, self.columns)
        rows, informative = matmul(x, self.to_theta), informative_rows(row_sizes(x))
        return UnitFreePairs(rows, self.penalty, self.to_theta, self.from_theta, self.rank, informative)


@jax.jit
def typical_columns(sample: Float[Array, "m k"]) -> Columns:
    """`Columns` of a sample of the pairs: a fifth of its rows cannot move them."""
    size = typical_entries(sample)
    return Columns(size, honest_size(row_sizes(in_units(sample, size))))


def relative(x: Float[Array, "m k"], columns: Columns) -> Float[Array, " m"]:
    """How many typical rows long each row is."""
    return row_sizes(in_units(x, columns.size)) / columns.typical


def straight(x: Float[Array, "m k"], columns: Columns) -> Float[Array, "m k"]:
    """Rows in float32, those that are absurdly long shortened."""
    x = x.astype(columns.size.dtype)
    return x * shortening(relative(x, columns), LONGEST)[:, None]


@jax.jit
def _scaled(
    block: Array, columns: Columns
) -> tuple[Float[Array, "m k"], Float[Array, " m"], Float[Array, " m"]]:
    """(rows in columns divided by their sizes, absurdly long ones shortened; what each counts; relative lengths)."""
    x = in_units(block.astype(columns.size.dtype), columns.size)
    lengths = row_sizes(x) / columns.typical
    return shortened(x, lengths, LONGEST), weights_in_scales(lengths), lengths


def level_basis(sample: Float[Array, "m k"], columns: Columns) -> Float[np.ndarray, "k k"] | None:
    """A basis, as columns, in which a sample has second moment I, but for directions that it hardly shows; None where
    the columns themselves serve, for no direction of the sample is `STEEP` times as long as another.

    In it float32 products of all pairs lose nothing: a second moment in the columns themselves would keep no digit of a
    direction whose standard deviation is below √eps of the largest. Directions that the sample does not show are as
    long as rounding allows.
    """
    # The pass that follows names what is not finite.
    sample = jnp.where(jnp.isfinite(sample), sample, 0.0)
    rows, weights, _ = (np.asarray(part, np.float64) for part in _scaled(sample, columns))
    values, axes = np.linalg.eigh((rows * weights[:, None]).T @ rows / max(weights.sum(), 1e-30))
    deviations = np.sqrt(np.maximum(values, 0.0))
    if deviations.max() <= STEEP * deviations.min():
        return None
    return axes / np.maximum(deviations, null_below(deviations))


def null_below(deviations: Float[np.ndarray, " k"]) -> float:
    """The standard deviation up to which a direction is rounding, as in `moments.span.row_span`."""
    return float(relative_tolerance(jnp.float32, len(deviations))) * float(deviations.max(initial=1e-30))


@jax.jit
def _moment(block: Array, columns: Columns, basis: Float[Array, "k k"] | None):
    """(Σ w yyᵀ of a block's rows in a basis, relative lengths)."""
    x, weights, lengths = _scaled(block, columns)
    return weighted_gram(x if basis is None else matmul(x, basis), weights), lengths


def second_moment(
    passes: Passes, columns: Columns, basis: Float[np.ndarray, "k k"] | None
) -> Float[np.ndarray, "k k"]:
    """One pass: Σ_n w_n x_n x_nᵀ/Σ_n w_n in columns divided by their sizes, added up in a `level_basis`.

    **Raises:** ValueError for features that are not finite, with the first such pair.
    """
    level = None if basis is None else jnp.asarray(basis, columns.size.dtype)
    total, lengths = passes.run(Pass("second moments", _moment, (Kind.SUM, Kind.PAIR), (columns, level)))
    seen = lengths[: passes.n]
    check_rows_finite(np.isfinite(seen), passes.source)
    if level is not None:
        back = np.linalg.inv(np.asarray(level, np.float64))
        total = back.T @ total @ back
    counted = np.asarray(weights_in_scales(jnp.asarray(seen))).sum(dtype=np.float64)
    return total / max(counted, 1e-30)


def check_rows_finite(finite: Bool[np.ndarray, " N"], source: PairSource) -> None:
    """**Raises:** ValueError that names the first pair whose features are not."""
    if not finite.all():
        first = int(np.flatnonzero(~finite)[0])
        place = place_in_words(source, first)
        raise ValueError(f"pair {first:,} (from 0) has features that are not finite: leave it out{place}.")


def coordinates_of(moment: Float[np.ndarray, "k k"], columns: Columns) -> StreamedCoordinates:
    """Coordinates in which the second moment is I on the span, from that of columns divided by their sizes."""
    values, axes = np.linalg.eigh(moment)
    dtype, deviations = columns.size.dtype, np.sqrt(np.maximum(values, 0.0))
    keep = deviations > null_below(deviations)
    axes, deviations = np.where(keep, axes, 0.0), np.where(keep, deviations, 1.0)
    whiten, colour = (jnp.asarray(part, dtype) for part in (axes / deviations, axes * deviations))
    # Rounding leaves something below 0 of a column of zeros.
    spread = jnp.asarray(np.sqrt(np.maximum(np.diag(moment), 0.0)), dtype)
    rank = jnp.asarray(keep.sum(), jnp.int32)
    size = columns.size[:, None]
    penalty = penalty_along(whiten, spread, rank)
    return StreamedCoordinates(columns, penalty, whiten / size, (colour * size).T, rank)


@jax.jit
def _lengths(block: Array, coordinates: StreamedCoordinates, theta: Float[Array, "k E"]):
    x = straight(block, coordinates.columns)
    return (
        jnp.linalg.norm(matmul(x, coordinates.to_theta), axis=1),
        matmul(x, theta).T,
        row_keys(block),
    )


def lengths_and_margins(
    passes: Passes, coordinates: StreamedCoordinates, theta: Float[Array, "E k"]
) -> tuple[np.ndarray, np.ndarray, UInt32[np.ndarray, "padded KEYS"]]:
    """One pass: (Mahalanobis length [padded], margin [E, padded] under each θ, `row_keys`) of every pair."""
    keys = np.zeros((passes.padded, KEYS), np.uint32)

    def collect(place: slice, rows: np.ndarray) -> None:
        keys[place] = rows

    gives = (Kind.PAIR, Kind.PAIR, Kind.ROWS)
    lengths, margins, _ = passes.run(Pass("lengths", _lengths, gives, (coordinates, theta.T)), collect)
    return lengths, margins, keys


def not_all_alike(moment: np.ndarray) -> None:
    """**Raises:** ValueError where no pair's options differ."""
    if not np.trace(moment) > 0:
        raise ValueError("Both options of every pair have the same features: give pairs that differ.")
