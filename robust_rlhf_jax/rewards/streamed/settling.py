"""All explanations settled on all pairs at once: a pass gives every one its gradient, and each takes a step.

In memory a refit is ended before the weights are chosen again. Here both move after every pass: where neither moves any
more, the two are the same.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from robust_rlhf_jax.kernels.lapack import cholesky_solve
from robust_rlhf_jax.kernels.linalg import matmul

from ..config import RobustFit
from ..contamination import Cells, contaminated_in_bins
from ..coordinates import count_of
from ..prior_strength import next_strength
from .coordinates import StreamedCoordinates, straight
from .curvature import SampleCurvature, curvature_factor, mean_variance, prior_share
from .one_pass import Kind, Pass
from .passes import Passes

# An explanation has settled where the next step promises next to nothing, in nats (r/2 of them are what chance moves a
# fit of r coordinates by), and the weights and the prior's strength, relatively, hardly change on average.
SETTLED_GAIN, SETTLED_WEIGHTS, SETTLED_STRENGTH = 0.05, 1e-3, 0.05
# Nats behind another one at which an explanation is dropped: its belief is e⁻¹⁰⁰, whatever ε is.
HOPELESS = 100.0
# Changes of an objective below this share are rounding of its terms.
ROUNDING = 1e-7
# Halvings of a step after which its explanation stays at the last accepted point.
HALVINGS = 10


class Lanes(NamedTuple):
    """Explanations [E] that settle side by side, row 0 the plain fit, in NumPy so that a checkpoint holds them.

    | field | shape | meaning |
    |---|---|---|
    | `number` | [E] | of each among those of the sample |
    | `t` | [E, r] | where the next pass looks |
    | `accepted`, `margins` | [E, r], [E, padded] | the last point that was accepted, and its margins |
    | `weights` | [E, padded] | what the pairs count from there on |
    | `strength` | [E] | of the prior |
    | `halvings` | [E] | of the step from the accepted point |
    | `value`, `convicted` | [E] | there, as `AtBestLength` and `Contaminated` have them |
    | `gain` | [E] | nats that the next step promises |
    | `best`, `best_value` | [E, r], [E] | the accepted point of highest value |
    | `done` | [E] | whether it has settled |
    """

    number: np.ndarray
    t: np.ndarray
    accepted: np.ndarray
    margins: np.ndarray
    weights: np.ndarray
    strength: np.ndarray
    halvings: np.ndarray
    value: np.ndarray
    convicted: np.ndarray
    gain: np.ndarray
    best: np.ndarray
    best_value: np.ndarray
    done: np.ndarray

    def last(self) -> np.ndarray:
        """Where each explanation ends [E, r]: at its best point, or one step beyond where that is the last one. The
        plain fit always does the latter: it is maximum likelihood, whatever it makes of contradictions.
        """
        turned_back = (self.best_value > self.value) & (self.number > 0)
        return np.where(turned_back[:, None], self.best, self.t)


class Weighed(NamedTuple):
    """`weights` [padded]: the chance that the explanation leaves each pair, 1 under the plain fit; 0 for padding; its
    `value` and what it convicts.
    """

    weights: np.ndarray
    value: float
    convicted: float


def weighed(margins: np.ndarray, cells: Cells, plain: bool) -> Weighed:
    """What an explanation, or the plain fit, makes of each pair."""
    n = len(cells.of_length)
    lies, value, convicted = _contaminated(jnp.asarray(margins[:n]), bins_by_size(margins[:n], cells), cells)
    weights = np.zeros(len(margins), np.float32)
    weights[:n] = cells.informative if plain else cells.informative - lies
    return Weighed(weights, float(value), float(convicted))


def bins_by_size(values: np.ndarray, cells: Cells) -> Int[Array, " N"]:
    """`quantile_bins` of absolute values; NumPy sorts a million of them ten times as fast as XLA on a CPU."""
    size, bins = np.abs(values), int(cells.bins)
    order = np.sort(size[np.asarray(cells.informative) > 0])
    edges = order[[len(order) * b // bins for b in range(1, bins)]]
    return jnp.asarray(np.searchsorted(edges, size, side="right").astype(np.int32))


@eqx.filter_jit
def _contaminated(margins: Float[Array, " N"], bin_of: Int[Array, " N"], cells: Cells):
    """(lies [N], value, convicted) at the best length."""
    at = contaminated_in_bins(margins, bin_of, cells)
    return at.found.lies, at.value, at.found.convicted


@jax.jit
def _look(
    block: Array, coordinates: StreamedCoordinates, theta: Float[Array, "k E"], weights: Float[Array, "E m"]
):
    """(margins [E, m], Σ_n w_n r_n x_n [E, k]) of a block."""
    x = straight(block, coordinates.columns)
    margins = matmul(x, theta)
    return margins.T, matmul((weights.T * jax.nn.sigmoid(-margins)).T, x)


def look(
    passes: Passes, coordinates: StreamedCoordinates, t: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """One pass: (margins [E, padded], gradient of the log-likelihood [E, r]) of every explanation."""
    theta = matmul(jnp.asarray(t), coordinates.to_theta.T).T
    one = Pass("gradients", _look, (Kind.PAIR, Kind.SUM), (coordinates, theta), (weights,))
    margins, pull = passes.run(one)
    return margins, np.asarray(matmul(jnp.asarray(pull, jnp.float32), coordinates.to_theta))


def _hopeless(lanes: Lanes, convictable: float) -> Bool[np.ndarray, " E"]:
    """Explanations that another one is ahead of by more than steps may change, one that convicts no more than they do
    or than is `convictable`: the plain fit never.
    """
    behind = lanes.best_value[None, :] - lanes.best_value[:, None]
    stands = lanes.convicted[None, :] <= np.maximum(lanes.convicted, convictable)[:, None]
    dominated = (behind > HOPELESS + 2.0 * lanes.gain[:, None]) & stands
    return dominated.any(axis=1) & (lanes.number > 0)


class Sample(NamedTuple):
    """The `curvature` of a sample of the pairs, and their `places` [m] among all."""

    curvature: SampleCurvature
    places: Int[np.ndarray, " m"]


class Settling:
    """Settles `Lanes` by one pass after another; an explanation may convict the share `convictable` of the pairs."""

    def __init__(
        self,
        passes: Passes,
        coordinates: StreamedCoordinates,
        sample: Sample,
        cells: Cells,
        convictable: float,
        config: RobustFit,
    ):
        self.passes, self.coordinates, self.cells, self.config = passes, coordinates, cells, config
        self.sample, self.convictable = sample, convictable
        self.penalty = np.asarray(coordinates.penalty)
        self.n = float(count_of(cells.informative))

    def begin(self, theta: Float[Array, "E k"], strength: Float[Array, " E"], margins: np.ndarray) -> Lanes:
        """Where the sample's explanations stand among all pairs, whose `margins` [E, padded] under them are known."""
        t = np.array(matmul(theta, self.coordinates.from_theta.T))
        count, nothing = len(t), np.full(len(t), -np.inf)
        weights = [weighed(row, self.cells, lane == 0).weights for lane, row in enumerate(margins)]
        return Lanes(
            number=np.arange(count),
            t=t,
            accepted=t.copy(),
            margins=margins,
            weights=np.stack(weights),
            strength=np.array(strength),
            halvings=np.zeros(count, int),
            value=nothing,
            convicted=np.zeros(count),
            gain=np.full(count, np.inf),
            best=t.copy(),
            best_value=nothing.copy(),
            done=np.zeros(count, bool),
        )

    def step(self, lanes: Lanes) -> Lanes:
        """One pass, and one step of every explanation that has not settled; `lanes` is used up."""
        active = np.flatnonzero(~lanes.done).tolist()
        margins, gradient = look(self.passes, self.coordinates, lanes.t[active], lanes.weights[active])
        for row, lane in enumerate(active):
            if self._falls(lanes, lane, margins[row]):
                self._halve(lanes, lane)
            else:
                self._move(lanes, lane, margins[row], gradient[row])
        hopeful = ~_hopeless(lanes, self.convictable)
        return lanes if hopeful.all() else Lanes(*(part[hopeful] for part in lanes))

    def _falls(self, lanes: Lanes, lane: int, margins: np.ndarray) -> bool:
        """Whether the step has lowered the objective under the weights of this pass. Where an explanation begins there
        was no step.
        """
        if not np.isfinite(lanes.gain[lane]):
            return False

        def objective(margins, t):
            # In float64: a float32 sum over ten million pairs is off by more than a step gains.
            fit = -np.sum(lanes.weights[lane] * np.logaddexp(np.float32(0), -margins), dtype=np.float64)
            return fit - 0.5 * lanes.strength[lane] * np.dot(self.penalty, t**2)

        before = objective(lanes.margins[lane], lanes.accepted[lane])
        return bool(objective(margins, lanes.t[lane]) < before - ROUNDING * abs(before))

    def _halve(self, lanes: Lanes, lane: int) -> None:
        lanes.t[lane] = 0.5 * (lanes.t[lane] + lanes.accepted[lane])
        lanes.halvings[lane] += 1
        lanes.done[lane] = lanes.halvings[lane] > HALVINGS

    def _move(self, lanes: Lanes, lane: int, margins: np.ndarray, gradient: np.ndarray) -> None:
        """Accept the point, choose the weights and the prior's strength anew, and take Newton's step from there."""
        t, used, strength = lanes.t[lane].copy(), lanes.weights[lane].copy(), lanes.strength[lane]
        factor = self.factor_at(margins, used, strength)
        gradient = (gradient - strength * self.penalty * t) / self.n
        move = np.asarray(cholesky_solve(factor, jnp.asarray(gradient)[:, None])[:, 0])
        share = prior_share(factor, strength * self.coordinates.penalty / self.n, jnp.asarray(t + move))
        asked, end = next_strength(
            self.coordinates, jnp.asarray(t + move), jnp.asarray(strength), share, self.config
        )
        found = weighed(margins, self.cells, lanes.number[lane] == 0)
        lanes.margins[lane], lanes.accepted[lane], lanes.weights[lane] = margins, t, found.weights
        lanes.strength[lane], lanes.halvings[lane], lanes.t[lane] = asked, 0, end
        lanes.value[lane], lanes.convicted[lane] = found.value, found.convicted
        lanes.gain[lane] = 0.5 * self.n * np.dot(gradient, move)
        if found.value > lanes.best_value[lane]:
            lanes.best[lane], lanes.best_value[lane] = t, found.value
        change = np.abs(found.weights - used).sum(dtype=np.float64) / self.n
        lanes.done[lane] = (
            lanes.gain[lane] < SETTLED_GAIN
            and change < SETTLED_WEIGHTS
            and abs(np.log(lanes.strength[lane] / strength)) < SETTLED_STRENGTH
        )

    def factor_at(self, margins: np.ndarray, weights: np.ndarray, strength: float) -> Array:
        """The lower Cholesky factor of the curvature per pair, with the prior's."""
        n, (curvature, places) = self.n, self.sample
        mean = mean_variance(margins, weights, n)
        at = jnp.asarray(margins[places]), jnp.asarray(weights[places])
        return curvature_factor(curvature, *at, mean, strength * self.coordinates.penalty / n)
