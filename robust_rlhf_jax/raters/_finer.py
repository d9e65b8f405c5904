"""Finer grids around the peaks of densities whose logarithms are concave."""

from collections.abc import Callable, Iterable

import jax.numpy as jnp
from jaxtyping import Array, Float

# Nats below the peak from which on nothing is left of a density: 5.7 standard errors of a normal one.
NOTHING = 16.0


def around_peaks(
    density: Callable[[Float[Array, "K F"]], Float[Array, "K F"]],
    points: Float[Array, "K G"],
    logs: Float[Array, "K G"],
    sizes: Iterable[int],
) -> tuple[Float[Array, "K F"], Float[Array, "K F"]]:
    """(evenly spaced points of each row, `density` at them), the last of grids of so many `sizes`.

    Each reaches as far as anything is left of the row's log density on the grid before, and one step further: the peak
    of a concave one, however narrow, and on which side however steep, lies within. Jit-able.

    **Example:**

    >>> import jax.numpy as jnp
    >>> from robust_rlhf_jax.raters._finer import around_peaks
    >>> density = lambda w: -0.5 * ((w - 0.3) / 0.01) ** 2
    >>> coarse = jnp.linspace(-1.0, 1.0, 21)[None]
    >>> points, _ = around_peaks(density, coarse, density(coarse), (17, 49))
    >>> bool(abs(points[0, 0] - 0.3) < 0.1), bool(points[0, 1] - points[0, 0] < 0.01)
    (True, True)
    """
    for size in sizes:
        left = logs >= jnp.max(logs, axis=1, keepdims=True) - NOTHING
        last = logs.shape[1] - 1
        start = jnp.maximum(jnp.argmax(left, axis=1) - 1, 0)
        end = jnp.minimum(last - jnp.argmax(left[:, ::-1], axis=1) + 1, last)
        low, high = (jnp.take_along_axis(points, at[:, None], axis=1) for at in (start, end))
        points = low + (high - low) * jnp.linspace(0.0, 1.0, size, dtype=points.dtype)
        logs = density(points)
    return points, logs
