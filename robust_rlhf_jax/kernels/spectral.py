"""Spectral scores: how far each row of a robust-mean filter is suspect. What then goes: `removal.py`.

The filters of Diakonikolas, Kamath, Kane, Li, Moitra & Stewart 2017, *Being Robust (in High Dimensions) Can Be
Practical*, in the soft form of Diakonikolas & Kane 2023, *Algorithmic High-Dimensional Robust Statistics*, chapter 2:
corrupt points that move the mean by much must also raise the variance in the direction in which they move it.
"""

from collections.abc import Callable

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from .divisors import positive_or_one
from .lanczos import lanczos_shortfall, top_by_lanczos
from .linalg import DENSE_EIGH_UP_TO, matmul, top_eigenpair, weighted_mean, weighted_second_moment
from .running_moments import RunningMoments

POWER_STEPS = 12


def _top_by_lobpcg(x: Float[Array, "n d"], weights: Float[Array, " n"]):
    """Largest eigenpair of the weighted second moment without forming it: LOBPCG on three vectors.

    Where the spectrum is flat, as that of rows whitened by their own moment, its residuals vanish and it ends in NaN:
    power iteration then has nothing left to do, and stands in.
    """
    # Here, for it takes half a second and few data sets are so wide.
    from jax.experimental.sparse.linalg import lobpcg_standard

    total = jnp.sum(weights)

    def apply(block):
        return matmul(x.T, (weights * matmul(x, block).T).T) / total

    farthest = x[jnp.argmax(weights * jnp.sum(x**2, axis=1))]
    guess = jnp.eye(x.shape[1], 3, dtype=x.dtype).at[:, 0].set(farthest)
    values, vectors, _ = lobpcg_standard(apply, guess, m=50)
    found = jnp.isfinite(values[0]) & jnp.all(jnp.isfinite(vectors[:, 0]))
    return jax.lax.cond(found, lambda: (values[0], vectors[:, 0]), lambda: top_by_power(apply, farthest))


def top_by_power(apply: Callable[[Array], Array], start: Array):
    """(Rayleigh quotient, unit vector) after `POWER_STEPS` applications."""

    def step(_, v):
        image = apply(v)
        norm = jnp.linalg.norm(image)
        return image / positive_or_one(norm)

    direction = jax.lax.fori_loop(0, POWER_STEPS, step, start)
    return matmul(direction, apply(direction)), direction


def linear_scores(
    x: Float[Array, "n d"], weights: Float[Array, " n"]
) -> tuple[Float[Array, " n"], Float[Array, ""], Float[Array, " d"]]:
    """τ_i = ⟨v, x_i − μ_w⟩² for the top eigenpair (λ, v) of the weighted covariance.

    **Returns:** (scores [n], λ, μ_w [d]).
    """
    chex.assert_rank([x, weights], [2, 1])
    chex.assert_equal_shape_prefix([x, weights], 1)
    mean = weighted_mean(x, weights)
    centred = x - mean
    if x.shape[1] <= DENSE_EIGH_UP_TO:
        value, direction = top_eigenpair(weighted_second_moment(centred, weights))
    else:
        value, direction = _top_by_lobpcg(centred, weights)
    return matmul(centred, direction) ** 2, value, mean


def scores_from_moments(
    x: Float[Array, "n d"], moments: RunningMoments, whitener: Float[Array, "d d"] | None = None
) -> tuple[Float[Array, " n"], Float[Array, ""]]:
    """`linear_scores` of the rows Wx_i whose moments are known: (scores [n], λ)."""
    value, direction = top_eigenpair(moments.covariance)
    along = direction if whitener is None else matmul(whitener, direction)
    # No centred copy of all rows: rows far from the origin are rounded by as much already.
    middle = matmul(moments.centre, along) + matmul(moments.shift, direction)
    return (matmul(x, along) - middle) ** 2, value


def _quadratic_form(y: Float[Array, "n d"], m: Float[Array, "d d"]):
    return jnp.sum(matmul(y, m) * y, axis=1)


def quadratic_scores(
    y: Float[Array, "n d"], weights: Float[Array, " n"], steps: int = POWER_STEPS
) -> tuple[Float[Array, " n"], Float[Array, ""]]:
    """τ_i = ⟨y_iy_iᵀ − S, M⟩² for the top eigenpair (λ, M) of the covariance of the matrices y_iy_iᵀ.

    S is the weighted second moment. The covariance of the d²-vectors is never formed: one application costs
    n·d², M ↦ Σ_i w_i⟨y_iy_iᵀ − S, M⟩ y_iy_iᵀ / Σ_i w_i. Power iteration starts from the sample that lies
    farthest out, so that neither the order of the rows nor the basis matters.

    **Returns:** (scores [n], λ = Σ_i w_iτ_i/Σ_i w_i for ‖M‖_F = 1; 2 for standard normal y).
    """
    chex.assert_rank([y, weights], [2, 1])
    chex.assert_equal_shape_prefix([y, weights], 1)
    total = jnp.sum(weights)

    def polynomial(m):
        form = _quadratic_form(y, m)
        return form - matmul(weights, form) / total

    def normalise(m):
        norm = jnp.linalg.norm(m)
        return m / positive_or_one(norm)

    def power(_, m):
        return normalise(matmul(y.T * (weights * polynomial(m) / total), y))

    # Weighted, so that a removed row which rounding left a weight of 1e-16 does not set the start.
    farthest = y[jnp.argmax(weights * jnp.sum(y**2, axis=1))]
    top = jax.lax.fori_loop(0, steps, power, normalise(jnp.outer(farthest, farthest)))
    scores = polynomial(top) ** 2
    return scores, matmul(weights, scores) / total


def quadratic_top_bound(
    y: Float[Array, "n d"], weights: Float[Array, " n"], key: PRNGKeyArray, miss: float = 0.01
) -> Float[Array, ""]:
    """What the λ of `quadratic_scores` falls short of, and the true λ exceeds with probability `miss` at most.

    λ ≤ λ_k/(1 − η): λ_k from `top_by_lanczos` with a random symmetric M to begin with, η its `lanczos_shortfall`, 2 to
    6 % for d up to 1,000; and λ ≤ ‖E‖y‖²yyᵀ‖, surely. Twelve power steps alone are up to 9 % low.
    """
    d, total = y.shape[1], jnp.sum(weights)

    def apply(flat):
        form = _quadratic_form(y, flat.reshape(d, d))
        centred = form - matmul(weights, form) / total
        return matmul(y.T * (weights * centred / total), y).reshape(-1)

    # From the distribution that every rotation of the space of symmetric matrices leaves as it is.
    square = jax.random.normal(key, (d, d), y.dtype)
    found = top_by_lanczos(apply, (0.5 * (square + square.T)).reshape(-1))
    probable = found / (1.0 - lanczos_shortfall(d * (d + 1) // 2, miss))
    rows = y * jnp.linalg.norm(y, axis=1)[:, None]
    return jnp.minimum(probable, top_eigenpair(weighted_second_moment(rows, weights))[0])
