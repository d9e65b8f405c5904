"""Linear regression when an ε-fraction of the rows, covariates and targets, may be arbitrary."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.checks import as_epsilon, as_floats, check_epsilon, check_finite
from robust_rlhf_jax.kernels.divisors import positive_or_one
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.kernels.regression import clip_level, huber_multiple, huber_regression
from robust_rlhf_jax.kernels.units import LONGEST, in_units, typical_powers
from robust_rlhf_jax.module import Module
from robust_rlhf_jax.row_order import check_rows

from .covariance import robust_covariance
from .influence import bounded_rows, floored_weights
from .span import row_span

REFINEMENTS = 5


class RegressionDesign(Module):
    """What robust regression needs of its covariates: prepared once, used for any number of targets.

    `columns` [d, n]: Φᵀ; `weights` [n]; `gram_root_inverse` [d, d]: R with RRᵀ = (Σ_i w_iφ_iφ_iᵀ)⁺; `rank`;
    `second_moment` [d, d]: robust E[φφᵀ]; `multiple`: Huber's clip in standard deviations; `status`.

    **Example:**

    >>> import jax, jax.numpy as jnp
    >>> from robust_rlhf_jax import moments
    >>> phi = jax.random.normal(jax.random.key(0), (100, 2)).at[:5].set(50.0)
    >>> design = moments.prepare_design(phi, jnp.float32(0.1))
    >>> int(design.rank), float(design.weights[:5].max()) < 0.01
    (2, True)
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
    """(weights [n], status) of a filter on the covariates; rows that it removes keep `floored_weights`."""
    weights, moments = _filter_covariates(phi, epsilon)
    return weights, moments.status


def _filter_covariates(phi: Float[Array, "n d"], epsilon: Float[Array, ""]):
    moments = robust_covariance(phi, epsilon, assume_centered=True)
    # A filter that spends its budget far above the clean level has no ground to stand on (a few tight clusters
    # of states have heavier tails than any outlier): then all rows stay, and residual clipping alone protects.
    lost = moments.status == Status.FILTER_REMOVED_TOO_MUCH
    return floored_weights(phi, jnp.where(lost, 1.0, moments.weights), epsilon), moments


def prepare_design(phi: Float[Array, "n d"], epsilon: Float[Array, ""]) -> RegressionDesign:
    """Filter the covariates (weights depend on φ alone, so they cannot bias a correct linear model).

    **Example:**

    >>> import jax, jax.numpy as jnp
    >>> from robust_rlhf_jax.moments import prepare_design
    >>> phi = jax.random.normal(jax.random.key(0), (100, 2))
    >>> design = prepare_design(phi, jnp.float32(0.1))
    >>> first, second = design.fit(phi[:, 0] + phi[:, 1]), design.fit(phi[:, 0] - phi[:, 1])
    >>> [round(float(w), 1) for w in (*first, *second)]
    [1.0, 1.0, 1.0, -1.0]
    """
    phi = bounded_rows(as_floats(phi), epsilon)
    weights, moments = _filter_covariates(phi, epsilon)
    # Directions that only suspect rows cover have variances near SUSPECT_WEIGHT: those stay, rounding does not.
    root_inverse, rank = _gram_root_inverse(phi, weights)
    return RegressionDesign(
        phi.T, weights, root_inverse, rank, moments.covariance, huber_multiple(epsilon), moments.status
    )


def _gram_root_inverse(phi: Float[Array, "n d"], weights: Float[Array, " n"]):
    """(R [d, d] with RRᵀ = (Σ_i w_iφ_iφ_iᵀ)⁻¹ on the span in columns of typical size 1, 0 off it; rank of the span)."""
    size = typical_powers(phi)
    span = row_span(in_units(phi, size), weights)
    inverse = jnp.where(span.variances > 0, 1.0 / jnp.sqrt(positive_or_one(span.variances)), 0.0)
    root = matmul(span.axes * inverse, span.axes.T) / jnp.sqrt(jnp.sum(weights))
    return root / size[:, None], span.rank


def robust_linear_regression(
    phi: Float[Array, "n d"], targets: Float[Array, " n"], epsilon: float | Float[Array, ""]
) -> Float[Array, " d"]:
    """argmin_w of Σ_i (y_i − φ_iᵀw)², with an ε-fraction of rows arbitrary.

    A degree-2 filter on the covariates, then Huber's residual clipping at 1/√ε standard deviations: the practical
    stand-in for the regression oracle of R-LSVI (SCRAM; Pensia, Jog & Loh 2020), whose filter-then-robust-loss shape
    it keeps. Residual clipping is repeated from its own result, so that the size of a lie does not matter. At ε = 0 it
    is least squares; where columns are linearly dependent, the solution of least norm in columns divided by their
    typical sizes, powers of two, so that no column counts for its unit. Use `prepare_design` once and `.fit` many
    times for several targets.

    **Arguments:** `phi` [n, d], `targets` [n], `epsilon` in [0, ½).

    **Raises:** ValueError for wrong shapes, an empty `phi` or one of whole numbers, entries that are not finite, rows
    in two orders, or ε outside [0, ½).

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax.moments import robust_linear_regression
    >>> phi = jax.random.normal(jax.random.key(0), (100, 2))
    >>> targets = (phi[:, 0] - 2 * phi[:, 1]).at[:5].set(1000.0)
    >>> [round(float(w), 1) for w in robust_linear_regression(phi, targets, 0.1)]
    [1.0, -2.0]
    """
    check_rows(phi=phi, targets=targets)
    phi, targets = jnp.asarray(phi), jnp.asarray(targets)
    if phi.ndim != 2 or targets.shape != phi.shape[:1]:
        raise ValueError(f"phi {phi.shape} must be [n, d] and targets {targets.shape} must be [n].")
    if not phi.size:
        raise ValueError(f"phi has shape {phi.shape}: give one row and one column or more.")
    if not jnp.issubdtype(phi.dtype, jnp.floating):
        raise ValueError(f"phi must be floating-point; got {phi.dtype}: convert it with phi.astype(float).")
    check_epsilon(epsilon)
    check_finite(phi, "phi")
    check_finite(targets, "targets")
    return _regress(phi, targets.astype(phi.dtype), as_epsilon(epsilon, phi.dtype))


@jax.jit
def _regress(phi: Float[Array, "n d"], targets: Float[Array, " n"], epsilon: Float[Array, ""]):
    size, unit = typical_powers(phi), typical_powers(targets[:, None])
    targets = in_units(targets[:, None], unit)[:, 0]
    # A target this many typical ones large is as good as infinite; larger ones cost digits of the first fit.
    targets = jnp.where(epsilon > 0, jnp.clip(targets, -LONGEST, LONGEST), targets)
    return _refined(in_units(phi, size), targets, epsilon) * unit / size


def _refined(phi: Float[Array, "n d"], targets: Float[Array, " n"], epsilon: Float[Array, ""]):
    design = prepare_design(phi, epsilon)

    def refine(_, w):  # the scale is taken afresh from ever better residuals
        return design.fit(targets, w)

    w = jax.lax.fori_loop(0, REFINEMENTS, refine, design.fit(targets))
    return _without_clipped(design, targets, w)


def _without_clipped(design: RegressionDesign, targets: Float[Array, " n"], w: Float[Array, " d"]):
    """Least squares without the rows that are still beyond the clip: far lies then leave no bias at all."""
    residuals = targets - matmul(w, design.columns)
    clip = clip_level(residuals, design.weights, design.multiple)
    weights = jnp.where(jnp.abs(residuals) <= clip, design.weights, 0.0)
    root_inverse, _ = _gram_root_inverse(design.columns.T, weights)
    unclipped = jnp.asarray(jnp.inf, w.dtype)
    return huber_regression(design.columns, targets, weights, root_inverse, unclipped)
