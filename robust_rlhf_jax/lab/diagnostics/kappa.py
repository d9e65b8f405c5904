"""κ over all rewards that the data allow, from both sides (paper: Theorems 4.3 and 5.1)."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from robust_rlhf_jax._iterate import worst_status
from robust_rlhf_jax.kernels.divisors import positive_or_one
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.likelihood.confidence import RewardSet
from robust_rlhf_jax.likelihood.projection import tolerance

from ._coverage import link_steepness

# Proximal steps of an ascent, and their length in radii of the ball.
ROUNDS, REACH = 8, 4.0


class KappaBounds(NamedTuple):
    """κ over a set lies in [`lower`, `upper`]; `margin`, `margin_bound`: the largest |θᵀx| likewise; `status`.

    **Example:**

    >>> import jax.numpy as jnp
    >>> from robust_rlhf_jax import diagnostics, likelihood
    >>> near = likelihood.ellipsoid(jnp.eye(2), jnp.array([1.0, 0.0]), 0.5, jnp.asarray(3.0))
    >>> found = diagnostics.kappa_over(near, jnp.array([[1.0, 0.0]]))
    >>> bool(found.lower <= found.upper), found._fields
    (True, ('lower', 'upper', 'margin', 'margin_bound', 'status'))
    """

    lower: Float[Array, ""]
    upper: Float[Array, ""]
    margin: Float[Array, ""]
    margin_bound: Float[Array, ""]
    status: Int[Array, ""]


@eqx.filter_jit
def kappa_over(allowed: RewardSet, x: Float[Array, "m k"]) -> KappaBounds:
    """κ = sup over θ ∈ Θ of 1/(σ(z)σ(−z)), z = max_i |θᵀx_i| (paper: the κ of Theorems 4.3 and 5.1 on Θ(D₁)).

    For every ±x_i, θ ← Proj(θ + Mx) ascends to max θᵀx over Θ; each step certifies
    max θᵀx ≤ ⟨x, θ⁺⟩ + 2B‖θ⁺ − θ‖/M, since ⟨θ + Mx − θ⁺, θ' − θ⁺⟩ ≤ 0 for every θ' in Θ, B the radius of its ball.

    **Arguments:** `allowed`: a `ConfidenceSet` or an `Ellipsoid`; `x` [m, k]: the differences that can occur, one
    ascent for each sign of each.

    **Example:**

    >>> import jax.numpy as jnp
    >>> from robust_rlhf_jax.lab.diagnostics import kappa_over
    >>> from robust_rlhf_jax.likelihood import ellipsoid
    >>> near = ellipsoid(jnp.eye(2), jnp.array([1.0, 0.0]), 0.5, jnp.asarray(3.0))
    >>> found = kappa_over(near, jnp.array([[1.0, 0.0]]))
    >>> round(float(found.margin), 2), round(float(found.lower), 1)
    (1.5, 6.7)
    """
    lower, upper, statuses = jax.lax.map(lambda row: _support(allowed, row), jnp.concatenate([x, -x]))
    margin, bound = jnp.max(lower), jnp.max(upper)
    return KappaBounds(link_steepness(margin), link_steepness(bound), margin, bound, worst_status(*statuses))


def _support(allowed: RewardSet, x: Float[Array, " k"]):
    """(lower, upper bound of max over Θ of θᵀx, status of the last projection)."""
    length = jnp.linalg.norm(x)
    unit, reach = x / positive_or_one(length), REACH * allowed.radius

    def climb(_, carry):
        warm, _, upper, _ = carry
        found = allowed.project(warm.theta + reach * unit, warm)
        inexact = tolerance(found.theta)
        moved = jnp.linalg.norm(found.theta - warm.theta) + inexact
        reached = matmul(unit, found.theta)
        certified = reached + inexact + 2.0 * allowed.radius * moved / reach
        return found.warm, reached, jnp.minimum(upper, certified), found.status

    first = allowed.project(allowed.centre)
    start = (first.warm, matmul(unit, first.theta), jnp.asarray(allowed.radius), first.status)
    _, reached, upper, status = jax.lax.fori_loop(0, ROUNDS, climb, start)
    return length * reached, length * upper, status
