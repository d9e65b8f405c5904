"""All explanations settled on all pairs at once: a pass gives every one its gradient, and each takes a step.

In memory a refit is ended before the weights are chosen again. Here both move after every pass: where neither moves any
more, the two are the same.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from robust_rlhf_jax.kernels.lapack import cholesky_solve
from robust_rlhf_jax.kernels.linalg import matmul

from ..config import RobustFit
from ..contamination import Cells, contaminated_at_best_length
from ..posterior_fit import next_strength
from .coordinates import StreamedCoordinates, straight
from .curvature import SampleCurvature, curvature_factor, mean_variance
from .passes import Passes

# An explanation has settled where its margins, its weights and the prior's relative strength hardly move: the root
# mean square of a step relative to that of the margins; the mean of the weights' change.
SETTLED_MARGINS, SETTLED_WEIGHTS, SETTLED_STRENGTH = 3e-4, 1e-3, 0.05
# Margins of this root mean square are none.
SMALL = 0.1
# A step is halved this often before its explanation is left where it was.
HALVINGS = 10


class Lanes(NamedTuple):
    """Explanations [E] that settle side by side, row 0 the plain fit, in NumPy so that a checkpoint holds them.

    `t` [E, r]: where the next pass looks; `settled_t`, `margins` [E, padded], `weights` [E, padded]: the last point
    that was accepted, its margins, and the weights that they give; `strength` [E]; `halvings` [E] of the step from
    there; `done` [E].
    """

    t: np.ndarray
    accepted: np.ndarray
    margins: np.ndarray
    weights: np.ndarray
    strength: np.ndarray
    halvings: np.ndarray
    done: np.ndarray


def first_lanes(
    coordinates: StreamedCoordinates,
    theta: Float[Array, "E k"],
    strength: Float[Array, " E"],
    margins: np.ndarray,
    cells: Cells,
) -> Lanes:
    """Where the sample's explanations stand among all pairs."""
    t = np.asarray(matmul(theta, coordinates.from_theta.T))
    weights = np.zeros_like(margins)
    for lane, row in enumerate(margins):
        weights[lane] = _weights(row, cells, lane)
    count = len(t)
    return Lanes(
        t, t.copy(), margins, weights, np.array(strength), np.zeros(count, int), np.zeros(count, bool)
    )


def _weights(margins: np.ndarray, cells: Cells, lane: int) -> np.ndarray:
    """1 for every pair under the plain fit, else the chance that the explanation leaves it; 0 for padding."""
    n = len(cells.of_length)
    weights = np.zeros(len(margins), np.float32)
    weights[:n] = 1.0 if lane == 0 else _honest(jnp.asarray(margins[:n]), cells.of_length, cells.bins)
    return weights


@eqx.filter_jit
def _honest(margins: Float[Array, " N"], of_length: Array, bins: int) -> Float[Array, " N"]:
    return 1.0 - contaminated_at_best_length(margins, Cells(of_length, bins)).found.lies


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
        active = np.flatnonzero(~lanes.done)
        margins, gradient = look(self.passes, self.coordinates, lanes.t[active], lanes.weights[active])
        new = Lanes(*(part.copy() for part in lanes))
        for row, lane in enumerate(active):
            if self._falls(lanes, lane, margins[row]):
                self._halve(new, lane)
            else:
                self._move(new, lane, margins[row], gradient[row])
        return new

    def _falls(self, lanes: Lanes, lane: int, margins: np.ndarray) -> Bool[Array, ""]:
        """Whether the step has lowered the objective under the weights of this pass."""

        def objective(margins, t):
            fit = np.dot(lanes.weights[lane], -np.logaddexp(np.float32(0), -margins))
            return fit - 0.5 * lanes.strength[lane] * np.dot(self.penalty, t**2)

        before = objective(lanes.margins[lane], lanes.accepted[lane])
        return objective(margins, lanes.t[lane]) < before - 1e-6 * abs(before)

    def _halve(self, lanes: Lanes, lane: int) -> None:
        lanes.t[lane] = 0.5 * (lanes.t[lane] + lanes.accepted[lane])
        lanes.halvings[lane] += 1
        lanes.done[lane] = lanes.halvings[lane] > HALVINGS

    def _move(self, lanes: Lanes, lane: int, margins: np.ndarray, gradient: np.ndarray) -> None:
        """Accept the point, choose the weights and the prior's strength anew, and take Newton's step from there."""
        t, used, strength = lanes.t[lane].copy(), lanes.weights[lane].copy(), lanes.strength[lane]
        size = max(float(np.linalg.norm(t)), SMALL)
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
        lanes.margins[lane], lanes.accepted[lane] = margins, t
        lanes.weights[lane] = _weights(margins, self.cells, lane)
        lanes.strength[lane], lanes.halvings[lane] = asked, 0
        lanes.t[lane] = t + move
        change = np.abs(lanes.weights[lane] - used).sum(dtype=np.float64) / self.passes.n
        lanes.done[lane] = (
            np.linalg.norm(move) < SETTLED_MARGINS * size
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
