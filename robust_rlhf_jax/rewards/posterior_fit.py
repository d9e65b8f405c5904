"""The reward of weighted pairs, with a prior whose strength the pairs choose; what the pairs then know of it."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.kernels.divisors import positive_or_one
from robust_rlhf_jax.kernels.lapack import cholesky, lower_solve
from robust_rlhf_jax.kernels.linalg import matmul, weighted_gram
from robust_rlhf_jax.kernels.logistic import label_variance, secant_curvature

from .config import RobustFit
from .coordinates import UnitFreePairs
from .fisher_products import curvature_of, exact_leverages, leverages, prior_share
from .newton import maximise
from .prior_strength import asked_strength, expected_strength, next_strength
from .wide_fit import maximise_by_looks

# Refits that a fit gets to settle: most do in 2 to 5.
ROUNDS = 8
# Relative change of the prior's strength below which a refit has settled.
SETTLED_STRENGTH = 0.05
# Rows per axis from which on leverages are small enough to be drawn.
ROWS_PER_AXIS = 4
# Share of a pair's own information that is left without it, at least.
LEAST_LEFT = 0.05
# The least label variance by which the share of a pair is divided: below it the share is rounding.
LEAST_VARIANCE = 1e-6


class Fit(NamedTuple):
    """`t` [r]; `strength` λ of the prior N(0, (λ·diag(penalty))⁻¹); `factor` of the curvature there, per unit of
    weight; of wide pairs only what the prior adds to it, λ·penalty, its λ that of the fit before; `status`.
    """

    t: Float[Array, " r"]
    strength: Float[Array, ""]
    factor: Float[Array, "r r"] | Float[Array, " r"]
    status: Int[Array, ""]


def first_fit(pairs: UnitFreePairs) -> Fit:
    """The start of every fit: t = 0, the expected strength, and the curvature of labels of which nothing is known."""
    r, dtype = pairs.rows.shape[1], pairs.rows.dtype
    strength = expected_strength(pairs)
    factor = strength * pairs.penalty if pairs.wide else 0.5 * jnp.eye(r, dtype=dtype)
    return Fit(jnp.zeros(r, dtype), strength, factor, Status.CONVERGED.array())


def refit(pairs: UnitFreePairs, weights: Float[Array, " N"], last: Fit, config: RobustFit) -> Fit:
    """The maximum a posteriori under λ of `last`, and the λ that its evidence asks for.

    λ ← (γ + c)/(Σ_j p_j t_j² + c/λ₀), γ = Σ_live 1 − λ p_j (H⁻¹)_jj: the fixed point of the marginal likelihood in
    Laplace's approximation, H the curvature with the prior at t, and of a Gamma prior that counts as c = `prior_axes`
    axes which show λ₀ = `expected_strength`. Repeated refits settle. Margins are expected to be no wider than
    `widest_margin`, so that labels which a reward separates have a fit.

    **Source:** MacKay 1992, *The evidence framework applied to classification networks*.
    """
    if pairs.wide:
        return _refit_of_wide(pairs, weights, last, config)
    # The curvature has this λ, and is from a point no further from the maximum than `last`: once refits settle, it is
    # the one at the maximum.
    found = maximise(pairs.rows, weights, last.t, last.strength * pairs.penalty)
    half = lower_solve(
        found.factor, jnp.sqrt(pairs.penalty)[:, None] * jnp.eye(len(last.t), dtype=last.t.dtype)
    )
    known = pairs.rank - last.strength * jnp.sum(half**2) / jnp.maximum(jnp.sum(weights), 1.0)
    strength = asked_strength(pairs, found.t, known, config)
    return Fit(found.t, strength.astype(last.t.dtype), found.factor, found.status)


def _refit_of_wide(pairs: UnitFreePairs, weights: Float[Array, " N"], last: Fit, config: RobustFit) -> Fit:
    """A refit by products with the rows alone, which is expensive: λ takes a step of Newton's method, t follows."""
    precision = last.strength * pairs.penalty
    found = maximise_by_looks(pairs.rows, weights, last.t, precision)
    share = prior_share(curvature_of(pairs, weights, found.margins, precision), found.t)
    strength, t = next_strength(pairs, found.t, last.strength, share, config)
    return Fit(t.astype(last.t.dtype), strength.astype(last.t.dtype), precision, found.status)


def most_rounds(pairs: UnitFreePairs) -> int:
    """Refits that a fit gets to settle: of wide pairs, whose refits are expensive and come nearer, half as many."""
    return ROUNDS // 2 if pairs.wide else ROUNDS


def has_settled(last: Fit, fit: Fit) -> Bool[Array, ""]:
    """Whether the refit after `last` asks for the same strength of the prior."""
    return jnp.abs(jnp.log(fit.strength / last.strength)) < SETTLED_STRENGTH


def settled_fit(pairs: UnitFreePairs, weights: Float[Array, " N"], config: RobustFit) -> Fit:
    """The first fit to pairs of these weights, refitted until it has settled."""

    def again(state):
        n, last, fit = state
        # The first fit is from zero, and settles nothing.
        return (n < 2) | ~has_settled(last, fit) & (n < most_rounds(pairs))

    def turn(state):
        n, _, fit = state
        return n + 1, fit, refit(pairs, weights, fit, config)

    start = first_fit(pairs)
    return jax.lax.while_loop(again, turn, (0, start, start))[2]


def optimism(
    pairs: UnitFreePairs,
    weights: Float[Array, " N"],
    fit: Fit,
    prior: Float[Array, "N N"] | None = None,
) -> Float[Array, ""]:
    """Nats by which the fit explains the pairs that it counts better than it would, had it not seen each.

    Σ_n w_n [log σ(m_n) − log σ(m̃_n)], m̃_n = m_n − h_n r_n/(1 − h_n f_n), h_n = w_n y_nᵀH⁻¹y_n: one Newton step of
    leaving pair n out. To first order the effective number of parameters; more where they are many. `prior`: the
    `margin_covariance` of these pairs, where several fits share it.

    **Source:** approximate leave-one-out, Rad & Maleki 2020.
    """
    margins = pairs.margins(fit.t)
    return optimism_by_draws(margins, weights, own_leverages(pairs, weights, fit, margins, prior))


def optimism_by_draws(
    margins: Float[Array, " N"], weights: Float[Array, " N"], leverages: Float[Array, "h N"]
) -> Float[Array, ""]:
    """`optimism` of pairs with `own_leverages`: two halves of draws have a bias from their noise, which the jackknife
    removes.

    **Source:** Quenouille 1956, *Notes on bias in estimation*.
    """
    if len(leverages) == 1:
        return optimism_of(margins, weights, leverages[0])
    coarse = [optimism_of(margins, weights, half) for half in leverages]
    return 2.0 * optimism_of(margins, weights, jnp.mean(leverages, axis=0)) - 0.5 * (coarse[0] + coarse[1])


def optimism_of(
    margins: Float[Array, " N"], weights: Float[Array, " N"], leverage: Float[Array, " N"]
) -> Float[Array, ""]:
    """`optimism` of pairs whose leverages w_n y_nᵀH⁻¹y_n are known."""
    left = jnp.maximum(1.0 - leverage * label_variance(margins), LEAST_LEFT)
    unseen = margins - leverage * missed(margins) / left
    return matmul(weights, jax.nn.log_sigmoid(margins) - jax.nn.log_sigmoid(unseen))


def margin_covariance(pairs: UnitFreePairs) -> Float[Array, "N N"] | None:
    """Covariance of the margins under the prior of strength 1, of wide pairs that are no more than their axes; None of
    others, whose curvature is the smaller matrix.
    """
    if not pairs.wide or pairs.n_pairs > len(pairs.penalty):
        return None
    scaled = pairs.rows / jnp.sqrt(positive_or_one(pairs.penalty))
    return matmul(scaled, scaled.T)


def own_leverages(
    pairs: UnitFreePairs,
    weights: Float[Array, " N"],
    fit: Fit,
    margins: Float[Array, " N"],
    prior: Float[Array, "N N"] | None = None,
) -> Float[Array, "h N"]:
    """w_n y_nᵀH⁻¹y_n of every pair, in one row; of wide pairs with many rows in two, from halves of random draws.

    If rows are few, leverages are large, draws are too coarse, and a factor costs little: a factor of the curvature, or
    of the margins' covariance if that is given.
    """
    if not pairs.wide:
        total = jnp.maximum(jnp.sum(weights), 1.0)
        leverage = weights * jnp.sum(lower_solve(fit.factor, pairs.rows.T) ** 2, axis=0) / total
        return leverage[None]
    curvature = curvature_of(pairs, weights, margins, fit.factor)
    if prior is not None:
        # `factor` is λ·penalty, and λ that of the fit before.
        strength = jnp.sum(fit.factor) / positive_or_one(jnp.sum(pairs.penalty))
        share = own_share(prior / strength, curvature.variance)
        return (share / jnp.maximum(label_variance(margins), LEAST_VARIANCE))[None]
    if pairs.n_pairs < ROWS_PER_AXIS * len(fit.t):
        return weights * exact_leverages(curvature)[None]
    return weights * leverages(curvature)


def own_share(prior: Float[Array, "N N"], variance: Float[Array, " N"]) -> Float[Array, " N"]:
    """v_n y_nᵀH⁻¹y_n, of what is known of margin n the share that label n tells: 1 − ((I + √v K √v)⁻¹)_nn, K the
    covariance of the margins under the prior.

    **Source:** the identity of Woodbury.
    """
    eye, root = jnp.eye(len(variance), dtype=variance.dtype), jnp.sqrt(variance)
    factor = cholesky(eye + root[:, None] * prior * root)
    return 1.0 - jnp.sum(lower_solve(factor, eye) ** 2, axis=0)


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

    P(1 − P), its curvature at m_n, is 0 for labels of which the fit is sure, although they show that m_n is large.
    Source: the quadratic bound of Jaakkola & Jordan 2000.
    """
    return weighted_gram(pairs.rows, weights * secant_curvature(margins))
