"""The curvature of a fit to many columns, used through its products, since a factor of it would be expensive."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from robust_rlhf_jax.kernels.conjugate_gradients import conjugate_gradients
from robust_rlhf_jax.kernels.divisors import positive_or_one
from robust_rlhf_jax.kernels.lapack import cholesky, lower_solve
from robust_rlhf_jax.kernels.linalg import matmul, weighted_gram, weighted_squares
from robust_rlhf_jax.kernels.logistic import label_variance

from .coordinates import UnitFreePairs
from .prior_strength import PriorShare

# Random signs for a trace: its error is about √(r/(mN)) of the axes, so that more rows need fewer, within bounds.
PROBES, FEWEST_PROBES, PROBED_ROWS = 32, 8, 64_000
# Random draws for the leverages: each is known to √(2/64), and what they come to as well as the trace.
DRAWS = 64
# Relative residual of a solution, and of a rough one that later solutions correct. The error of a trace is the square
# of it.
RESOLVED, ROUGH = 0.005, 0.02


class Curvature(NamedTuple):
    """H = Σ_n v_n y_n y_nᵀ + diag(`precision`): `rows` y [N, r], `variance` v [N] of the labels times the weights,
    `precision` λ [r]; `diagonal` [r] that of H.
    """

    rows: Float[Array, "N r"]
    variance: Float[Array, " N"]
    precision: Float[Array, " r"]
    diagonal: Float[Array, " r"]

    def products(self, directions: Float[Array, "m r"]) -> Float[Array, "m r"]:
        """H times each row: two products with the rows, as fast as they are read."""
        return self.of_pairs(directions) + directions * self.precision

    def of_pairs(self, directions: Float[Array, "m r"]) -> Float[Array, "m r"]:
        """What the pairs alone add to `products`."""
        return matmul(matmul(directions, self.rows.T) * self.variance, self.rows)

    def solve(self, right: Float[Array, "m r"], residual: float = RESOLVED) -> Float[Array, "m r"]:
        """H⁻¹ times each row."""
        return conjugate_gradients(self.products, self.diagonal, right, residual)


def curvature_of(
    pairs: UnitFreePairs,
    weights: Float[Array, " N"],
    margins: Float[Array, " N"],
    precision: Float[Array, " r"],
) -> Curvature:
    """That of the weighted log-likelihood at these margins, less the log-prior's."""
    variance = weights * label_variance(margins)
    return Curvature(pairs.rows, variance, precision, diagonal_of(pairs.rows, variance, precision))


def diagonal_of(
    rows: Float[Array, "N r"], variance: Float[Array, " N"], precision: Float[Array, " r"]
) -> Float[Array, " r"]:
    """diag(H), never 0: Σ_n v_n y_nj² + λ_j."""
    known = weighted_squares(rows, variance)
    # As the ridge of `newton.maximise`: axes that no row shows divide by something.
    ridge = 16 * jnp.finfo(rows.dtype).eps * (1.0 + jnp.sum(known))
    return known + precision + ridge


def prior_share(curvature: Curvature, t: Float[Array, " r"]) -> PriorShare:
    """`PriorShare` of a fit t, its traces by random signs z: mean zᵀAz and ‖Az‖², A = √λ H⁻¹ √λ.

    **Source:** Hutchinson 1989, for the trace of an inverse.
    """
    probes = _probes(curvature)
    # The slopes may be rough: they decide how fast refits settle, not where.
    solved = curvature.solve(jnp.concatenate([probes, (curvature.precision * t)[None]]), ROUGH)
    # Conjugate gradients leave nothing along what they found, so that zᵀu is off by the square of what u lacks.
    left, twice = (jnp.sum(part * solved[:-1]) for part in (probes, solved[:-1] * curvature.precision))
    return PriorShare(left / len(probes), twice / len(probes), solved[-1])


def trace_left(curvature: Curvature) -> Float[Array, ""]:
    """tr(diag(λ)H⁻¹), the axes of which the prior and not the pairs decide: `PriorShare.left`."""
    probes = _probes(curvature)
    return jnp.sum(probes * curvature.solve(probes)) / len(probes)


def _probes(curvature: Curvature) -> Float[Array, "m r"]:
    """√λ ∘ z."""
    n, r = curvature.rows.shape
    count = min(PROBES, max(FEWEST_PROBES, math.ceil(PROBED_ROWS / n)))
    return signs(r, PROBES, curvature.precision.dtype)[:count] * jnp.sqrt(curvature.precision)


def exact_leverages(curvature: Curvature) -> Float[Array, " N"]:
    """y_nᵀH⁻¹y_n of every row, by a factor of H: for few rows.

    Axes are scaled to a curvature of 1, so that a strong prior along one of them takes no digits from the others.
    """
    rows, precision = curvature.rows, curvature.precision
    gram = weighted_gram(rows, curvature.variance) + jnp.diag(precision)
    size = jnp.sqrt(positive_or_one(jnp.diagonal(gram)))
    ridge = jnp.where(jnp.diagonal(gram) > 0, 16 * jnp.finfo(rows.dtype).eps, 1.0)
    factor = cholesky(gram / size / size[:, None] + jnp.diag(ridge))
    return jnp.sum(lower_solve(factor, (rows / size).T) ** 2, axis=0)


def leverages(curvature: Curvature) -> Float[Array, "2 N"]:
    """y_nᵀH⁻¹y_n of every row, from each half of the draws: the variance of y_nᵀu for u of variance H⁻¹.

    u = H⁻¹(Σ_n √v_n z_n y_n + √λ ∘ z'), z signs at random. Both halves are scaled so that Σ_n v_n y_nᵀH⁻¹y_n is the
    number of axes that the pairs decide, which is known better.

    **Source:** Papandreou & Yuille 2010 for the draws; Hammersley & Handscomb 1964 for the ratio.
    """
    n, r = curvature.rows.shape
    by_row, by_axis = (signs(size, DRAWS, curvature.rows.dtype) for size in (n, r))
    noise = matmul(by_row * jnp.sqrt(curvature.variance), curvature.rows)
    draws = curvature.solve(noise + by_axis * jnp.sqrt(curvature.precision))
    sizes = jnp.mean(matmul(draws, curvature.rows.T).reshape(2, -1, n) ** 2, axis=1)
    decided = jnp.sum(curvature.precision > 0) - trace_left(curvature)
    return sizes * (decided / positive_or_one(matmul(sizes, curvature.variance)))[:, None]


def signs(size: int, count: int, dtype) -> Float[Array, "m size"]:
    """`count` rows of random signs, the same in every call."""
    return jax.random.rademacher(jax.random.key(0), (size, count), dtype).T
