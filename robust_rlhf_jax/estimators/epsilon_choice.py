"""Choosing ε when nobody knows it: the least one whose reward estimate all larger ones confirm."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.checks import check_epsilon, is_traced
from robust_rlhf_jax.kernels.linalg import matmul

from .reward import robust_reward

# Up to a quarter: beyond, the filter's budget of 2ε eats half of clean data whose tails are not normal.
DEFAULT_GRID = (0.0, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25)
# Clean random linear MDPs with margins θ★ᵀx of deviation .8–1: fits at ε = 0 and ε' differ by √(rank/N) + (1.2 to 2)ε'
# in the Σ̂-norm at N = 3,000 to 20,000, since trimming takes honest surprises (2 where ‖θ★‖ is well within the
# ball). Fits that an attack carries off differ from those that withstand it by .5 to 1.2.
SAMPLING_SCALE = 1.0
CORRUPTION_SCALE = 2.0


class GridFits(eqx.Module):
    """`robust_reward` at every ε of a grid: `thetas` [E, k]; `survivors` [E, n], the filters' weights; `covariance`
    [k, k] and `rank` of the differences at the largest ε; `status` [E].
    """

    thetas: Float[Array, "E k"]
    survivors: Float[Array, "E n"]
    covariance: Float[Array, "k k"]
    rank: Int[Array, ""]
    status: Int[Array, " E"]


class EpsilonChoice(eqx.Module):
    """`epsilon`: the choice, `index`: its place in the grid, `theta` [k]: the reward fitted with it.

    `distances` [E, E]: ‖θ̂_i − θ̂_j‖ in the Σ̂-norm, the root mean square of the difference in margins; `radii` [E]:
    what each was allowed; `fits`.
    """

    epsilon: Float[Array, ""]
    index: Int[Array, ""]
    theta: Float[Array, " k"]
    distances: Float[Array, "E E"]
    radii: Float[Array, " E"]
    fits: GridFits


def check_grid(grid) -> None:
    """Check that a grid of ε has one axis, lies in [0, ½) and rises.

    **Raises:** ValueError otherwise.
    """
    shape = np.shape(grid)
    if len(shape) != 1 or shape[0] < 1:
        raise ValueError(f"grid has shape {shape}: give a list of one or more values of epsilon.")
    check_epsilon(grid)
    if not is_traced(grid) and not np.all(np.diff(np.asarray(grid, float)) > 0):
        raise ValueError(f"grid={grid} must rise from each value to the next.")


@eqx.filter_jit
def fit_grid(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    grid: Float[Array, " E"],
    radius: float | Float[Array, ""],
) -> GridFits:
    """`robust_reward` on all rows at every ε of a rising grid, one after the other in one program."""

    bound = jnp.asarray(radius, x.dtype)

    def fit(epsilon):
        found = robust_reward(x, x, labels, epsilon, radius=bound)
        return found.fit.theta, found.survivors, found.covariance, found.rank, found.status

    thetas, survivors, covariances, ranks, status = jax.lax.map(fit, grid)
    return GridFits(thetas, survivors, covariances[-1], ranks[-1], status)


def choose_epsilon(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    grid: Float[Array, " E"] = DEFAULT_GRID,  # pyright: ignore[reportArgumentType]
    *,
    radius: float | Float[Array, ""],
    sampling_scale: float | Float[Array, ""] = SAMPLING_SCALE,
    corruption_scale: float | Float[Array, ""] = CORRUPTION_SCALE,
) -> EpsilonChoice:
    """The smallest ε of the grid with ‖θ̂_ε − θ̂_ε'‖_Σ̂ ≤ r_ε + r_ε' for every larger ε' (Lepski 1991).

    r_ε = a√(rank/N) + cε: what sampling and a corruption of ε may move θ̂_ε by. If the true ε is in the grid, all
    estimates from there on are near θ★, so the choice is not larger, and what it chose is confirmed by them: its
    error is at most 3r at the true ε. That holds while r bounds the errors, which a and c, calibrated by measurement,
    do on the worlds they were measured on; and while ε is at most the grid's last value. No method is free of
    such a price (Zhang, Chen, Zhu & Sun 2022: none adapts to unknown ε under partial coverage). Reversing labels on a
    scale that carries off all fits alike (`flip_confident` at .2) goes unnoticed. Jit- and vmap-able.

    **Arguments:** `grid` [E] rising, in [0, ½); `radius`: bound on ‖θ‖₂; `sampling_scale` a, `corruption_scale` c.

    **Raises:** ValueError for a grid that is not rising or not in [0, ½), or wrong shapes.
    """
    check_grid(grid)
    levels = jnp.asarray(grid, x.dtype)
    fits = fit_grid(x, labels, levels, radius)
    gaps = fits.thetas[:, None] - fits.thetas[None]
    distances = jnp.sqrt(jnp.maximum(jnp.sum(matmul(gaps, fits.covariance) * gaps, axis=-1), 0.0))
    radii = sampling_scale * jnp.sqrt(fits.rank / x.shape[0]) + corruption_scale * levels
    larger = levels[None, :] > levels[:, None]
    confirmed = jnp.all((distances <= radii[:, None] + radii[None]) | ~larger, axis=1)
    index = jnp.argmax(confirmed)  # the largest ε has none above it: one is always confirmed
    return EpsilonChoice(levels[index], index, fits.thetas[index], distances, radii, fits)
