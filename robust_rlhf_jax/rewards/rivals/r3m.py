"""Sparse offsets of single labels: R³M of Bukharin et al. 2024, *Robust RL from Corrupted Human Feedback*."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from robust_rlhf_jax._iterate import Status, iterate, worst_status
from robust_rlhf_jax.checks import check_labels
from robust_rlhf_jax.kernels.quantile import upper_threshold
from robust_rlhf_jax.likelihood.margin_fit import MarginFit, MarginProblem, fit_margin_loss, margin_problem
from robust_rlhf_jax.likelihood.margin_losses import ClippedLogistic
from robust_rlhf_jax.rewards.protocol import Entry, RewardEstimate, surprise

MAX_ROUNDS = 50
# Pairs that may have an offset, in multiples of εn: as many as a filter may remove. Measured on random MDPs at ε = .1,
# mean gap with 1, 2, 4: planted pairs .645, .616, .589; confident flips of nearly certain labels .0038, .0021, .0037.
CLIPPED = 2.0
# Change of the clipping margin that ends the rounds: λ is a tuning parameter, the fit at each λ is exact.
SETTLED = 1e-3


class OffsetState(eqx.Module):
    """The fit at the clipping margin `lowest` = c, and by how much c last moved."""

    fit: MarginFit
    lowest: Float[Array, ""]
    moved: Float[Array, ""]


class OffsetRounds(eqx.Module):
    """Fit at λ, then set λ to the slope that the `share` of worst-fitted pairs exceed; again until it settles."""

    share: Float[Array, ""]

    def init(self, problem: MarginProblem, *, key: PRNGKeyArray | None) -> OffsetState:
        infinity = jnp.asarray(jnp.inf, problem.x.dtype)
        return OffsetState(_fit(problem, -infinity, problem.start), -infinity, infinity)

    def step(self, problem: MarginProblem, state: OffsetState, *, key: PRNGKeyArray | None) -> OffsetState:
        mass = self.share * jnp.sum(problem.weights)
        # No pair is to be clipped at ε = 0, not even the worst.
        lowest = jnp.where(mass > 0, -upper_threshold(-state.fit.margins, problem.weights, mass), -jnp.inf)
        moved = jnp.where(lowest == state.lowest, 0.0, jnp.abs(lowest - state.lowest))
        return OffsetState(_fit(problem, lowest, state.fit.theta), lowest, moved)

    def terminate(self, problem: MarginProblem, state: OffsetState) -> Int[Array, ""]:
        # Before the first round c is −∞, and no move is small beside that.
        settled = (state.moved < jnp.inf) & (state.moved <= SETTLED * (1.0 + jnp.abs(state.lowest)))
        return jnp.where(settled, Status.CONVERGED.array(), Status.RUNNING.array())

    def extract(self, problem: MarginProblem, state: OffsetState) -> Float[Array, " k"]:
        return state.fit.theta


def _fit(problem: MarginProblem, lowest: Float[Array, ""], start: Float[Array, " k"]) -> MarginFit:
    there = eqx.tree_at(lambda p: (p.loss, p.start), problem, (ClippedLogistic(lowest), start))
    return fit_margin_loss(there)


def r3m(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: Float[Array, ""],
    *,
    radius: float | Float[Array, ""],
) -> RewardEstimate:
    """min over θ in the ball and δ of Σ_n log(1 + exp(−(o_nθᵀx_n + δ_n))) + λ|δ_n| (Bukharin et al. 2024).

    δ_n in closed form leaves a convex loss whose slope is clipped at λ (`ClippedLogistic`). λ, which the paper tunes
    by hand, is here set so that δ_n > 0 for the 2εn worst-fitted pairs (`CLIPPED`): fit, reset λ, fit again until it
    settles. ε = 0 is maximum likelihood. `weights`: slope over the likelihood's slope. Suspicion: δ_n plus the label's
    surprise, which is the order of δ_n with its ties broken.
    """
    check_labels(labels)
    return _r3m(x, labels.astype(x.dtype), jnp.asarray(epsilon, x.dtype), jnp.asarray(radius, x.dtype))


@eqx.filter_jit
def _r3m(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: Float[Array, ""],
    radius: Float[Array, ""],
) -> RewardEstimate:
    plain = ClippedLogistic(jnp.asarray(-jnp.inf, x.dtype))
    problem = margin_problem(plain, x, labels, radius)
    end = iterate(OffsetRounds(CLIPPED * epsilon), problem, max_steps=MAX_ROUNDS)
    fit, loss = end.state.fit, ClippedLogistic(end.state.lowest)
    suspicion = loss.offset(fit.margins) + surprise(fit.theta, x, labels)
    return RewardEstimate(
        fit.theta, loss.weight(fit.margins), suspicion, worst_status(end.status, fit.status)
    )


ENTRIES = [Entry(r3m, "R³M", "#e377a8", "sparse offsets of single labels (Bukharin et al. 2024)")]
