"""Maximum likelihood of weighted pairs in unit-free coordinates, plain or with a weak prior."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from robust_rlhf_jax.kernels.lapack import eigh
from robust_rlhf_jax.kernels.linalg import weighted_gram
from robust_rlhf_jax.kernels.logistic import label_variance

from .coordinates import Pairs
from .newton import maximise

# Bound on ‖t‖, the root mean square margin: real choices have 1 to 3, so that only (nearly) separable labels reach it.
RADIUS = 30.0
# Mean of P(1 − P) along a direction below which it counts as separated: that of root mean square margin `RADIUS` where
# rows are normal. Fits in few digits stop before that, the sooner the more pairs.
FLAT, FLAT_AT_MOST = 5e-5, 1e-3
# Wins and losses that every axis is given in the fit of a part of the pairs: a precision of .01, less than a pair.
PRIOR = 0.02


class WeightedFit(NamedTuple):
    """`t` [r]; `value`: mean log-likelihood; `factor` of its curvature; `status`; `at_radius`: whether ‖t‖ has reached
    `RADIUS`.
    """

    t: Float[Array, " r"]
    value: Float[Array, ""]
    factor: Float[Array, "r r"]
    status: Int[Array, ""]
    at_radius: Bool[Array, ""]


def fit(
    pairs: Pairs,
    weights: Float[Array, " N"],
    start: Float[Array, " r"],
    prior: float | Float[Array, ""] = PRIOR,
    factor: Float[Array, "r r"] | None = None,
) -> WeightedFit:
    """argmax over ‖t‖ ≤ RADIUS of Σ_n w_n log σ(o_n tᵀz_n), with `prior` wins and losses along every axis.

    `factor`: that of a fit to similar weights, whose curvature serves here too.
    """
    found = maximise(pairs.z, pairs.o, weights, start, RADIUS, prior, factor)
    return WeightedFit(
        found.t, found.value, found.factor, found.status, jnp.linalg.norm(found.t) >= 0.999 * RADIUS
    )


def first_factor(start: Float[Array, " r"]) -> Float[Array, "r r"]:
    """A `factor` where none is known: no curvature of labels in whitened coordinates is larger by much than I/4."""
    return 0.5 * jnp.eye(len(start), dtype=start.dtype)


def missed(margins: Float[Array, " N"]) -> Float[Array, " N"]:
    """r_n = 1 − P(o_n | x_n) = σ(−margin): the length of pair n's score r_n·o_n·z_n."""
    return jax.nn.sigmoid(-margins)


def information(
    pairs: Pairs, weights: Float[Array, " N"], margins: Float[Array, " N"]
) -> Float[Array, "r r"]:
    """F = Σ_n w_n P(1 − P) z_n z_nᵀ, what the weighted pairs know of t."""
    return weighted_gram(pairs.z, weights * label_variance(margins))


def secant_information(
    pairs: Pairs, weights: Float[Array, " N"], margins: Float[Array, " N"]
) -> Float[Array, "r r"]:
    """Σ_n w_n tanh(m_n/2)/(2m_n) z_n z_nᵀ: the curvature of the likelihood as far as the way from m_n to 0.

    P(1 − P), its curvature at m_n, says that labels of which the fit is sure know nothing: they know that m_n is large.
    Source: the quadratic bound of Jaakkola & Jordan 2000.
    """
    size = jnp.maximum(jnp.abs(margins), 1e-3)
    return weighted_gram(pairs.z, weights * jnp.tanh(0.5 * size) / (2.0 * size))


def separable(pairs: Pairs, plain: WeightedFit) -> Bool[Array, ""]:
    """Whether some direction has no best length: nearly every label that shows it is won, or t has reached `RADIUS`.

    The fit ends where rounding hides the gain, often far inside the radius: there the pairs know nothing more of that
    direction, and the least eigenvalue of F/N says so.
    """
    ones = jnp.ones_like(pairs.o)
    known, _ = eigh(information(pairs, ones, pairs.margins(plain.t)) / pairs.n_pairs)
    # Null axes come first, with exactly nothing known.
    least = known[jnp.clip(len(known) - pairs.rank, 0, len(known) - 1)]
    flat = min(max(4 * float(jnp.finfo(ones.dtype).eps) * pairs.n_pairs, FLAT), FLAT_AT_MOST)
    return plain.at_radius | ((least < flat) & (pairs.rank > 0))
