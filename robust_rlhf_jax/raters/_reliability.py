"""How reliable each rater is: one number w_k, shrunk towards the crowd as far as its answers are few."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.kernels.linalg import matmul

from ._finer import around_peaks
from ._unit import unit_of

# The weights w that are tried, before they are divided by their mean: −1 reverses what the crowd says twice as surely
# as the crowd itself, and beyond 6 a label is as good as certain.
GRID = np.linspace(-4.0, 6.0, 201)
# Points of the grids of each rater's own, each around the peak of the one before: a rater with many pairs is known
# better than a step of `GRID`.
FINER = (13, 33)
# Rounds of EM; the spread that it begins with, and raters that count as seen with that spread; the least spread.
ROUNDS, FIRST_SPREAD, SEEN, LEAST_SPREAD = 100, 0.5, 2.0, 0.05


class Reliability(NamedTuple):
    """w_k of each rater [K]: posterior `mean`, standard `error`, ends of the central 95 % interval; `crowd`, the mean
    and the standard deviation of w over raters that the data show.

    1: as reliable as the crowd on average, 0: tosses a coin, negative: prefers what the crowd does not.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax import raters
    >>> found = raters.reliability(np.ones(30, np.float32), np.repeat([0, 1, 2], 10), 3)
    >>> found.mean.round(2).tolist()
    [1.0, 1.0, 1.0]
    """

    mean: Float[Array, " K"]
    error: Float[Array, " K"]
    low: Float[Array, " K"]
    high: Float[Array, " K"]
    crowd: Float[Array, "2"]


@partial(jax.jit, static_argnames="n_raters")
def reliability(margins: Float[Array, " N"], raters: Int[Array, " N"], n_raters: int) -> Reliability:
    """P(label) = σ(w_k m_n) of a pair n that rater k judged, by empirical Bayes. Jit- and vmap-able.

    m_n = o_nθᵀx_n is the margin under a θ that does not know rater k's labels. w_k ~ N(μ, ω²); EM finds the μ and ω
    that make all labels likeliest on a grid of w, and a finer grid of each rater's own tells their posterior. (θ, w)
    and (cθ, w/c) are the same model: w is divided by its mean over pairs, so that this is 1, unless raters contradict
    the margins nearly as often as they follow them: no scale makes their mean 1 then.

    **Arguments:** `margins` [N]; `raters` [N]: numbers from 0 to K − 1; `n_raters`: K, static.

    **Raises:** nothing: `rate_raters` checks its input.

    **Source:** Dawid & Skene 1979 for raters; the trust of arXiv:2601.18751; shrinkage after Efron & Morris 1973.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax import raters
    >>> margins = np.tile(np.array([2.0, 1.5, -0.5, 2.0]), 40).astype(np.float32)
    >>> who = np.repeat(np.arange(8), 20)
    >>> margins[who == 5] *= -1  # rater 5 says the opposite
    >>> found = raters.reliability(margins, who, 8)
    >>> bool(found.high[5] < 0), int(found.mean.argmin())
    (True, 5)
    """
    margins = jnp.asarray(margins)
    # `GRID` is made for margins of which the crowd is as sure as they say.
    margins = margins * unit_of(margins)
    grid = jnp.asarray(GRID, margins.dtype)
    likelihood = jax.ops.segment_sum(jax.nn.log_sigmoid(margins[:, None] * grid), raters, n_raters)
    crowd = _crowd_of(likelihood, grid)

    def own(points: Float[Array, "K F"]) -> Float[Array, "K F"]:
        """The posterior at points of each rater's own, less that at the middle one: sums of small terms stay exact."""
        of_middle = jax.nn.log_sigmoid(margins * points[raters, points.shape[1] // 2])
        terms = jax.nn.log_sigmoid(margins[:, None] * points[raters]) - of_middle[:, None]
        return jax.ops.segment_sum(terms, raters, n_raters) + _log_prior(points, crowd)

    points = jnp.broadcast_to(grid, likelihood.shape)
    points, logs = around_peaks(own, points, likelihood + _log_prior(grid, crowd), FINER)
    chance = jax.nn.softmax(logs, axis=1)
    mean = jnp.sum(chance * points, axis=1)
    error = jnp.sqrt(jnp.sum(chance * (points - mean[:, None]) ** 2, axis=1))
    low, high = (_quantile(points, chance, q) for q in (0.025, 0.975))
    pairs = jax.ops.segment_sum(jnp.ones_like(margins), raters, n_raters)
    # Where most raters contradict the margins, no scale makes their mean 1.
    scale = jnp.maximum(matmul(pairs, mean) / jnp.sum(pairs), 0.1)
    return Reliability(mean / scale, error / scale, low / scale, high / scale, crowd / scale)


def _crowd_of(likelihood: Float[Array, "K G"], grid: Float[Array, " G"]) -> Float[Array, "2"]:
    """(μ, ω) by EM."""
    n_raters = len(likelihood)

    def step(_: int, crowd: Float[Array, "2"]) -> Float[Array, "2"]:
        chance = jax.nn.softmax(likelihood + _log_prior(grid, crowd), axis=1)
        middle = jnp.mean(chance @ grid)
        square = jnp.sum(chance * (grid - middle) ** 2)
        variance = (square + SEEN * FIRST_SPREAD**2) / (n_raters + SEEN)
        return jnp.stack([middle, jnp.maximum(jnp.sqrt(variance), LEAST_SPREAD)])

    return jax.lax.fori_loop(0, ROUNDS, step, jnp.asarray([1.0, FIRST_SPREAD], grid.dtype))


def _log_prior(points: Float[Array, "*K G"], crowd: Float[Array, "2"]) -> Float[Array, "*K G"]:
    """log p(w) at points w, up to a constant."""
    return -0.5 * ((points - crowd[0]) / crowd[1]) ** 2


def _quantile(points: Float[Array, "K F"], chance: Float[Array, "K F"], q: float) -> Float[Array, " K"]:
    """Each chance being spread evenly over the step around its point: not a point itself, which is too far out."""
    until = jnp.cumsum(chance, axis=1)
    at = jnp.argmax(until >= q, axis=1)[:, None]
    point, beyond, share = (
        jnp.take_along_axis(part, at, axis=1)[:, 0] for part in (points, until - q, chance)
    )
    return point + (points[:, 1] - points[:, 0]) * (0.5 - beyond / share)
