"""Trust by rater (TriTrust, arXiv:2601.18751), for a linear reward: one factor of the margin each, of any sign."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from robust_rlhf_jax._iterate import Status, iterate
from robust_rlhf_jax.checks import check_labels, check_positive
from robust_rlhf_jax.kernels.ball import project_ball
from robust_rlhf_jax.kernels.divisors import positive_or_one
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.kernels.logistic import label_variance
from robust_rlhf_jax.kernels.rounding import rounding_of
from robust_rlhf_jax.likelihood.margin_fit import MarginProblem, fit_margin_loss, margin_problem
from robust_rlhf_jax.likelihood.margin_losses import TiltedLogistic
from robust_rlhf_jax.raters._by_rater import AnswersByRater
from robust_rlhf_jax.raters.protocol import RaterEntry, RaterEstimate

# Standard deviation of trust around 1: without it a rater whom θ never contradicts has endless trust.
SPREAD = 0.5
# Newton steps, each within a bracket of the maximum, to the trust of all raters; the most rounds of both halves.
STEPS, MAX_ROUNDS = 30, 500


def tritrust(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: Float[Array, ""],
    raters: Int[Array, " n"],
    n_raters: int,
    *,
    radius: float | Float[Array, ""],
    spread: float | Float[Array, ""] = SPREAD,
) -> RaterEstimate:
    """max over θ in the ball and w of Σ_n log σ(w_k o_nθᵀx_n) − Σ_k (w_k − 1)²/2s²: trust, ignore or flip each rater.

    k is the rater of pair n, s is `spread`. The paper trains a network by gradient steps on the first sum; the second
    is ours, and fixes the scale. (θ, w) and (cθ, w/c) predict alike: reported with a mean of w of 1 over the pairs,
    where the paper has ‖θ‖ = 1, and within the ball. θ and w in turn, from w = 1; not convex. ε is not used. `weights`:
    w over the largest, 0 for what is ignored or flipped; suspicion: 1 − w; reliability: w.

    **Raises:** ValueError for a spread ≤ 0.
    """
    check_labels(labels)
    check_positive(spread, "spread")
    given = (jnp.asarray(value, x.dtype) for value in (radius, spread))
    return _tritrust(x, labels.astype(x.dtype), raters, int(n_raters), *given)


class _Trust(eqx.Module):
    """`reward`: the pairs as they are, each trusted with w = 1; who answered; s²."""

    reward: MarginProblem
    by: AnswersByRater
    variance: Float[Array, ""]

    def cost(self, trust: Float[Array, " K"], margins: Float[Array, " n"]) -> Float[Array, ""]:
        """Less the objective, a pair."""
        prior = 0.5 * jnp.sum((trust - 1.0) ** 2) / self.variance
        return (prior - jnp.sum(jax.nn.log_sigmoid(trust[self.by.raters] * margins))) / len(margins)

    def best_trust(self, trust: Float[Array, " K"], margins: Float[Array, " n"]) -> Float[Array, " K"]:
        """argmax over w at these margins; a Newton step that leaves the bracket becomes its middle."""
        low = 1.0 - self.variance * self.by.sums(jnp.maximum(-margins, 0.0))
        high = 1.0 + self.variance * self.by.sums(jnp.maximum(margins, 0.0))

        def step(_, bracket):
            w, low, high = bracket
            scaled = w[self.by.raters] * margins
            slope = self.by.sums(jax.nn.sigmoid(-scaled) * margins) - (w - 1.0) / self.variance
            bend = self.by.sums(label_variance(scaled) * margins**2) + 1.0 / self.variance
            low, high = jnp.where(slope > 0, w, low), jnp.where(slope > 0, high, w)
            there = w + slope / bend
            return jnp.where((there >= low) & (there <= high), there, 0.5 * (low + high)), low, high

        return jax.lax.fori_loop(0, STEPS, step, (jnp.clip(trust, low, high), low, high))[0]

    def best_scale(self, trust: Float[Array, " K"], theta: Float[Array, " k"]) -> Float[Array, ""]:
        """argmin over c > 0 of Σ(cw_k − 1)² with θ/c in the ball: (θ/c, cw) predicts as (θ, w)."""
        wanted = jnp.sum(trust) / positive_or_one(jnp.sum(trust**2))
        least = jnp.linalg.norm(theta) / self.reward.radius
        return jnp.where(wanted > 0, jnp.maximum(wanted, least), 1.0)


class _State(NamedTuple):
    theta: Float[Array, " k"]
    trust: Float[Array, " K"]
    value: Float[Array, ""]
    fall: Float[Array, ""]


class _InTurn(eqx.Module):
    """θ for the trust before, then the trust for θ, then the scale of both: in turn alone they creep along it."""

    def init(self, problem: _Trust, *, key: PRNGKeyArray | None) -> _State:
        trust, start = jnp.ones_like(problem.by.answers), problem.reward.start
        value = problem.cost(trust, problem.reward.at(start)[1])
        return _State(start, trust, value, jnp.full_like(value, jnp.inf))

    def step(self, problem: _Trust, state: _State, *, key: PRNGKeyArray | None) -> _State:
        pairs = problem.reward
        rows = state.trust[problem.by.raters][:, None] * pairs.x
        theta = fit_margin_loss(eqx.tree_at(lambda p: (p.x, p.start), pairs, (rows, state.theta))).theta
        margins = pairs.labels * matmul(pairs.x, theta)
        trust = problem.best_trust(state.trust, margins)
        scale = problem.best_scale(trust, theta)
        theta, trust, margins = theta / scale, trust * scale, margins / scale
        value = problem.cost(trust, margins)
        return _State(theta, trust, value, state.value - value)

    def terminate(self, problem: _Trust, state: _State) -> Int[Array, ""]:
        return jnp.where(
            state.fall <= rounding_of(state.value), Status.CONVERGED.array(), Status.RUNNING.array()
        )


@eqx.filter_jit
def _tritrust(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    raters: Int[Array, " n"],
    n_raters: int,
    radius: Float[Array, ""],
    spread: Float[Array, ""],
) -> RaterEstimate:
    reward = margin_problem(TiltedLogistic(jnp.zeros((), x.dtype)), x, labels, radius)
    by = AnswersByRater.of(raters, n_raters, x.dtype)
    end = iterate(_InTurn(), _Trust(reward, by, spread**2), max_steps=MAX_ROUNDS)
    theta, trust = end.state.theta, end.state.trust
    # Its sign goes to θ, so that the mean is positive.
    mean = matmul(by.answers, trust) / len(labels)
    trust = trust / jnp.where(mean == 0, 1.0, mean)
    own = trust[raters]
    weights = jnp.clip(own / jnp.maximum(jnp.max(trust), 1.0), 0.0, 1.0)
    return RaterEstimate(project_ball(mean * theta, radius), weights, 1.0 - own, end.status, trust)


ENTRIES = [
    RaterEntry(
        tritrust,
        "TriTrust",
        "one factor of the margin for each rater, of any sign (arXiv:2601.18751); ε is not used",
    )
]
