"""RIME, for a linear reward: labels are kept, left out or turned round by how far they are from what θ predicts."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from robust_rlhf_jax._iterate import worst_status
from robust_rlhf_jax.checks import check_labels, check_positive, is_traced
from robust_rlhf_jax.kernels.divisors import positive_or_one
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.likelihood.margin_fit import fit_margin_loss, margin_problem
from robust_rlhf_jax.likelihood.margin_losses import TiltedLogistic
from robust_rlhf_jax.rewards.protocol import Entry, RewardEstimate, surprise

# The defaults of the authors' code: the factor α of ρ, the chance below which a label is turned round, the first and
# the last β, how far ρ moves in a round, and what uncertainty adds at most.
ALPHA, FLIP_BELOW, BETAS, RATE, MOST_ADDED = 0.5, 1e-3, (3.0, 1.0), 0.1, 3.0
ROUNDS = 30


def rime(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: Float[Array, ""],
    *,
    radius: float | Float[Array, ""],
    alpha: float | Float[Array, ""] = ALPHA,
    flip_below: float | Float[Array, ""] = FLIP_BELOW,
    rounds: int = ROUNDS,
) -> RewardEstimate:
    """Rounds of: keep the labels whose KL is below a moving bound, turn absurd ones round, fit (Cheng et al. 2024).

    KL_n = −log σ(o_nθᵀx_n), the divergence of what θ predicts from the label. A label is trusted below −log ρ + αρ +
    min(βs², 3), where ρ follows the largest KL of trusted labels by a tenth of the way each round, s² is the variance
    of theirs, and β falls from 3 to 1; it is turned round where its chance is less than `flip_below`. Here s² is of the
    round before, and labels turned round count in neither ρ nor s²; the authors' code pools the variance of all rounds,
    and counts such labels where they are below the bound. A round of the paper is a pass of SGD by an ensemble; for a
    linear reward it is the fit itself, on the ball, and the first is plain maximum likelihood. What is trusted agrees
    with θ, which grows, up to the ball. ε is not used. `weights`: 1 for trusted labels, else 0. Suspicion: the label's
    surprise.

    **Raises:** ValueError for α < 0, `flip_below` outside (0, ½), or no rounds.
    """
    check_labels(labels)
    check_positive(alpha, "alpha", or_zero=True)
    if not is_traced(flip_below) and not 0 < flip_below < 0.5:
        raise ValueError(f"flip_below={flip_below} must be a chance above 0 and below 1/2.")
    if rounds < 1:
        raise ValueError(f"rounds={rounds} must be at least 1.")
    dtype = x.dtype
    radius, alpha, flip_below = (jnp.asarray(part, dtype) for part in (radius, alpha, flip_below))
    return _rime(x, labels.astype(dtype), radius, alpha, flip_below, rounds)


@eqx.filter_jit
def _rime(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    radius: Float[Array, ""],
    alpha: Float[Array, ""],
    flip_below: Float[Array, ""],
    rounds: int,
) -> RewardEstimate:
    problem = margin_problem(TiltedLogistic(jnp.zeros_like(labels)), x, labels, radius)
    first = fit_margin_loss(problem)

    def round_of(state, beta):
        theta, margins, largest, variance = state
        divergence = -jax.nn.log_sigmoid(margins)
        bound = -jnp.log(largest + 1e-8) + alpha * largest + jnp.minimum(beta * variance, MOST_ADDED)
        absurd = divergence > -jnp.log(flip_below)
        trusted = jnp.where((divergence < bound) & ~absurd, 1.0, 0.0).astype(x.dtype)
        flipped = absurd.astype(x.dtype)
        share = trusted / positive_or_one(jnp.sum(trusted))
        variance = matmul(share, (divergence - matmul(share, divergence)) ** 2)
        largest = largest + RATE * (jnp.max(trusted * divergence) - largest)
        # ℓ(−m) = ℓ(m) + m.
        given = (TiltedLogistic(flipped), trusted + flipped, theta)
        fit = fit_margin_loss(eqx.tree_at(lambda p: (p.loss, p.weights, p.start), problem, given))
        return (fit.theta, fit.margins, largest, variance), (trusted, fit.status)

    zero, one = jnp.zeros((), x.dtype), jnp.ones((), x.dtype)
    betas = BETAS[0] + (BETAS[1] - BETAS[0]) * jnp.arange(rounds, dtype=x.dtype) / rounds
    (theta, *_), (trusted, statuses) = jax.lax.scan(round_of, (first.theta, first.margins, zero, one), betas)
    status = worst_status(first.status, statuses[-1])
    return RewardEstimate(theta, trusted[-1], surprise(theta, x, labels), status)


ENTRIES = [
    Entry(
        rime,
        "RIME",
        None,
        "labels kept, left out or turned round by their divergence (Cheng et al. 2024); ε is not used",
        uses_epsilon=False,
        plain_at_zero=False,
        by_surprise=True,
    )
]
