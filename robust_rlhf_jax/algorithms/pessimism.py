"""What Algorithm 3 and the pessimistic baselines share: minimise V̂(θ) − E_ref[φ]·θ over a set of rewards, then plan."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from robust_rlhf_jax.checks import is_traced
from robust_rlhf_jax.estimators.confidence_set import RewardSet
from robust_rlhf_jax.iterate import worst_status
from robust_rlhf_jax.oracles import Oracle
from robust_rlhf_jax.preferences import PreferenceData

from .descent import Descent, DescentProblem, SubgradientDescent, descend
from .objectives import GRADIENTS, PessimismObjective, Smoothing, flat_features, reference_features
from .solution import Solution


class DescentConfig(eqx.Module):
    """How V̂(θ) − E_ref[φ]·θ is minimised.

    `gradient`: "zero_order", "autodiff" or "oracle" (`PessimismObjective`); `smoothing`: for "zero_order"; `steps` T;
    `step_size`: η if `adaptive` is false, else the distance D that the steps are scaled to, None for half the
    radius; `decay`: whether the steps fall to 0 along a straight line; `averaging`, `keep_history`: see
    `SubgradientDescent`. As printed: `adaptive=False, decay=False, averaging=0.0`.
    """

    gradient: str = eqx.field(static=True, default="zero_order")
    smoothing: Smoothing = Smoothing()
    steps: int = eqx.field(static=True, default=100)
    step_size: float | Float[Array, ""] | None = None
    adaptive: bool = eqx.field(static=True, default=True)
    decay: bool = eqx.field(static=True, default=True)
    averaging: float | Float[Array, ""] = 8.0
    keep_history: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        if self.gradient not in GRADIENTS:
            raise ValueError(f"gradient={self.gradient!r} is unknown: it is one of {', '.join(GRADIENTS)}.")
        if self.steps < 1:
            raise ValueError(f"steps={self.steps}: give 1 or more.")
        if self.step_size is None and not self.adaptive:
            raise ValueError("step_size=None: a constant step needs its size (`theory_parameters` has one).")
        if isinstance(self.step_size, int | float) and not self.step_size > 0:
            raise ValueError(f"step_size={self.step_size} must be positive.")
        if isinstance(self.averaging, int | float) and not self.averaging >= 0:
            raise ValueError(f"averaging={self.averaging} must not be negative: 0 is the uniform average.")


class Pessimum(NamedTuple):
    """`descent`, the oracle's `answer` at its average θ [k], its `objective`, and the status of the preparation."""

    descent: Descent
    policy: Float[Array, "H S A"]
    value: Float[Array, ""]
    objective: Float[Array, ""]
    oracle_status: Int[Array, ""]


def minimise_pessimistically(
    key: PRNGKeyArray,
    data: PreferenceData,
    epsilon: Float[Array, ""],
    oracle: Oracle,
    allowed: RewardSet,
    reference: Float[Array, " k"],
    config: DescentConfig,
) -> Pessimum:
    """Descend from the set's centre with `oracle` prepared on `data`, and plan at the average iterate."""
    k_prepare, k_descend = jax.random.split(key)
    prepared = oracle.prepare(data, epsilon, key=k_prepare)
    objective = PessimismObjective(
        oracle, prepared, reference, config.smoothing, data.horizon, data.stationary, config.gradient
    )
    dtype = allowed.centre.dtype
    distance = 0.5 * allowed.radius if config.step_size is None else config.step_size
    fade = float(config.steps) if config.decay else float("inf")
    problem = DescentProblem(objective, allowed, allowed.centre, jnp.asarray(distance, dtype), fade)
    history = config.steps if config.keep_history else 0
    solver = SubgradientDescent(config.adaptive, config.averaging, history)
    found = descend(problem, key=k_descend, steps=config.steps, solver=solver)
    answer = objective.solve(found.theta)
    value = answer.value - jnp.dot(reference, found.theta)
    return Pessimum(found, answer.policy, answer.value, value, answer.status)


def pessimistic_solution(
    data: PreferenceData, found: Pessimum, reward_status, allowed: RewardSet, extra: dict[str, Array]
) -> Solution:
    """A `Solution` with the diagnostics that all pessimistic algorithms have."""
    descent = found.descent
    diagnostics = {
        "objective": found.objective,
        "best_objective": descent.best_value,
        "oracle_calls": descent.calls + 1,
        "projection_solves": descent.solves,
        "theta_estimate": data.per_step(allowed.centre),
        "reward_status": reward_status,
        "descent_status": descent.status,
        "oracle_status": found.oracle_status,
        **extra,
    }
    if descent.history is not None:
        history = descent.history._asdict()
        diagnostics |= {f"history_{name}": rows for name, rows in history.items()}
    status = worst_status(reward_status, descent.status, found.oracle_status)
    return Solution(found.policy, data.per_step(descent.theta), found.value, status, diagnostics)


def resolve_reference(
    reference: Float[Array, "H p"] | None, data: PreferenceData, epsilon: Float[Array, ""]
) -> Float[Array, " k"]:
    """E_ref[φ(τ)] as given, or its robust mean from the data."""
    if reference is None:
        return reference_features(data, epsilon)
    return flat_features(jnp.asarray(reference, data.features.dtype), data.stationary)


def check_reference(reference: Float[Array, "H p"] | None, data: PreferenceData) -> None:
    """**Raises:** ValueError for an empty, misshapen or non-finite reference."""
    if reference is None:
        return
    shape, wanted = jnp.shape(reference), (data.horizon, data.reward_dim)
    if shape != wanted:
        raise ValueError(
            f"reference has shape {shape}: give E_ref[φ] of shape {wanted}, as expected_features returns it."
        )
    if not is_traced(reference) and not bool(jnp.all(jnp.isfinite(jnp.asarray(reference)))):
        raise ValueError("reference holds NaN or infinite entries: give finite feature expectations.")
