"""What Algorithm 3 and the pessimistic baselines share: minimise V̂(θ) − E_ref[φ]·θ over a set of rewards, then plan."""

import dataclasses
from typing import NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from robust_rlhf_jax._iterate import Status, worst_status
from robust_rlhf_jax.checks import is_traced
from robust_rlhf_jax.kernels.ball import project_ball
from robust_rlhf_jax.kernels.chi_square import chi_square_quantile
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.likelihood.confidence import (
    MISS,
    RewardSet,
    calibrated_zeta,
    confidence_set,
    ellipsoid,
    theory_zeta,
)
from robust_rlhf_jax.mdp import Policy
from robust_rlhf_jax.moments.influence import floored_weights
from robust_rlhf_jax.oracles import Oracle
from robust_rlhf_jax.preferences import PreferenceData, as_labelled, random_split
from robust_rlhf_jax.rewards import fit_data
from robust_rlhf_jax.rewards.filter_and_trim import robust_reward
from robust_rlhf_jax.rewards.scarcity import secured

from .descent import Descent, DescentProblem, History, SubgradientDescent, descend, then, unmoved
from .pessimism_objective import GRADIENTS, PessimismObjective, Smoothing, flat_features, reference_features
from .solution import Solution

ZETAS = ("explained", "calibrated", "theory")
# If the data have holes, the honest rows near them lie as far out as false ones, and would use up the filter's budget.
# A pessimist can do without them: the filter may remove this share of the rows beyond 2ε.
DOUBT = 0.1


class DescentConfig(eqx.Module):
    """How V̂(θ) − E_ref[φ]·θ is minimised.

    `gradient`: "zero_order", "autodiff" or "oracle" (`PessimismObjective`); `smoothing`: for "zero_order"; `steps` T;
    `step_size`: η if `adaptive` is false, else the distance D that the steps are scaled to, None for half the
    radius; `decay`: whether the steps fall to 0 along a straight line; `averaging`, `keep_history`: see
    `SubgradientDescent`; `warm_start`: each oracle call begins where the last one ended.
    As printed: `adaptive=False, decay=False, averaging=0.0`.

    **Example:**

    >>> from robust_rlhf_jax.algorithms import DescentConfig
    >>> as_printed = DescentConfig(adaptive=False, decay=False, averaging=0.0, step_size=0.01)
    >>> as_printed.gradient, as_printed.steps
    ('zero_order', 100)
    """

    gradient: str = eqx.field(static=True, default="zero_order")
    smoothing: Smoothing = Smoothing()
    steps: int = eqx.field(static=True, default=100)
    step_size: float | Float[Array, ""] | None = None
    adaptive: bool = eqx.field(static=True, default=True)
    decay: bool = eqx.field(static=True, default=True)
    averaging: float | Float[Array, ""] = 8.0
    keep_history: bool = eqx.field(static=True, default=False)
    warm_start: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        if self.warm_start and self.gradient != "oracle":
            raise ValueError(f'warm_start needs gradient="oracle", not {self.gradient!r}.')
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


def check_zeta(zeta: str | float | Float[Array, ""]) -> None:
    """**Raises:** ValueError for an unknown name, or ζ < 0, which would leave out the estimate itself."""
    if isinstance(zeta, str):
        if zeta not in ZETAS:
            raise ValueError(f"zeta={zeta!r} is unknown: it is one of {', '.join(ZETAS)}, or a number.")
    elif not is_traced(zeta) and isinstance(zeta, int | float) and not zeta >= 0:
        raise ValueError(f"zeta={zeta} must not be negative: the estimate itself would lie outside the set.")


def check_radius(radius: float | Float[Array, ""] | None) -> None:
    """**Raises:** ValueError for a bound on ‖θ‖ that is not positive and finite."""
    if radius is None or is_traced(radius):
        return
    if not np.all(np.asarray(radius) > 0):
        raise ValueError(f"radius={radius} must be positive.")
    if not np.all(np.isfinite(radius)):
        raise ValueError(f"radius={radius} must be finite: leave it out for the paper's √(Hd).")


class PessimismConfig(Protocol):
    """What the configurations of Algorithms 3 and 4 have in common; see `ConditionNumberConfig`."""

    zeta: str | float | Float[Array, ""]
    descent: DescentConfig
    reuse_data: bool
    radius: float | Float[Array, ""] | None


class Phase(NamedTuple):
    """`steps` of a descent, each an oracle call of `oracle_steps` iterations (None: as many as the oracle has)."""

    steps: int
    oracle_steps: int | None = None


def robust_pessimism(
    key: PRNGKeyArray,
    data: PreferenceData,
    epsilon: Float[Array, ""],
    reference: Float[Array, "H p"] | None,
    config: PessimismConfig,
    oracle: Oracle,
    planner: Oracle | None = None,
    phases: tuple[Phase, ...] | None = None,
) -> Solution:
    """Algorithms 3 and 4 after their checks: D₁ → θ̂ and Θ(D₁); D₂ → descend with `oracle`, plan with `planner`.

    Both oracles prepare alike: `planner` solves on what `oracle` prepared, and is `oracle` itself if None. `phases`:
    None for one of `config.descent.steps`.
    """
    k_split, k_descend = jax.random.split(key)
    d1, d2 = (data,) * 2 if config.reuse_data else random_split(k_split, data, 2)
    radius = data.theta_dim**0.5 if config.radius is None else config.radius
    radius = jnp.asarray(radius, epsilon.dtype)
    explained = isinstance(config.zeta, str) and config.zeta == "explained"
    allowed, reward_status, extra = (
        _explained_rewards(d1, epsilon, radius)
        if explained
        else _likely_rewards(d1, epsilon, radius, config.zeta)
    )
    target = resolve_reference(reference, d2, epsilon)
    found = minimise_pessimistically(
        k_descend, d2, epsilon, oracle, allowed, target, config.descent, planner, phases
    )
    return pessimistic_solution(data, found, reward_status, allowed, extra)


def _explained_rewards(data: PreferenceData, epsilon: Float[Array, ""], radius: Float[Array, ""]):
    """(Θ, status, diagnostics): the rewards that no plausible explanation's pairs refute (`rewards.fit_differences`).

    {‖θ‖ ≤ radius, (θ − θ̂)ᵀF(θ − θ̂) ≤ χ²}, F the information of the undisputed pairs, 0 along directions
    that are doubted or shown by so few pairs that most of them may be lies (`rewards.scarcity.secured`).
    """
    found = fit_data(data, epsilon)
    sure = secured(as_labelled(data).believed_x, found, epsilon)
    level = chi_square_quantile(1.0 - MISS, found.rank)
    allowed = ellipsoid(sure.information, project_ball(sure.theta, radius), jnp.sqrt(level), radius)
    extra = {
        "zeta": level / (2.0 * jnp.maximum(jnp.sum(found.undisputed), 1.0)),
        "rank": found.rank,
        "removed_mass": 1.0 - jnp.mean(found.weights),
    }
    return allowed, _bounded_length(found.status), extra


def _bounded_length(status: Int[Array, ""]):
    """`separable` counts as converged here: the ball bounds the length of θ."""
    return jnp.where(status == Status.SEPARABLE, Status.CONVERGED.array(), status)


def _likely_rewards(
    data: PreferenceData,
    epsilon: Float[Array, ""],
    radius: Float[Array, ""],
    zeta: str | float | Float[Array, ""],
):
    """(Θ(D₁), status, diagnostics) as printed: the likelihood ratio to θ̂ on what filter and trimming leave."""
    x = data.differences()
    reward = robust_reward(x, x, data.labels, epsilon, radius=radius, doubt=DOUBT)
    # Only the rows that the filter and the trimming left say where θ may lie, since θ̂ is the maximum over these.
    weights = floored_weights(x, reward.fit.weights, epsilon)
    zeta = _zeta(zeta, epsilon, reward.rank, jnp.sum(weights), data)
    allowed = confidence_set(x, data.labels, reward.fit.theta, zeta, radius=radius, weights=weights)
    extra = {"zeta": zeta, "rank": reward.rank, "removed_mass": 1.0 - jnp.mean(reward.survivors)}
    return allowed, _bounded_length(reward.status), extra


def _zeta(
    zeta: str | float | Float[Array, ""],
    epsilon: Float[Array, ""],
    rank: Int[Array, ""],
    n_pairs: Float[Array, ""],
    data: PreferenceData,
):
    if isinstance(zeta, str) and zeta == "theory":
        return theory_zeta(epsilon, data.horizon, data.reward_dim, n_pairs)
    if isinstance(zeta, str):
        return calibrated_zeta(epsilon, rank, n_pairs)
    return jnp.asarray(zeta, epsilon.dtype)


class Pessimum(NamedTuple):
    """`descent`; the planner's `policy`, `value` and status at its average θ [k]; the `objective` there."""

    descent: Descent
    policy: Policy
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
    planner: Oracle | None = None,
    phases: tuple[Phase, ...] | None = None,
) -> Pessimum:
    """Descend from the set's centre with `oracle` prepared on `data`; plan at the average iterate with `planner`."""
    k_prepare, k_descend = jax.random.split(key)
    prepared = oracle.prepare(data, epsilon, key=k_prepare)
    objective = PessimismObjective(
        oracle,
        prepared,
        reference,
        config.smoothing,
        data.plan_steps,
        data.stationary,
        config.gradient,
        config.warm_start,
    )
    found = _descend(objective, allowed, config, k_descend, phases or (Phase(config.steps),))
    planner = oracle if planner is None else planner
    answer = planner.solve(prepared, data.per_step(found.theta))
    value = answer.value - matmul(reference, found.theta)
    return Pessimum(found, answer.policy, answer.value, value, answer.status)


def _descend(
    objective: PessimismObjective,
    allowed: RewardSet,
    config: DescentConfig,
    key: PRNGKeyArray,
    phases: tuple[Phase, ...],
) -> Descent:
    """One phase after the other, each from where the one before ended on average, in one program for all."""
    dtype = allowed.centre.dtype
    distance = jnp.asarray(0.5 * allowed.radius if config.step_size is None else config.step_size, dtype)
    longest = max(phase.steps for phase in phases)
    solver = SubgradientDescent(config.adaptive, config.averaging, longest if config.keep_history else 0)

    def run(so_far: Descent, each):
        key, (steps, oracle_steps) = each
        fade = steps.astype(dtype) if config.decay else float("inf")
        asked = dataclasses.replace(objective, oracle_steps=oracle_steps)
        problem = DescentProblem(asked, allowed, so_far.theta, distance, fade)
        found = descend(problem, key=key, steps=steps, solver=solver)
        return then(so_far, found), found.history

    keys = jnp.stack([key, *(jax.random.fold_in(key, i) for i in range(1, len(phases)))])
    stacked = jax.tree.map(lambda *numbers: jnp.asarray(numbers, jnp.int32), *phases)
    found, histories = jax.lax.scan(run, unmoved(allowed.centre), (keys, stacked))
    return found._replace(history=_joined(histories, phases))


def _joined(histories: History | None, phases: tuple[Phase, ...]) -> History | None:
    """The rows of every phase's steps, in order: `histories` has one block a phase, each as long as the longest."""
    return jax.tree.map(
        lambda blocks: jnp.concatenate([block[: p.steps] for block, p in zip(blocks, phases, strict=True)]),
        histories,
    )


def pessimistic_solution(
    data: PreferenceData,
    found: Pessimum,
    reward_status: Int[Array, ""],
    allowed: RewardSet,
    extra: dict[str, Array],
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
