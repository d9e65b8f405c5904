"""Linear regression when an ε-fraction of the rows, covariates and targets, may be arbitrary."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.checks import check_epsilon
from robust_rlhf_jax.iterate import Status
from robust_rlhf_jax.kernels.linalg import (
    matmul,
    pseudo_inverse_root,
    relative_tolerance,
    weighted_gram,
)
from robust_rlhf_jax.kernels.regression import clip_level, huber_multiple, huber_regression

from .moments import robust_covariance

# Rows that the covariate filter removed keep this weight. Where every row of a direction is suspect (a rarely
# visited state looks exactly like an outlier) the direction stays identified by them; where clean rows cover it
# too, suspect rows count a thousandth.
SUSPECT_WEIGHT = 1e-3
REFINEMENTS = 5


class RegressionDesign(eqx.Module):
    """What robust regression needs of its covariates: prepared once, used for any number of targets.

    `columns` [d, n]: Φᵀ; `weights` [n]; `gram_root_inverse` [d, d]: (Σ_i w_iφ_iφ_iᵀ)^{-1/2} on the span; `rank`;
    `second_moment` [d, d]: robust E[φφᵀ]; `multiple`: Huber's clip in standard deviations; `status`.
    """

    columns: Float[Array, "d n"]
    weights: Float[Array, " n"]
    gram_root_inverse: Float[Array, "d d"]
    rank: Int[Array, ""]
    second_moment: Float[Array, "d d"]
    multiple: Float[Array, ""]
    status: Int[Array, ""]

    def fit(self, targets: Float[Array, " n"], start: Float[Array, " d"] | None = None) -> Float[Array, " d"]:
        """Coefficients for one vector of targets, clipped about `start` or least squares; vmap for many."""
        return huber_regression(
            self.columns, targets, self.weights, self.gram_root_inverse, self.multiple, start
        )


def covariate_weights(phi: Float[Array, "n d"], epsilon: Float[Array, ""]):
    """(weights [n], status) of a filter on the covariates; no weight is below `SUSPECT_WEIGHT`."""
    weights, moments = _filter_covariates(phi, epsilon)
    return weights, moments.status


def _filter_covariates(phi, epsilon):
    moments = robust_covariance(phi, epsilon, assume_centered=True)
    # A filter that spends its budget far above the clean level has no ground to stand on (a few tight clusters
    # of states have heavier tails than any outlier): then all rows stay, and residual clipping alone protects.
    lost = moments.status == Status.FILTER_REMOVED_TOO_MUCH
    return jnp.where(lost, 1.0, jnp.maximum(moments.weights, SUSPECT_WEIGHT)), moments


def prepare_design(phi: Float[Array, "n d"], epsilon: Float[Array, ""]) -> RegressionDesign:
    """Filter the covariates (weights depend on φ alone, so they cannot bias a correct linear model)."""
    weights, moments = _filter_covariates(phi, epsilon)
    # Directions that only suspect rows cover have eigenvalues near SUSPECT_WEIGHT: keep those, drop rounding.
    tolerance = relative_tolerance(phi.dtype, 1)
    root_inverse, _, rank = pseudo_inverse_root(weighted_gram(phi, weights), tolerance)
    return RegressionDesign(
        phi.T, weights, root_inverse, rank, moments.covariance, huber_multiple(epsilon), moments.status
    )


def robust_linear_regression(
    phi: Float[Array, "n d"], targets: Float[Array, " n"], epsilon: float | Float[Array, ""]
) -> Float[Array, " d"]:
    """argmin_w of Σ_i (y_i − φ_iᵀw)², with an ε-fraction of rows arbitrary.

    A degree-2 filter on the covariates, then Huber's residual clipping at 1/√ε standard deviations: the
    practical stand-in for the regression oracle of R-LSVI (SCRAM; Pensia, Jog & Loh 2020), whose filter-then-
    robust-loss shape it keeps. Residual clipping is repeated from its own result, so that the size of a lie does
    not matter. At ε = 0 it is least squares with the pseudo-inverse. Use `prepare_design` once
    and `.fit` many times for several targets.

    **Arguments:** `phi` [n, d], `targets` [n], `epsilon` in [0, ½).

    **Raises:** ValueError for wrong shapes or ε outside [0, ½).
    """
    phi, targets = jnp.asarray(phi), jnp.asarray(targets)
    if phi.ndim != 2 or targets.shape != phi.shape[:1]:
        raise ValueError(f"phi {phi.shape} must be [n, d] and targets {targets.shape} must be [n].")
    check_epsilon(epsilon)
    return _regress(phi, targets, jnp.asarray(epsilon, phi.dtype))


@jax.jit
def _regress(phi, targets, epsilon):
    design = prepare_design(phi, epsilon)

    def refine(_, w):  # the scale is taken afresh from ever better residuals
        return design.fit(targets, w)

    w = jax.lax.fori_loop(0, REFINEMENTS, refine, design.fit(targets))
    return _without_clipped(design, targets, w)


def _without_clipped(design: RegressionDesign, targets, w):
    """Least squares without the rows that are still beyond the clip: far lies then leave no bias at all."""
    residuals = targets - matmul(w, design.columns)
    clip = clip_level(residuals, design.weights, design.multiple)
    weights = jnp.where(jnp.abs(residuals) <= clip, design.weights, 0.0)
    root_inverse = pseudo_inverse_root(
        weighted_gram(design.columns.T, weights), relative_tolerance(w.dtype, 1)
    )[0]
    unclipped = jnp.asarray(jnp.inf, w.dtype)
    return huber_regression(design.columns, targets, weights, root_inverse, unclipped)
