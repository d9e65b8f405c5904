"""What settled explanations say of all pairs, and how well each would explain a pair that it has not seen."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.kernels.linalg import matmul

from ..comparisons import Comparisons, more_seen
from ..contamination import Cells, contaminated_in_bins
from ..coordinates import count_of
from ..decision import Judged
from ..posterior_fit import optimism_of
from .coordinates import StreamedCoordinates, straight
from .one_pass import Kind, Pass
from .passes import Passes
from .settling import Lanes, Settling, bins_by_size

# Random signs by which lengths under a curvature are measured: a squared length is known to √(2/32) of itself, and the
# sum over many pairs that is asked for far better.
SKETCH = 32


class Sketch(NamedTuple):
    """`theta` [k, E]; `inverse_roots` [k, E·s]: S·L⁻¹ of each explanation's curvature, LLᵀ, so that ‖S L⁻¹y‖² ≈
    yᵀH⁻¹y; `of_scores` [k, s], the same of the plain fit's information.
    """

    theta: Float[Array, "k E"]
    inverse_roots: Float[Array, "k Es"]
    of_scores: Float[Array, "k s"]


class Measured(NamedTuple):
    """One last pass over the pairs: `margins` and `leverage` yᵀH⁻¹y [E, padded], `overdispersion` of raters' labels."""

    margins: np.ndarray
    leverage: np.ndarray
    overdispersion: float


def sketch_of(settling: Settling, lanes: Lanes) -> Sketch:
    """`Sketch` at the explanations' last points."""
    coordinates, n = settling.coordinates, settling.n
    signs = (
        jax.random.rademacher(jax.random.key(0), (len(coordinates.penalty), SKETCH), jnp.float32)
        / SKETCH**0.5
    )

    def root(factor):
        return matmul(
            coordinates.to_theta, jax.scipy.linalg.solve_triangular(factor, signs, lower=True, trans=1)
        )

    roots = [
        root(settling.factor_at(*at)) / n**0.5
        for at in zip(lanes.margins, lanes.weights, lanes.strength, strict=True)
    ]
    # A hundredth of a pair along every axis, as in `rewards/overdispersion.py`.
    everyone = np.zeros(settling.passes.padded, np.float32)
    everyone[: settling.passes.n] = settling.cells.informative
    plain = settling.factor_at(lanes.margins[0], everyone, 0.01 / float(jnp.mean(coordinates.penalty)))
    theta = matmul(coordinates.to_theta, jnp.asarray(lanes.last()).T)
    return Sketch(theta, jnp.concatenate(roots, axis=1), root(plain) / n**0.5)


@jax.jit
def _measure(block: Array, coordinates: StreamedCoordinates, sketch: Sketch):
    x = straight(block, coordinates.columns)
    margins = matmul(x, sketch.theta)
    half = matmul(x, sketch.inverse_roots).reshape(len(x), margins.shape[1], -1)
    scores = jax.nn.sigmoid(-margins[:, :1]) * matmul(x, sketch.of_scores)
    return margins.T, jnp.sum(half**2, axis=2).T, scores


def measure(
    passes: Passes,
    coordinates: StreamedCoordinates,
    sketch: Sketch,
    groups: Int[np.ndarray, " N"] | None,
) -> Measured:
    """One pass: margins and leverages at the last points, and how overdispersed the labels of one rater are."""
    by_group = np.zeros((0 if groups is None else int(groups.max()) + 1, SKETCH))

    def add(place: slice, scores: np.ndarray) -> None:
        if groups is not None:
            mine = groups[place]
            np.add.at(by_group, mine, scores[: len(mine)])

    gives = (Kind.PAIR, Kind.PAIR, Kind.UNUSED if groups is None else Kind.ROWS)
    margins, leverage, _ = passes.run(Pass("leverages", _measure, gives, (coordinates, sketch)), add)
    overdispersion = float((by_group**2).sum()) / max(int(coordinates.rank), 1)
    return Measured(margins, leverage, max(overdispersion, 1.0))


@eqx.filter_jit
def _judged_one(
    cells: Cells,
    t: Float[Array, " r"],
    margins: Float[Array, " N"],
    leverage: Float[Array, " N"],
    plain: Bool[Array, ""],
    bin_of: Int[Array, " N"],
    comparisons: Comparisons | None,
) -> Judged:
    at = contaminated_in_bins(margins, bin_of, cells)
    best, informative = at.found, cells.informative
    weights = jnp.where(plain, informative, informative - best.lies)
    own = weights * leverage
    seen = optimism_of(margins, weights, own)
    return Judged(
        at.scale * t,
        at.scale * margins,
        best.log_likelihoods - seen * informative / count_of(informative),
        at.honest - seen,
        at.value - seen,
        best.rates,
        best.lies,
        best.needed,
        best.convicted,
        at.noise,
        Status.CONVERGED.array(),
        informative,
        more_seen(seen, margins, weights, own, comparisons),
    )


def judged_by_all(measured: Measured, lanes: Lanes, cells: Cells, comparisons: Comparisons | None) -> Judged:
    """`decision.judge` of settled explanations."""
    n = len(cells.of_length)
    ended = np.where(lanes.done, Status.CONVERGED.value, Status.MAX_STEPS.value)
    rows, last = [], lanes.last()
    for lane in range(len(last)):
        margins, leverage = (part[lane][:n] for part in (measured.margins, measured.leverage))
        one = _judged_one(
            cells,
            jnp.asarray(last[lane]),
            jnp.asarray(margins),
            jnp.asarray(leverage),
            jnp.asarray(lane == 0),
            jnp.asarray(bins_by_size(margins, cells)),
            comparisons,
        )
        finite = jnp.isfinite(one.honest) & jnp.all(jnp.isfinite(one.t))
        code = jnp.asarray(ended[lane], one.status.dtype)
        rows.append(one._replace(status=jnp.where(finite, code, Status.NONFINITE.array())))
    judged = jax.tree.map(lambda *leaves: jnp.stack(leaves), *rows)
    return judged._replace(informative=cells.informative)


@eqx.filter_jit
def _dearer(
    cells: Cells, times: Float[Array, ""], margins: Float[Array, " N"], bin_of: Int[Array, " N"]
) -> Float[Array, ""]:
    """How many nats an explanation loses where rates cost so many times as much."""
    dear = contaminated_in_bins(margins, bin_of, cells._replace(overdispersion=times))
    return contaminated_in_bins(margins, bin_of, cells).value - dear.value


def dispersed_by_all(judged: Judged, measured: Measured, cells: Cells) -> Judged:
    """`decision.dispersed` of settled explanations."""
    times = jnp.asarray(measured.overdispersion, jnp.float32)
    rows = [row[: len(cells.of_length)] for row in measured.margins]
    dearer = [_dearer(cells, times, jnp.asarray(row), bins_by_size(row, cells)) for row in rows]
    return judged._replace(dispersed=judged.dispersed - jnp.stack(dearer))
