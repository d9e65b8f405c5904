"""V̂(θ) − E_ref[φ]·θ and its subgradients: by Gaussian smoothing, by differentiation, or the oracle's own."""

from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.kernels.smoothing import DIRECTIONS, smoothed_gradient
from robust_rlhf_jax.moments import robust_mean
from robust_rlhf_jax.oracles import Oracle, WarmOracle
from robust_rlhf_jax.preferences import PreferenceData

from .descent import Evaluation

GRADIENTS = ("zero_order", "autodiff", "oracle")


class Smoothing(eqx.Module):
    """How Algorithm 6 samples: K `n_directions` of a kind, with `std` μ, in pairs ±u if `antithetic`, f evaluated
    `chunk` times at once.

    **Example:**

    >>> from robust_rlhf_jax.algorithms import DescentConfig, Smoothing
    >>> DescentConfig(smoothing=Smoothing(n_directions=8, directions="normal", antithetic=True)).smoothing.std
    0.05
    """

    n_directions: int = eqx.field(static=True, default=32)
    std: float | Float[Array, ""] = 0.05
    directions: Literal["normal", "truncated", "orthogonal"] = eqx.field(static=True, default="orthogonal")
    antithetic: bool = eqx.field(static=True, default=False)
    chunk: int = eqx.field(static=True, default=16)

    def __check_init__(self):
        if self.n_directions < 1 + self.antithetic or (self.antithetic and self.n_directions % 2):
            raise ValueError(
                f"n_directions={self.n_directions}: give 1 or more, and an even number if antithetic."
            )
        if self.directions not in DIRECTIONS:
            raise ValueError(
                f"directions={self.directions!r} is unknown: it is one of {', '.join(DIRECTIONS)}."
            )
        if isinstance(self.std, int | float) and not self.std > 0:
            raise ValueError(f"std={self.std}: the smoothing μ must be positive.")
        if self.chunk < 1:
            raise ValueError(f"chunk={self.chunk}: give 1 or more.")


class PessimismObjective(eqx.Module):
    """F(θ) = V̂(θ) − E_ref[φ(τ)]·θ on flat θ; convex where the oracle is exact.

    `oracle`, `prepared`: RobRL and what it made of its data; `reference` [k]: E_ref[φ(τ)]. `gradient`: "zero_order"
    (paper: Algorithm 6), "autodiff" (the derivative of V̂ with robust weights held fixed, by Danskin's theorem an
    estimate of E_π̂[φ]; ours) or "oracle" (the oracle's own subgradient; paper: Algorithm 4). `warm`: let an oracle
    that has `solve_from` begin where its last answer ended, in `oracle_steps` iterations (None: as many as it has).
    """

    oracle: Oracle
    prepared: Any
    reference: Float[Array, " k"]
    smoothing: Smoothing
    horizon: int = eqx.field(static=True)
    stationary: bool = eqx.field(static=True)
    gradient: str = eqx.field(static=True)
    warm: bool = eqx.field(static=True, default=False)
    oracle_steps: Int[Array, ""] | None = None

    @property
    def memory(self):
        return require_warm(self.oracle).start(self.prepared) if self.warm else None

    @property
    def calls(self) -> int:
        """Oracle calls of one evaluation; a derivative counts as one."""
        if self.gradient != "zero_order":
            return 1
        return self.smoothing.n_directions + (0 if self.smoothing.antithetic else 1)

    def solve(self, theta: Float[Array, " k"]):
        """The oracle's answer at a flat θ."""
        return self.oracle.solve(self.prepared, _per_step(theta, self.horizon, self.stationary))

    def evaluate(self, theta: Float[Array, " k"], memory: Any, *, key: PRNGKeyArray) -> Evaluation:
        if self.gradient == "oracle":
            value, slope, status, memory = self._given(theta, memory)
        else:
            estimate = self._smoothed if self.gradient == "zero_order" else self._differentiated
            value, slope, status = estimate(theta, key)
        return Evaluation(value - matmul(self.reference, theta), slope - self.reference, status, memory)

    def _smoothed(self, theta: Float[Array, " k"], key: PRNGKeyArray):
        s = self.smoothing
        std = jnp.asarray(s.std, theta.dtype)
        found = smoothed_gradient(
            lambda t: self.solve(t).value, theta, key,
            smoothing_std=std, n_directions=s.n_directions, directions=s.directions,
            antithetic=s.antithetic, chunk=s.chunk,
        )  # fmt: skip
        fine = jnp.isfinite(found.value) & jnp.all(jnp.isfinite(found.gradient))
        status = jnp.where(fine, Status.CONVERGED.array(), Status.NONFINITE.array())
        return found.value, found.gradient, status

    def _differentiated(self, theta: Float[Array, " k"], key: PRNGKeyArray):
        def value(t):
            answer = self.solve(t)
            return answer.value, answer.status

        (found, status), slope = jax.value_and_grad(value, has_aux=True)(theta)
        return found, slope, status

    def _given(self, theta: Float[Array, " k"], memory):
        if self.warm:
            per_step = _per_step(theta, self.horizon, self.stationary)
            warm = require_warm(self.oracle)
            answer, memory = warm.solve_from(self.prepared, per_step, memory, self.oracle_steps)
        else:
            answer = self.solve(theta)
        if answer.subgradient is None:
            raise ValueError(
                f'{type(self.oracle).__name__} gives no subgradient: take gradient="autodiff" or "zero_order".'
            )
        return answer.value, flat_features(answer.subgradient, self.stationary), answer.status, memory


def require_warm(oracle: Oracle) -> WarmOracle:
    """**Raises:** ValueError for an oracle that cannot go on from another θ's answer."""
    if not isinstance(oracle, WarmOracle):
        raise ValueError(f"{type(oracle).__name__} cannot start warm: take DescentConfig(warm_start=False).")
    return oracle


def _per_step(theta: Float[Array, " k"], horizon: int, stationary: bool):
    if stationary:
        return jnp.broadcast_to(theta, (horizon, len(theta)))
    return theta.reshape(horizon, -1)


def flat_features(features: Float[Array, "H p"], stationary: bool) -> Float[Array, " k"]:
    """φ(τ) as a vector that θ multiplies: summed over steps where θ is shared."""
    return jnp.sum(features, axis=0) if stationary else features.reshape(-1)


def reference_features(data: PreferenceData, epsilon: Float[Array, ""]) -> Float[Array, " k"]:
    """E_ref[φ(τ)], the reference being what made the data: the robust mean of both trajectories of a pair.

    Of pooled data the mean step, times the steps of a plan.
    """
    both = jnp.mean(data.observed_reward_features, axis=1)
    rows = jnp.sum(both, axis=1) if data.stationary else both.reshape(len(both), -1)
    mean = robust_mean(rows, epsilon)
    return mean * (data.plan_steps / data.horizon) if data.pooled else mean
