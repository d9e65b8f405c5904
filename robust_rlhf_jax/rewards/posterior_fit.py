"""The reward of weighted pairs, with a prior whose strength the pairs choose; what the pairs then know of it."""

from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.kernels.divisors import positive_or_one
from robust_rlhf_jax.kernels.lapack import lower_solve
from robust_rlhf_jax.kernels.linalg import matmul, weighted_gram
from robust_rlhf_jax.kernels.logistic import label_variance, secant_curvature

from .config import RobustFit
from .coordinates import UnitFreePairs
from .newton import maximise

# The prior's standard deviation of a margin, at least: nothing.
LEAST_MARGIN = 1e-3
# Refits that a fit gets to settle: most do in 2 to 5.
ROUNDS = 8
# Random signs that stand for all axes where those are many: the trace is known to 1 % at 512 axes.
PROBES = 32
# Share of a pair's own information that is left without it, at least.
LEAST_LEFT = 0.05


class Prior(Protocol):
    """What the prior needs of coordinates: see `UnitFreePairs`."""

    @property
    def penalty(self) -> Float[Array, " r"]: ...

    @property
    def rank(self) -> Int[Array, ""]: ...

    @property
    def wide(self) -> bool: ...


class Fit(NamedTuple):
    """`t` [r]; `strength` λ of the prior N(0, (λ·diag(penalty))⁻¹); `factor` of the curvature there, per unit of
    weight; `status`.
    """

    t: Float[Array, " r"]
    strength: Float[Array, ""]
    factor: Float[Array, "r r"]
    status: Int[Array, ""]


def first_fit(pairs: UnitFreePairs) -> Fit:
    """Where every fit begins: t = 0, the expected strength, and the curvature of labels of which nothing is known."""
    r, dtype = pairs.rows.shape[1], pairs.rows.dtype
    return Fit(
        jnp.zeros(r, dtype), expected_strength(pairs), 0.5 * jnp.eye(r, dtype=dtype), Status.CONVERGED.array()
    )


def expected_strength(pairs: Prior) -> Float[Array, ""]:
    """The λ under which margins have variance 1 if every axis has the geometric mean of the penalties: rank over it."""
    logs = jnp.where(pairs.penalty > 0, jnp.log(positive_or_one(pairs.penalty)), 0.0)
    rank = jnp.maximum(pairs.rank, 1)
    return rank * jnp.exp(-jnp.sum(logs) / rank)


def refit(pairs: UnitFreePairs, weights: Float[Array, " N"], last: Fit, config: RobustFit) -> Fit:
    """The maximum a posteriori under λ of `last`, and the λ that its evidence asks for.

    λ ← (γ + c)/(Σ_j p_j t_j² + c/λ₀), γ = Σ_live 1 − λ p_j (H⁻¹)_jj: the fixed point of the marginal likelihood in
    Laplace's approximation, H the curvature with the prior at t, and of a Gamma prior that counts as c = `prior_axes`
    axes which show λ₀ = `expected_strength`. Repeated refits settle. Margins are expected to be no wider than
    `widest_margin`, so that labels which a reward separates have a fit.

    **Source:** MacKay 1992, *The evidence framework applied to classification networks*.
    """
    precision = last.strength * pairs.penalty
    # Its curvature is of this λ, from no further away than `last`: where refits settle, that at the maximum.
    found = maximise(pairs.rows, weights, last.t, precision)
    total = jnp.maximum(jnp.sum(weights), 1.0)
    strength = next_strength(pairs, found.t, found.factor, last.strength, total, config)
    return Fit(found.t, strength.astype(last.t.dtype), found.factor, found.status)


def next_strength(
    pairs: Prior,
    t: Float[Array, " r"],
    factor: Float[Array, "r r"],
    last: Float[Array, ""],
    total: Float[Array, ""],
    config: RobustFit,
) -> Float[Array, ""]:
    """The λ that the evidence at t asks for, where the curvature under λ of `last` is `factor`·`factor`ᵀ per unit of
    the `total` weight: see `refit`.
    """
    half = lower_solve(factor, jnp.sqrt(pairs.penalty)[:, None] * _probes(pairs))
    known = pairs.rank - last * jnp.sum(half**2) / total
    size = matmul(pairs.penalty, t**2)
    rank = jnp.maximum(pairs.rank, 1)
    return jnp.clip(
        (jnp.maximum(known, 0.0) + config.prior_axes) / (size + config.prior_axes / expected_strength(pairs)),
        rank / config.widest_margin**2,
        rank / LEAST_MARGIN**2,
    )


def _probes(pairs: Prior) -> Float[Array, "r m"]:
    """Columns z with Σ_z zzᵀ = I: all axes, or where those are many, signs at random, for which it holds on average.

    **Source:** Hutchinson 1989, for the trace of an inverse.
    """
    r, dtype = len(pairs.penalty), pairs.penalty.dtype
    if not pairs.wide:
        return jnp.eye(r, dtype=dtype)
    return jax.random.rademacher(jax.random.key(0), (r, PROBES), dtype) / PROBES**0.5


def at_bound(pairs: Prior, strength: Float[Array, ""], config: RobustFit) -> Bool[Array, ""]:
    """Whether the pairs ask for the weakest prior there is: a reward (nearly) separates their labels."""
    return strength <= 1.001 * jnp.maximum(pairs.rank, 1) / config.widest_margin**2


def optimism(pairs: UnitFreePairs, weights: Float[Array, " N"], fit: Fit) -> Float[Array, ""]:
    """Nats by which the fit explains the pairs that it counts better than it would, had it not seen each.

    Σ_n w_n [log σ(m_n) − log σ(m̃_n)], m̃_n = m_n − h_n r_n/(1 − h_n f_n), h_n = w_n y_nᵀH⁻¹y_n: one Newton step of
    leaving pair n out. To first order the effective number of parameters; more where they are many.

    **Source:** approximate leave-one-out, Rad & Maleki 2020.
    """
    margins = pairs.margins(fit.t)
    total = jnp.maximum(jnp.sum(weights), 1.0)
    leverage = weights * jnp.sum(lower_solve(fit.factor, pairs.rows.T) ** 2, axis=0) / total
    return optimism_of(margins, weights, leverage)


def optimism_of(
    margins: Float[Array, " N"], weights: Float[Array, " N"], leverage: Float[Array, " N"]
) -> Float[Array, ""]:
    """`optimism` of pairs whose leverages w_n y_nᵀH⁻¹y_n are known."""
    left = jnp.maximum(1.0 - leverage * label_variance(margins), LEAST_LEFT)
    unseen = margins - leverage * missed(margins) / left
    return matmul(weights, jax.nn.log_sigmoid(margins) - jax.nn.log_sigmoid(unseen))


def missed(margins: Float[Array, " N"]) -> Float[Array, " N"]:
    """r_n = 1 − P(o_n | x_n) = σ(−margin): the length of pair n's score r_n·y_n."""
    return jax.nn.sigmoid(-margins)


def information(
    pairs: UnitFreePairs, weights: Float[Array, " N"], margins: Float[Array, " N"]
) -> Float[Array, "r r"]:
    """F = Σ_n w_n P(1 − P) y_n y_nᵀ, what the weighted pairs know of t."""
    return weighted_gram(pairs.rows, weights * label_variance(margins))


def secant_information(
    pairs: UnitFreePairs, weights: Float[Array, " N"], margins: Float[Array, " N"]
) -> Float[Array, "r r"]:
    """Σ_n w_n tanh(m_n/2)/(2m_n) y_n y_nᵀ: the curvature of the likelihood as far as the way from m_n to 0.

    P(1 − P), its curvature at m_n, says that labels of which the fit is sure know nothing: they know that m_n is large.
    Source: the quadratic bound of Jaakkola & Jordan 2000.
    """
    return weighted_gram(pairs.rows, weights * secant_curvature(margins))
