"""Labels that are more surprising than the model itself expects: out, until its two informations agree."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from robust_rlhf_jax.kernels.lapack import cholesky, lower_solve
from robust_rlhf_jax.kernels.linalg import matmul, top_eigenpair, weighted_gram
from robust_rlhf_jax.kernels.quantile import upper_threshold

from .coordinates import Pairs
from .weighted_fit import PRIOR, fit, information, missed

STEPS = 24
# Relative excess of the top eigenvalue that honest data of people show, beyond its sampling error.
TOLERATED, STANDARD_ERRORS = 0.1, 3.0


class Cleaned(NamedTuple):
    """`weights` [N]; `t` [r]: the fit to them; `excess`: the last top eigenvalue of (J, F), 1 if all is well."""

    weights: Float[Array, " N"]
    t: Float[Array, " r"]
    excess: Float[Array, ""]


class _State(NamedTuple):
    weights: Float[Array, " N"]
    t: Float[Array, " r"]
    excess: Float[Array, ""]
    done: Bool[Array, ""]
    step: Int[Array, ""]


def without_label_outliers(
    pairs: Pairs, weights: Float[Array, " N"], start: Float[Array, " r"], budget: Float[Array, ""]
) -> Cleaned:
    """Lower weights where labels surprise the fit more than it expects, while less than `budget` of mass is gone.

    At the true t, J = Σ w r²zzᵀ and F = Σ w P(1 − P)zzᵀ have the same mean, whatever the law of x. (λ, v): the top
    generalised eigenpair of (J, F). While λ exceeds 1 by more than sampling and people's habits explain, the pairs with
    the largest r²(vᵀz)² go, and t is fitted anew. On honest data nothing goes: the fit is maximum likelihood. Blind
    where margins are near 0: r² = P(1 − P) there for any label.

    **Source:** White's information-matrix test (1982).
    """
    n = pairs.n_pairs
    level = 1.0 + TOLERATED + STANDARD_ERRORS * jnp.sqrt(jnp.maximum(pairs.rank, 1) / n)

    def look(weights, t):
        """(λ, what each pair has in it)."""
        margins = pairs.margins(t)
        wrong = weights * missed(margins) ** 2
        known = information(pairs, weights, margins) + 0.5 * PRIOR * jnp.eye(t.shape[0], dtype=t.dtype)
        factor = cholesky(known)
        half = lower_solve(factor, weighted_gram(pairs.z, wrong))
        excess, axis = top_eigenpair(lower_solve(factor, half.T))
        direction = jax.scipy.linalg.solve_triangular(factor, axis, trans=1, lower=True)
        return excess, wrong * matmul(pairs.z, direction) ** 2

    def unfinished(state: _State):
        return ~state.done & (state.step < STEPS)

    def remove(state: _State) -> _State:
        excess, scores = look(state.weights, state.t)
        left = budget - (n - jnp.sum(state.weights))
        done = (excess <= level) | (left <= 0.5)
        threshold = upper_threshold(
            scores, state.weights, jnp.minimum(left, jnp.maximum(budget / STEPS, 1.0))
        )
        kept = jnp.where(scores >= jnp.maximum(threshold, 1e-30), 0.0, state.weights)
        weights = jnp.where(done, state.weights, kept)
        return _State(weights, fit(pairs, weights, state.t).t, excess, done, state.step + 1)

    infinite = jnp.asarray(jnp.inf, start.dtype)
    first = _State(weights, start, infinite, jnp.asarray(False), jnp.zeros((), jnp.int32))
    end = jax.lax.while_loop(unfinished, remove, first)
    return Cleaned(end.weights, end.t, end.excess)
