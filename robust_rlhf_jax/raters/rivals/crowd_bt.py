"""Crowd-BT (Chen, Bennett, Collins-Thompson & Horvitz 2013) for a linear reward: each rater says what is meant with a
chance of their own.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from robust_rlhf_jax._iterate import Status, iterate
from robust_rlhf_jax.checks import check_labels, check_positive
from robust_rlhf_jax.kernels.divisors import positive_or_one
from robust_rlhf_jax.kernels.rounding import rounding_of
from robust_rlhf_jax.likelihood.margin_fit import MarginProblem, fit_margin_loss, margin_problem
from robust_rlhf_jax.likelihood.margin_losses import TiltedLogistic
from robust_rlhf_jax.raters._by_rater import AnswersByRater
from robust_rlhf_jax.raters.protocol import RaterEntry, RaterEstimate

# The paper's weight λ of the virtual node, and its prior Beta(10, 1) of η: nine answers that were meant.
VIRTUAL, MEANT = 1.0, 9.0
# η before any answer is seen, and the most rounds of EM.
START, MAX_ROUNDS = 0.9, 500


def crowd_bt(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: Float[Array, ""],
    raters: Int[Array, " n"],
    n_raters: int,
    *,
    radius: float | Float[Array, ""],
    virtual: float | Float[Array, ""] = VIRTUAL,
    meant: float | Float[Array, ""] = MEANT,
) -> RaterEstimate:
    """max over θ in the ball and η ∈ [0, 1]^K of Σ_n log[η_k σ(m_n) + (1 − η_k)σ(−m_n)] + a Σ_k log η_k + λR(θ).

    m_n = o_nθᵀx_n, k the rater of pair n. R(θ) = Σ_j log σ(θ_j) + log σ(−θ_j): each column wins and loses once against
    a virtual node, which is the paper's regulariser where columns are items; λ is `virtual`, a is `meant`. By EM from
    η = .9: r_n, the chance that label n is what its rater means, then η_k = (Σr + a)/(n_k + a) and a fit to labels that
    hold with chance r_n. Not convex: with (θ, η) a likelihood also has (−θ, 1 − η), and the start decides. R depends on
    the units of the columns. ε is not used. `weights` are r; suspicion is 1 − r; reliability is 2η − 1.

    **Raises:** ValueError for λ or a below 0.
    """
    check_labels(labels)
    check_positive(virtual, "virtual", or_zero=True)
    check_positive(meant, "meant", or_zero=True)
    given = (jnp.asarray(value, x.dtype) for value in (radius, virtual, meant))
    return _crowd_bt(x, labels.astype(x.dtype), raters, int(n_raters), *given)


class _Crowd(eqx.Module):
    """`reward`: the pairs, and after them a row for each column against the virtual node; who answered; a."""

    reward: MarginProblem
    by: AnswersByRater
    meant: Float[Array, ""]

    def logs(self, eta: Float[Array, " K"], margins: Float[Array, " m"]):
        """log of η_k σ(m) [n], of (1 − η_k)σ(−m) [n], and of their sum [n]."""
        own, margins = eta[self.by.raters], margins[: len(self.by.raters)]
        right = jnp.log(own) + jax.nn.log_sigmoid(margins)
        wrong = jnp.log1p(-own) + jax.nn.log_sigmoid(-margins)
        return right, wrong, jnp.logaddexp(right, wrong)

    def cost(self, eta: Float[Array, " K"], margins: Float[Array, " m"]) -> Float[Array, ""]:
        """Less the objective, a pair."""
        n, theta = len(self.by.raters), margins[len(self.by.raters) :]
        prior = jnp.sum(jax.scipy.special.xlogy(self.meant, eta))
        node = 0.5 * self.reward.weights[-1] * jnp.sum(jax.nn.log_sigmoid(theta) + jax.nn.log_sigmoid(-theta))
        return -(jnp.sum(self.logs(eta, margins)[2]) + prior + node) / n


class _State(NamedTuple):
    theta: Float[Array, " k"]
    eta: Float[Array, " K"]
    margins: Float[Array, " m"]
    value: Float[Array, ""]
    fall: Float[Array, ""]


class _EM(eqx.Module):
    """One round is both: η and θ are each the best for the r before."""

    def init(self, problem: _Crowd, *, key: PRNGKeyArray | None) -> _State:
        dtype = problem.by.answers.dtype
        eta = jnp.full_like(problem.by.answers, START)
        start = problem.reward.start
        margins = problem.reward.at(start)[1]
        return _State(start, eta, margins, problem.cost(eta, margins), jnp.asarray(jnp.inf, dtype))

    def step(self, problem: _Crowd, state: _State, *, key: PRNGKeyArray | None) -> _State:
        held = _held(problem, state)
        total = problem.by.answers + problem.meant
        eta = jnp.where(total > 0, (problem.by.sums(held) + problem.meant) / positive_or_one(total), START)
        # A row of the virtual node is won and lost alike.
        tilt = jnp.concatenate([1.0 - held, jnp.full(len(state.margins) - len(held), 0.5, held.dtype)])
        reward = eqx.tree_at(lambda p: (p.loss.tilt, p.start), problem.reward, (tilt, state.theta))
        fit = fit_margin_loss(reward)
        value = problem.cost(eta, fit.margins)
        return _State(fit.theta, eta, fit.margins, value, state.value - value)

    def terminate(self, problem: _Crowd, state: _State) -> Int[Array, ""]:
        return jnp.where(
            state.fall <= rounding_of(state.value), Status.CONVERGED.array(), Status.RUNNING.array()
        )


def _held(problem: _Crowd, state: _State) -> Float[Array, " n"]:
    """r [n]."""
    right, _, either = problem.logs(state.eta, state.margins)
    return jnp.exp(right - either)


@eqx.filter_jit
def _crowd_bt(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    raters: Int[Array, " n"],
    n_raters: int,
    radius: Float[Array, ""],
    virtual: Float[Array, ""],
    meant: Float[Array, ""],
) -> RaterEstimate:
    (n, k), dtype = x.shape, x.dtype
    rows = jnp.concatenate([x, jnp.eye(k, dtype=dtype)])
    signs = jnp.concatenate([labels, jnp.ones(k, dtype)])
    reward = margin_problem(TiltedLogistic(jnp.zeros(n + k, dtype)), rows, signs, radius)
    weights = jnp.concatenate([jnp.ones(n, dtype), jnp.broadcast_to(2.0 * virtual, k)])
    reward = eqx.tree_at(lambda p: p.weights, reward, weights)
    problem = _Crowd(reward, AnswersByRater.of(raters, n_raters, dtype), meant)
    end = iterate(_EM(), problem, max_steps=MAX_ROUNDS)
    held = _held(problem, end.state)
    return RaterEstimate(end.state.theta, held, 1.0 - held, end.status, 2.0 * end.state.eta - 1.0)


ENTRIES = [
    RaterEntry(
        crowd_bt,
        "Crowd-BT",
        "each rater's label holds with a chance of their own (Chen et al. 2013); ε is not used",
    )
]
