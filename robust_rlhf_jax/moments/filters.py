"""The filter that all robust moments share: score the rows, remove the highest scores, again.

`kernels/removal.py` (`remove_softly`) decides a step's weights; `influence.py` what removed rows still count.
"""

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from robust_rlhf_jax._iterate import Iteration, Status, iterate
from robust_rlhf_jax.checks import check_epsilon
from robust_rlhf_jax.kernels.removal import remove_softly
from robust_rlhf_jax.kernels.running_moments import RunningMoments, no_moments, updates_pay

# A step removes the rows above the score that a 2·CHOP-th of the budget exceeds.
CHOP = 8
MAX_STEPS = 64
# Budget spent and still this many times the clean variance: rows do not look like ε-corrupt clean data.
EXCESS = 3.0


class FilterProblem(eqx.Module):
    """What a filter sees: rows, the tolerated fraction, the variance at which it may stop.

    `budget`: the mass that it may remove. 2εn leaves at worst as much clean mass removed as corrupt. `start` [n]:
    weights that an earlier filter left, None for 1; what is missing from them counts towards the budget. `whitener`
    [d, d] of the mean filter: the rows that count are x times it; None where x is whitened or need not be. `mass`: the
    number n of the rows, None for all; where fewer count, `start` is 0 for the others.
    """

    x: Float[Array, "n d"]
    epsilon: Float[Array, ""]
    level: Float[Array, ""]
    budget: Float[Array, ""]
    start: Float[Array, " n"] | None = None
    whitener: Float[Array, "d d"] | None = None
    mass: Float[Array, ""] | None = None

    @property
    def n(self) -> int | Float[Array, ""]:
        return len(self.x) if self.mass is None else self.mass


class FilterState(eqx.Module):
    """Weights in [0, 1], the scores under them, and the top eigenvalue that the scores come from.

    `moments` under the weights, where the next step takes them up.
    """

    weights: Float[Array, " n"]
    scores: Float[Array, " n"]
    top: Float[Array, ""]
    moments: RunningMoments | None = None


def _remove(problem: FilterProblem, state: FilterState) -> Float[Array, " n"]:
    n = problem.n
    left = problem.budget - (n - jnp.sum(state.weights))
    corrupt = problem.epsilon * n
    return remove_softly(state.weights, state.scores, corrupt, problem.budget / (2 * CHOP), left)


def _filter_status(problem: FilterProblem, state: FilterState) -> Int[Array, ""]:
    n = problem.n
    clean = state.top <= problem.level
    # Rounding of a sum of n weights; without it the last sliver of the budget costs a step of its own.
    spent = n - jnp.sum(state.weights) >= problem.budget - 1e-3 * problem.epsilon * n
    # A level of 0 means that none is known: spending the budget is then how a filter ends.
    excessive = (problem.level > 0) & (problem.epsilon > 0) & (state.top > EXCESS * problem.level)
    ending = jnp.where(excessive, Status.FILTER_REMOVED_TOO_MUCH.array(), Status.CONVERGED.array())
    return jnp.where(clean | spent, ending, Status.RUNNING.array())


class Filter(eqx.Module):
    """Score the rows, remove the highest scores, again: a filter of either degree differs in its scores alone.

    The first step removes nothing and scores: one program for it and the others.
    """

    follows_moments: ClassVar[bool]

    @abc.abstractmethod
    def look(self, problem: FilterProblem, weights: Float[Array, " n"], last: FilterState) -> FilterState:
        """The state of `weights`, scored; `last`: the state before."""

    @abc.abstractmethod
    def extract(self, problem: FilterProblem, state: FilterState): ...

    def init(self, problem: FilterProblem, *, key: PRNGKeyArray | None) -> FilterState:
        x = problem.x
        weights = jnp.ones(len(x), x.dtype) if problem.start is None else problem.start
        moments = no_moments(x) if self.follows_moments and updates_pay(x.shape) else None
        return FilterState(weights, jnp.zeros_like(weights), jnp.asarray(jnp.inf, x.dtype), moments)

    def run(self, problem: FilterProblem, max_steps: int) -> Iteration:
        """The filter's end after at most `max_steps` removals, which `Iteration.step` counts."""
        end = iterate(self, problem, max_steps=max_steps + 1)
        return eqx.tree_at(lambda e: e.step, end, jnp.maximum(end.step - 1, 0))

    def step(self, problem: FilterProblem, state: FilterState, *, key: PRNGKeyArray | None) -> FilterState:
        return self.look(problem, _remove(problem, state), state)

    def terminate(self, problem: FilterProblem, state: FilterState) -> Int[Array, ""]:
        scored = jnp.isfinite(state.top)
        return jnp.where(scored, _filter_status(problem, state), Status.RUNNING.array())


def check_rows(x: Array, epsilon: float | Float[Array, ""], name: str):
    if x.ndim != 2 or len(x) < 1 or x.shape[1] < 1:
        raise ValueError(f"{name} takes x of shape [n, d] with n, d ≥ 1; got {x.shape}.")
    if not jnp.issubdtype(x.dtype, jnp.floating):
        raise ValueError(f"{name} takes floating-point x; got {x.dtype}: convert it with x.astype(float).")
    check_epsilon(epsilon)


def spectral_edge(dimensions: Float[Array, ""], n: int | Float[Array, ""], dtype: Any) -> Float[Array, ""]:
    """(1 + √(D/n))²: the largest eigenvalue of the sample covariance of n clean rows of unit covariance in R^D.

    Marchenko & Pastur 1967; Bai & Yin 1993.
    """
    return (1.0 + jnp.sqrt(jnp.asarray(dimensions, dtype) / n)) ** 2


def budget(
    epsilon: Float[Array, ""], doubt: float | Float[Array, ""], n: int | Float[Array, ""]
) -> Float[Array, ""]:
    """(2ε + doubt)·n, and nothing at ε = 0."""
    return jnp.where(epsilon > 0, 2.0 * epsilon + doubt, 0.0) * n
