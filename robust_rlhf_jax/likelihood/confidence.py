"""Which rewards the data allow: likelihood-ratio sets and ellipsoids, with exact projections."""

from typing import Protocol

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.checks import as_floats, check_labels, is_traced
from robust_rlhf_jax.kernels.chi_square import chi_square_quantile
from robust_rlhf_jax.kernels.halfspace import minimise_quadratic_in_ball
from robust_rlhf_jax.kernels.halving import bisect
from robust_rlhf_jax.kernels.lapack import eigh
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.kernels.logistic import curvature, mean_log_likelihood, value_gradient
from robust_rlhf_jax.module import Module
from robust_rlhf_jax.row_order import check_rows

from .projection import Projection, ProjectionProblem, WarmStart, project_on_cut_ball, tolerance

# Chance that the calibrated set misses θ★ on clean data.
MISS = 0.1
# What an ε-fraction of pairs may cost the mean log-likelihood of θ★. On eleven worlds under confident flips at ε = .1 a
# set ten times as wide (half a nat a pair) is worse than plain RLHF in ten; this one is better in all.
EPSILON_SCALE = 0.02


class RewardSet(Protocol):
    """A closed convex set of flat θ [k], within the ball of `radius`, that can be projected on."""

    centre: Float[Array, " k"]
    radius: Float[Array, ""]

    def contains(self, theta: Float[Array, " k"]) -> Bool[Array, ""]: ...

    def project(self, y: Float[Array, " k"], warm: WarmStart | None = None) -> Projection: ...


class ConfidenceSet(Module):
    """{‖θ‖₂ ≤ radius, ℓ(θ) ≥ ℓ(θ̂) − ζ}, ℓ the weighted mean log-likelihood (paper: Θ(D₁) in Algorithm 3).

    `centre` [k]: θ̂; `floor`: ℓ(θ̂) − ζ; `zeta`: ζ in nats per pair; `eigenvalues`, `eigenvectors` of ℓ's curvature at
    θ̂, for the projection. Build it with `confidence_set`.

    **Example:**

    >>> import jax, jax.numpy as jnp
    >>> from robust_rlhf_jax import likelihood
    >>> x = jax.random.normal(jax.random.key(0), (100, 2))
    >>> near = likelihood.confidence_set(x, jnp.sign(x[:, 0]), centre=jnp.array([2.0, 0.0]), zeta=0.05, radius=3.0)
    >>> bool(near.contains(near.project(jnp.array([0.0, 2.0])).theta))
    True
    """

    x: Float[Array, "n k"]
    labels: Float[Array, " n"]
    weights: Float[Array, " n"]
    centre: Float[Array, " k"]
    floor: Float[Array, ""]
    zeta: Float[Array, ""]
    radius: Float[Array, ""]
    eigenvalues: Float[Array, " k"]
    eigenvectors: Float[Array, "k k"]

    def contains(self, theta: Float[Array, " k"]) -> Bool[Array, ""]:
        """Membership, up to the tolerance of `project` and what a mean of log-likelihoods resolves."""
        value, slope = value_gradient(theta, self.x, self.labels, self.weights)
        rounding = 16 * jnp.finfo(value.dtype).eps
        slack = tolerance(theta) * jnp.linalg.norm(slope) + rounding * (1.0 + jnp.abs(self.floor))
        return (jnp.linalg.norm(theta) <= self.radius * (1 + rounding)) & (value >= self.floor - slack)

    def project(self, y: Float[Array, " k"], warm: WarmStart | None = None) -> Projection:
        """argmin over the set of ‖θ − y‖₂, to `tolerance`; `warm`: the last projection, if y is near the last y."""
        if warm is None:
            warm = WarmStart(self.centre, jnp.zeros((), y.dtype))
        data = (self.x, self.labels, self.weights, self.floor, self.radius)
        return project_on_cut_ball(ProjectionProblem(y, warm, *data, self.eigenvalues, self.eigenvectors))


def confidence_set(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    centre: Float[Array, " k"],
    zeta: float | Float[Array, ""],
    *,
    radius: float | Float[Array, ""],
    weights: Float[Array, " n"] | None = None,
) -> ConfidenceSet:
    """The `ConfidenceSet` about `centre` (usually a robust θ̂).

    **Raises:** ValueError for labels other than ±1, or ζ < 0, which leaves θ̂ itself outside. A traced ζ < 0 is
    reported by the status `infeasible` of a projection if the set is empty.

    **Example:**

    >>> import jax, jax.numpy as jnp
    >>> from robust_rlhf_jax.likelihood import confidence_set
    >>> x = jax.random.normal(jax.random.key(0), (100, 2))
    >>> near = confidence_set(x, jnp.sign(x[:, 0]), centre=jnp.array([2.0, 0.0]), zeta=0.05, radius=3.0)
    >>> bool(near.contains(jnp.array([2.0, 0.1]))), bool(near.contains(jnp.array([0.0, 2.0])))
    (True, False)
    """
    if not is_traced(zeta) and not float(zeta) >= 0:
        raise ValueError(f"zeta={zeta} must not be negative: the estimate itself would lie outside the set.")
    if not is_traced(radius) and not float(radius) > 0:
        raise ValueError(f"radius={radius} must be positive.")
    check_rows(x=x, labels=labels, weights=weights)
    check_labels(labels)
    x = as_floats(x)
    dtype = x.dtype
    centre, labels, zeta = (jnp.asarray(part, dtype) for part in (centre, labels, zeta))
    weights = jnp.ones(len(x), dtype) if weights is None else jnp.asarray(weights, dtype)
    values, vectors = eigh(curvature(centre, x, labels, weights))
    floor = mean_log_likelihood(centre, x, labels, weights) - zeta
    radius = jnp.asarray(radius, dtype)
    return ConfidenceSet(x, labels, weights, centre, floor, zeta, radius, jnp.maximum(values, 0.0), vectors)


class Ellipsoid(Module):
    """{‖θ‖₂ ≤ radius, (θ − θ̂)ᵀΣ(θ − θ̂) ≤ γ²}: the set of Zhu, Jordan & Jiao 2023.

    `centre` [k]: θ̂; `eigenvalues` [k], `eigenvectors` [k, k] of Σ; `size`: γ.

    **Example:**

    >>> import jax.numpy as jnp
    >>> from robust_rlhf_jax import likelihood
    >>> flat = likelihood.ellipsoid(jnp.diag(jnp.array([1.0, 4.0])), jnp.zeros(2), 1.0, jnp.asarray(5.0))
    >>> [round(float(v), 2) for v in flat.project(jnp.array([0.0, 3.0])).theta]
    [0.0, 0.5]
    """

    centre: Float[Array, " k"]
    eigenvalues: Float[Array, " k"]
    eigenvectors: Float[Array, "k k"]
    size: Float[Array, ""]
    radius: Float[Array, ""]

    def contains(self, theta: Float[Array, " k"]) -> Bool[Array, ""]:
        """Membership, up to rounding."""
        offset = matmul(theta - self.centre, self.eigenvectors)
        slack = 1 + jnp.sqrt(jnp.finfo(theta.dtype).eps)
        inside = jnp.linalg.norm(theta) <= self.radius * slack
        return inside & (jnp.sum(self.eigenvalues * offset**2) <= (self.size * slack) ** 2)

    def project(self, y: Float[Array, " k"], warm: WarmStart | None = None) -> Projection:
        """argmin over the set of ‖θ − y‖₂, by bisection on the multiplier in the eigenbasis: no pass over data."""
        y_, c_ = matmul(y, self.eigenvectors), matmul(self.centre, self.eigenvectors)

        def at(multiplier):
            bend = multiplier * self.eigenvalues
            point = minimise_quadratic_in_ball(1.0 + bend, y_ + bend * c_, self.radius)
            return point, jnp.sum(self.eigenvalues * (point - c_) ** 2) <= self.size**2

        wide = (jnp.asarray(-30.0, y.dtype), jnp.asarray(40.0, y.dtype))
        _, high = bisect(lambda log_multiplier: ~at(jnp.exp(log_multiplier))[1], *wide, steps=64)
        points, inside = jax.vmap(at)(jnp.stack([jnp.zeros((), y.dtype), jnp.exp(high)]))
        multiplier = jnp.where(inside[0], 0.0, jnp.exp(high))
        point = jnp.where(inside[0], points[0], points[1])
        solves, bad = jnp.ones((), jnp.int32), jnp.any(jnp.isnan(point))
        status = jnp.where(bad, Status.NONFINITE.array(), Status.CONVERGED.array())
        return Projection(matmul(self.eigenvectors, point), multiplier, solves, status)


def ellipsoid(
    sigma: Float[Array, "k k"],
    centre: Float[Array, " k"],
    size: float | Float[Array, ""],
    radius: Float[Array, ""],
) -> Ellipsoid:
    """The `Ellipsoid` with ‖θ − θ̂‖_Σ ≤ `size`, Σ positive semi-definite.

    **Example:**

    >>> import jax.numpy as jnp
    >>> from robust_rlhf_jax.likelihood import ellipsoid
    >>> flat = ellipsoid(jnp.diag(jnp.array([1.0, 4.0])), jnp.zeros(2), 1.0, jnp.asarray(5.0))
    >>> bool(flat.contains(jnp.array([0.9, 0.0]))), bool(flat.contains(jnp.array([0.0, 0.9])))
    (True, False)
    """
    values, vectors = eigh(sigma)
    return Ellipsoid(
        centre,
        jnp.maximum(values, 0.0),
        vectors,
        jnp.asarray(size, sigma.dtype),
        jnp.asarray(radius, sigma.dtype),
    )


def theory_zeta(
    epsilon: float | Float[Array, ""],
    horizon: int,
    dim: int,
    n_pairs: int | float | Float[Array, ""],
    miss: float = MISS,
) -> Float[Array, ""]:
    """ζ = 6εH√d + (2d/N)log(HN/δ) (paper: Algorithm 3), in nats per pair: vacuous at most sizes.

    **Example:**

    >>> from robust_rlhf_jax.likelihood import theory_zeta
    >>> round(float(theory_zeta(0.1, horizon=5, dim=4, n_pairs=1000)), 2)
    6.09
    """
    return 6 * epsilon * horizon * dim**0.5 + 2 * dim / n_pairs * jnp.log(horizon * n_pairs / miss)


def calibrated_zeta(
    epsilon: Float[Array, ""],
    rank: Int[Array, ""],
    n_pairs: int | Float[Array, ""],
    *,
    miss: float = MISS,
    epsilon_scale: float = EPSILON_SCALE,
) -> Float[Array, ""]:
    """ζ = χ²_{rank, 1−δ}/(2N) + c·ε: Wilks' likelihood ratio, and what corrupt pairs may add (ours).

    **Arguments:** `rank`: identifiable dimensions of θ; `miss`: δ; `epsilon_scale`: c, in nats per pair.

    **Example:**

    >>> import jax.numpy as jnp
    >>> from robust_rlhf_jax.likelihood import calibrated_zeta
    >>> [round(float(calibrated_zeta(jnp.asarray(epsilon), jnp.asarray(4), 1000)), 4) for epsilon in (0.0, 0.1)]
    [0.0039, 0.0059]
    """
    return chi_square_quantile(1.0 - miss, rank) / (2 * n_pairs) + epsilon_scale * epsilon
