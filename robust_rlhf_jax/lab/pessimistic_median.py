"""Pessimistic Median of MLEs (Kleine Buening, Gan, Mandal & Kwiatkowska 2025): a policy that no single rater can steer
far.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.algorithms import DescentConfig
from robust_rlhf_jax.algorithms.checked_input import check_oracle, checked
from robust_rlhf_jax.algorithms.pessimism import (
    minimise_pessimistically,
    pessimistic_solution,
    resolve_reference,
)
from robust_rlhf_jax.algorithms.solution import Solution
from robust_rlhf_jax.checks import check_positive
from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.kernels.chi_square import chi_square_quantile
from robust_rlhf_jax.kernels.halving import bisect
from robust_rlhf_jax.kernels.lapack import cholesky, cholesky_solve, eigh
from robust_rlhf_jax.kernels.linalg import matmul, weighted_second_moment
from robust_rlhf_jax.kernels.logistic import label_variance
from robust_rlhf_jax.likelihood.confidence import MISS
from robust_rlhf_jax.likelihood.projection import Projection, WarmStart
from robust_rlhf_jax.oracles import LSVI, Oracle
from robust_rlhf_jax.preferences import PreferenceData, group_numbers
from robust_rlhf_jax.raters._by_rater import RowsByRater
from robust_rlhf_jax.raters.rivals.median_of_raters import fits_of_raters

# An axis along which the differences have less than this share of their largest second moment is shown by nobody.
UNSHOWN = 1e-5

__all__ = ["Box", "PessimisticMedianConfig", "median_box", "pessimistic_median"]


class PessimisticMedianConfig(eqx.Module):
    """`radius`: B, the bound on ‖θ‖₂ of a rater, None for √(Hd); `descent`: how the objective is minimised.

    **Example:**

    >>> from robust_rlhf_jax.lab.pessimistic_median import PessimisticMedianConfig
    >>> PessimisticMedianConfig(radius=2.0).descent.gradient
    'autodiff'
    """

    radius: float | Float[Array, ""] | None = None
    descent: DescentConfig = DescentConfig(gradient="autodiff")


class Box(eqx.Module):
    """{low ≤ Aᵀθ ≤ high, ‖θ‖₂ ≤ radius} with orthonormal `axes` A [k, k], `centre` [k] within.

    **Example:**

    >>> import jax.numpy as jnp
    >>> from robust_rlhf_jax.lab.pessimistic_median import Box
    >>> box = Box(jnp.zeros(2), -jnp.ones(2), jnp.array([1.0, 3.0]), jnp.eye(2), jnp.asarray(2.0))
    >>> [round(float(v), 3) for v in box.project(jnp.array([5.0, 5.0])).theta]
    [1.0, 1.732]
    """

    centre: Float[Array, " k"]
    low: Float[Array, " k"]
    high: Float[Array, " k"]
    axes: Float[Array, "k k"]
    radius: Float[Array, ""]

    def contains(self, theta: Float[Array, " k"]) -> Bool[Array, ""]:
        """Membership, up to rounding."""
        slack = jnp.sqrt(jnp.finfo(theta.dtype).eps) * (1.0 + self.radius)
        along = matmul(theta, self.axes)
        inside = jnp.all((along >= self.low - slack) & (along <= self.high + slack))
        return inside & (jnp.linalg.norm(theta) <= self.radius + slack)

    def project(self, y: Float[Array, " k"], warm: WarmStart | None = None) -> Projection:
        """argmin over the set of ‖θ − y‖₂: along the axes y/(1 + ν) clipped, ν ≥ 0 by bisection."""
        along = matmul(y, self.axes)

        def at(nu):
            return jnp.clip(along / (1.0 + nu), self.low, self.high)

        def outside(log_nu):
            return jnp.linalg.norm(at(jnp.exp(log_nu))) > self.radius

        ends = (jnp.asarray(-30.0, y.dtype), jnp.asarray(40.0, y.dtype))
        _, high = bisect(outside, *ends, steps=64)
        nu = jnp.where(jnp.linalg.norm(at(0.0)) > self.radius, jnp.exp(high), 0.0)
        point, solves = at(nu), jnp.ones((), jnp.int32)
        bad = jnp.any(jnp.isnan(point))
        status = jnp.where(bad, Status.NONFINITE.array(), Status.CONVERGED.array())
        return Projection(matmul(self.axes, point), nu, solves, status)


def pessimistic_median(
    key: PRNGKeyArray,
    data: Pairs | PreferenceData,
    raters: ArrayLike | None = None,
    *,
    oracle: Oracle | None = None,
    reference: Float[Array, "H p"] | None = None,
    config: PessimisticMedianConfig | None = None,
) -> Solution:
    """max over π of min over θ in C of (E_π[φ] − E_ref[φ])·θ, C the medians of what each rater's pairs leave possible.

    θ̂_k is rater k's maximum likelihood on the ball of B, C_k = {‖θ − θ̂_k‖_{F_k} ≤ γ} with F_k the information of the
    rater's pairs, γ² = χ²₀.₉(rank) and a floor of (γ/B)² under F_k; C = {med(θ_1, …, θ_K): θ_k ∈ C_k} by coordinate.
    Here the coordinates are the principal axes of all differences, 0 where these do not go: in others a direction that
    nobody shows would leave every coordinate open. And C is replaced by the smallest box around it, [med_k(θ̂_k − h_k),
    med_k(θ̂_k + h_k)] with h_k the half-widths of C_k along the axes, within the ball of √2 B, beyond which no median of
    points of the ball of B lies: at least as pessimistic.

    **Arguments:** `raters` [N]: who labelled each pair (any values), None: those of the `Pairs`; `oracle`: default
    plain LSVI; `reference`: E_ref[φ_h] of a policy to be no worse than, default: the behaviour.

    **Returns:** `Solution` with diagnostics as `pessimistic_mle`, and `width` [k], of the box.

    **Raises:** ValueError without raters, for raters of another length, malformed data, a radius ≤ 0, what is no
    oracle, or a reference of another shape.

    **Source:** arXiv:2503.09561, Algorithm 1; axes, box and width are ours.

    **Example:**

    >>> import jax, numpy as np
    >>> from robust_rlhf_jax import sample_preferences, worlds
    >>> from robust_rlhf_jax.lab.pessimistic_median import pessimistic_median
    >>> mdp = worlds.random_linear_mdp(jax.random.key(4), n_states=6, n_actions=3, dim=2, horizon=1)
    >>> data = sample_preferences(jax.random.key(0), mdp, 8000)
    >>> found = pessimistic_median(jax.random.key(1), data, np.arange(8000) % 4)
    >>> float(worlds.normalised_gap(mdp, found.policy)) < 0.1
    True
    """
    raters = data.raters if raters is None and isinstance(data, Pairs) else raters
    if raters is None:
        raise ValueError("nobody says who labelled the pairs: give raters, one for each pair.")
    of = group_numbers(raters, data.n_pairs, "rater")
    data, _ = checked(key, data, None, reference)
    config = PessimisticMedianConfig() if config is None else config
    if config.radius is not None:
        check_positive(config.radius, "radius")
    oracle = LSVI() if oracle is None else oracle
    check_oracle(oracle)
    return _run(key, data, of, int(of.max()) + 1, oracle, reference, config)


@eqx.filter_jit
def _run(
    key: PRNGKeyArray,
    data: PreferenceData,
    raters: Int[Array, " N"],
    n_raters: int,
    oracle: Oracle,
    reference: Float[Array, "H p"] | None,
    config: PessimisticMedianConfig,
) -> Solution:
    radius = data.theta_dim**0.5 if config.radius is None else config.radius
    rows, nothing = data.labels[:, None] * data.differences(), jnp.zeros((), data.features.dtype)
    allowed, status = median_box(rows, raters, n_raters, jnp.asarray(radius, rows.dtype))
    target = resolve_reference(reference, data, nothing)
    found = minimise_pessimistically(key, data, nothing, oracle, allowed, target, config.descent)
    return pessimistic_solution(data, found, status, allowed, {"width": allowed.high - allowed.low})


def median_box(
    rows: Float[Array, "N k"], raters: Int[Array, " N"], n_raters: int, radius: Float[Array, ""]
) -> tuple[Box, Int[Array, ""]]:
    """(the smallest box around the medians that the raters' pairs leave possible, status of the fits), from preferred
    less other.

    **Example:**

    >>> import jax.numpy as jnp
    >>> from robust_rlhf_jax.lab.pessimistic_median import median_box
    >>> rows = jnp.tile(jnp.array([[1.0], [1.0], [1.0], [-1.0]]), (300, 1))  # three of four win: θ = log 3
    >>> box, status = median_box(rows, jnp.arange(1200) % 3, 3, jnp.asarray(4.0))
    >>> [round(float(end[0]), 1) for end in (box.low, box.centre, box.high)]
    [0.9, 1.1, 1.3]
    """
    moments, axes = eigh(weighted_second_moment(rows, jnp.ones(len(rows), rows.dtype)))
    shown = moments > UNSHOWN * moments[-1]
    pairs = RowsByRater.of(jnp.where(shown, matmul(rows, axes), 0.0), raters, n_raters)
    fits, status = fits_of_raters(pairs.rows, raters, n_raters, radius)
    size = jnp.sqrt(chi_square_quantile(1.0 - MISS, jnp.maximum(jnp.sum(shown), 1))).astype(rows.dtype)
    eye = jnp.eye(len(axes), dtype=rows.dtype)
    known = pairs.gram(label_variance(pairs.margins(fits))) + (size / radius) ** 2 * eye
    spread = jax.vmap(lambda f: jnp.diagonal(cholesky_solve(cholesky(f), eye)))(known)
    half = jnp.where(shown, size * jnp.sqrt(spread), 0.0)
    low, middle, high = (jnp.median(fits + sign * half, axis=0) for sign in (-1.0, 0.0, 1.0))
    # At least half of the raters are as far out as the median along an axis, so that ‖med‖² ≤ 2 mean_k ‖θ_k‖².
    return Box(matmul(axes, middle), low, high, axes, 2**0.5 * radius), status
