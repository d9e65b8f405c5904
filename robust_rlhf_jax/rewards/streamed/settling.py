"""All explanations settled on all pairs at once: a pass gives every one its gradient, and each takes a step.

In memory a refit is ended before the weights are chosen again. Here both move after every pass: where neither moves any
more, the two are the same.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from robust_rlhf_jax.kernels.lapack import cholesky_solve
from robust_rlhf_jax.kernels.linalg import matmul

from ..config import RobustFit
from ..contamination import Cells, contaminated_at_best_length
from ..posterior_fit import next_strength
from .coordinates import StreamedCoordinates, straight
from .curvature import SampleCurvature, curvature_factor, mean_variance
from .passes import Passes

# An explanation has settled where the next step promises next to nothing, in nats (r/2 of them are what chance moves a
# fit of r coordinates by), and the weights and the prior's strength, relatively, hardly change on average.
SETTLED_GAIN, SETTLED_WEIGHTS, SETTLED_STRENGTH = 0.05, 1e-3, 0.05
# Nats by which an explanation is behind for good: its belief is e⁻¹⁰⁰, whatever ε is.
HOPELESS = 100.0
# A step is halved this often before its explanation is left where it was.
HALVINGS = 10


class Lanes(NamedTuple):
    """Explanations [E] that settle side by side, row 0 the plain fit, in NumPy so that a checkpoint holds them.

    `t` [E, r]: where the next pass looks; `accepted` [E, r], `margins`, `weights` [E, padded]: the last point that was
    accepted, its margins, and the weights that they give; `strength` [E]; `halvings` [E] of the step from there;
    `value`, `convicted` [E] there, as `AtBestLength`, and the nats that the next step promises, `gain`; `best` [E, r]:
    the accepted point of highest value, `best_value` [E]; `done` [E].
    """

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
        """Where each explanation ends [E, r]: at its best point, or one step beyond where that is the last one."""
        return np.where((self.best_value > self.value)[:, None], self.best, self.t)


def first_lanes(
    coordinates: StreamedCoordinates,
    theta: Float[Array, "E k"],
    strength: Float[Array, " E"],
    margins: np.ndarray,
    cells: Cells,
) -> Lanes:
    """Where the sample's explanations stand among all pairs."""
    t = np.asarray(matmul(theta, coordinates.from_theta.T))
    weights, nobody = np.zeros_like(margins), np.full(len(t), -np.inf)
    for lane, row in enumerate(margins):
        weights[lane] = weighed(row, cells, lane).weights
    count = len(t)
    return Lanes(
        t, t.copy(), margins, weights, np.array(strength), np.zeros(count, int), nobody, np.zeros(count),
        np.full(count, np.inf), t.copy(), nobody.copy(), np.zeros(count, bool),
    )  # fmt: skip


class Weighed(NamedTuple):
    """`weights` [padded]: the chance that the explanation leaves each pair, 1 under the plain fit; 0 for padding; its
    `value` and what it convicts.
    """

    weights: np.ndarray
    value: float
    convicted: float


def weighed(margins: np.ndarray, cells: Cells, lane: int) -> Weighed:
    """What an explanation of all pairs makes of each."""
    n = len(cells.of_length)
    lies, value, convicted = _contaminated(jnp.asarray(margins[:n]), cells.of_length, cells.bins)
    weights = np.zeros(len(margins), np.float32)
    weights[:n] = 1.0 if lane == 0 else 1.0 - lies
    return Weighed(weights, float(value), float(convicted))


@eqx.filter_jit
def _contaminated(margins: Float[Array, " N"], of_length: Array, bins: int):
    """(lies [N], value, convicted) at the best length."""
    at = contaminated_at_best_length(margins, Cells(of_length, bins))
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
    margins, pull = passes.room(len(t)), np.zeros((len(t), passes.n_features))
    for place, block in passes.blocks("gradients"):
        margins[:, place], part = _look(block, coordinates, theta, weights[:, place])
        pull += part
    return margins, np.asarray(matmul(jnp.asarray(pull, jnp.float32), coordinates.to_theta))


def _hopeless(lanes: Lanes) -> np.ndarray:
    """Explanations that another one, which convicts no more, is ahead of by more than steps may change."""
    behind = lanes.best_value[None, :] - lanes.best_value[:, None]
    dominated = (behind > HOPELESS + 2.0 * lanes.gain[:, None]) & (
        lanes.convicted[None, :] <= lanes.convicted[:, None]
    )
    return dominated.any(axis=1) & (np.arange(len(lanes.t)) > 0)


class Settling:
    """Settles `Lanes` by one pass after another."""

    def __init__(
        self,
        passes: Passes,
        coordinates: StreamedCoordinates,
        sample: SampleCurvature,
        places: np.ndarray,
        cells: Cells,
        config: RobustFit,
    ):
        self.passes, self.coordinates, self.cells, self.config = passes, coordinates, cells, config
        self.sample, self.places = sample, places
        self.penalty = np.asarray(coordinates.penalty)

    def step(self, lanes: Lanes) -> Lanes:
        """One pass, and one step of every explanation that has not settled."""
        active = np.flatnonzero(~lanes.done).tolist()
        margins, gradient = look(self.passes, self.coordinates, lanes.t[active], lanes.weights[active])
        new = Lanes(*(part.copy() for part in lanes))
        for row, lane in enumerate(active):
            if self._falls(lanes, lane, margins[row]):
                self._halve(new, lane)
            else:
                self._move(new, lane, margins[row], gradient[row])
        return new._replace(done=new.done | _hopeless(new))

    def _falls(self, lanes: Lanes, lane: int, margins: np.ndarray) -> bool:
        """Whether the step has lowered the objective under the weights of this pass."""

        def objective(margins, t):
            fit = np.dot(lanes.weights[lane], -np.logaddexp(np.float32(0), -margins))
            return fit - 0.5 * lanes.strength[lane] * np.dot(self.penalty, t**2)

        before = objective(lanes.margins[lane], lanes.accepted[lane])
        return bool(objective(margins, lanes.t[lane]) < before - 1e-6 * abs(before))

    def _halve(self, lanes: Lanes, lane: int) -> None:
        lanes.t[lane] = 0.5 * (lanes.t[lane] + lanes.accepted[lane])
        lanes.halvings[lane] += 1
        lanes.done[lane] = lanes.halvings[lane] > HALVINGS

    def _move(self, lanes: Lanes, lane: int, margins: np.ndarray, gradient: np.ndarray) -> None:
        """Accept the point, choose the weights and the prior's strength anew, and take Newton's step from there."""
        t, used, strength = lanes.t[lane].copy(), lanes.weights[lane].copy(), lanes.strength[lane]
        factor = self.factor_at(margins, used, strength)
        total = max(float(used.sum(dtype=np.float64)), 1.0)
        gradient = (gradient - strength * self.penalty * t) / self.passes.n
        move = np.asarray(cholesky_solve(factor, jnp.asarray(gradient)[:, None])[:, 0])
        # The factor is per pair, and `next_strength` takes one per unit of weight.
        rescaled = factor * (self.passes.n / total) ** 0.5
        asked = next_strength(
            self.coordinates,
            jnp.asarray(t + move),
            rescaled,
            jnp.asarray(strength),
            jnp.asarray(total),
            self.config,
        )
        found = weighed(margins, self.cells, lane)
        lanes.margins[lane], lanes.accepted[lane], lanes.weights[lane] = margins, t, found.weights
        lanes.strength[lane], lanes.halvings[lane], lanes.t[lane] = asked, 0, t + move
        lanes.value[lane], lanes.convicted[lane] = found.value, found.convicted
        lanes.gain[lane] = 0.5 * self.passes.n * np.dot(gradient, move)
        if found.value > lanes.best_value[lane]:
            lanes.best[lane], lanes.best_value[lane] = t, found.value
        change = np.abs(found.weights - used).sum(dtype=np.float64) / self.passes.n
        lanes.done[lane] = (
            lanes.gain[lane] < SETTLED_GAIN
            and change < SETTLED_WEIGHTS
            and abs(np.log(lanes.strength[lane] / strength)) < SETTLED_STRENGTH
        )

    def factor_at(self, margins: np.ndarray, weights: np.ndarray, strength: float) -> Array:
        """The lower Cholesky factor of the curvature per pair, with the prior's."""
        mean = mean_variance(margins, weights, self.passes.n)
        precision = strength * self.coordinates.penalty / self.passes.n
        return curvature_factor(
            self.sample, jnp.asarray(margins[self.places]), jnp.asarray(weights[self.places]), mean, precision
        )
