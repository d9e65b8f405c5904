"""The lengths of the crowd's taste and of the spread around it, straight from all labels."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from robust_rlhf_jax.kernels.expected_logistic import expected_logistic

from ._by_rater import RowsByRater
from .taste import Tastes

# Both lengths change by a factor of two at most in one step.
LEAST, MOST = 0.5, 2.0


def lengths(
    pairs: RowsByRater,
    centres: Float[Array, "m r"],
    found: Tastes,
    chance: Float[Array, "m K"],
    prior: tuple[Float[Array, ""], Float[Array, ""]],
) -> Float[Array, " 2"]:
    """(β, α): one Newton step of E Σ log σ(β c_jᵀy + α(t_k − c_j)ᵀy) + log-prior of α, from β = α = 1. Jit-able.

    The expectation is over the `found` tastes t_k of each of m kinds and the `chance` of those; c_j are the `centres`
    of the kinds. `prior`: derivative and negative second derivative of the log-prior by α. EM alone finds lengths
    slowly where raters give few answers, since each round takes them from tastes that the last lengths have shrunk.

    **Source:** Liu, Rubin & Wu 1998, *Parameter expansion to accelerate EM: the PX-EM algorithm*.
    """

    def of_kind(centre, t, variance, chance):
        whole, base = pairs.margins(t), pairs.margins(jnp.broadcast_to(centre, t.shape))
        off, weight = whole - base, chance[pairs.raters]
        _, residual, curvature = expected_logistic(whole, variance)
        slope = jnp.stack([residual * base, residual * off - curvature * variance])
        bend = jnp.stack([base**2, base * off, off**2 + variance])
        return jnp.sum(weight * slope, axis=1), jnp.sum(weight * curvature * bend, axis=1)

    slopes, bends = jax.vmap(of_kind)(centres, found.t, found.variance, chance)
    (of_mean, of_spread), (a, b, c) = jnp.sum(slopes, axis=0), jnp.sum(bends, axis=0)
    of_spread, c = of_spread + prior[0], c + prior[1]
    tiny = jnp.finfo(a.dtype).tiny
    determinant = jnp.maximum(a * c - b**2, tiny)
    step = jnp.stack([c * of_mean - b * of_spread, a * of_spread - b * of_mean]) / determinant
    return jnp.clip(1.0 + step, LEAST, MOST)
