"""Projected subgradient descent with a biased oracle (paper: Algorithm 5)."""

from typing import Any, NamedTuple, Protocol

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from robust_rlhf_jax._iterate import Status, iterate, worst_status
from robust_rlhf_jax.checks import is_traced
from robust_rlhf_jax.kernels.divisors import positive_or_one
from robust_rlhf_jax.likelihood.confidence import RewardSet
from robust_rlhf_jax.likelihood.projection import WarmStart
from robust_rlhf_jax.module import Module


class Evaluation(NamedTuple):
    """`value` of the objective at θ, a `gradient` [k] (biased and noisy, perhaps), the oracle's `status`, and the
    `memory` that its next evaluation may start from.
    """

    value: Float[Array, ""]
    gradient: Float[Array, " k"]
    status: Int[Array, ""]
    memory: Any = None


class Objective(Protocol):
    """What is minimised: a pytree that carries its own data. `calls`: oracle calls of one evaluation; `memory`: what
    the first evaluation starts from, a pytree or None.
    """

    @property
    def calls(self) -> int: ...

    @property
    def memory(self) -> Any: ...

    def evaluate(self, theta: Float[Array, " k"], memory: Any, *, key: PRNGKeyArray) -> Evaluation: ...


class DescentProblem(eqx.Module):
    """min of `objective` over `allowed`, from `start` [k].

    `step_size`: η; with `SubgradientDescent(adaptive=True)` the distance that the steps are scaled to. `fade`: the
    number of steps over which η falls to 0 along a straight line, ∞ for never.
    """

    objective: Objective
    allowed: RewardSet
    start: Float[Array, " k"]
    step_size: Float[Array, ""]
    fade: Float[Array, ""] | float = float("inf")


class History(NamedTuple):
    """One row per step made, ∞ where none was. `value` [T] at θ_t, `gradient_norm` [T], `theta` [T, k]."""

    value: Float[Array, " T"]
    gradient_norm: Float[Array, " T"]
    theta: Float[Array, "T k"]


class DescentState(eqx.Module):
    """θ_t, the averages and the best iterate so far, and what the steps have cost.

    `average` [k]: Σ w_iθ_i/Σ w_i; `squares`: Σ‖g_i‖²; `solves`: quadratic programs of the projections; `calls`: oracle
    calls; `oracle_status` of the last call; `projection_status`: the most serious so far; `memory`: what the next
    evaluation starts from.
    """

    theta: Float[Array, " k"]
    average: Float[Array, " k"]
    best_theta: Float[Array, " k"]
    best_value: Float[Array, ""]
    squares: Float[Array, ""]
    multiplier: Float[Array, ""]
    step: Int[Array, ""]
    calls: Int[Array, ""]
    solves: Int[Array, ""]
    oracle_status: Int[Array, ""]
    projection_status: Int[Array, ""]
    memory: Any
    history: History | None


class SubgradientDescent(Module):
    """θ_{t+1} = Proj(θ_t − η_t g_t); the answer is the average iterate.

    `adaptive`: η_t = D/√(Σ_{i≤t}‖g_i‖²) (Streeter & McMahan 2010), D the problem's `step_size`, so that no bound on the
    gradients is needed; else η_t = η as printed. Either is multiplied by 1 − t/`fade`, since the last iterates are
    then as good as their average (Defazio, Cutkosky, Mehta & Mishchenko 2023). `averaging` p: iterate t counts about tᵖ
    times (Shamir & Zhang 2013), so that the way from the start is forgotten; 0 is the uniform average as printed.
    `history_length` > 0 keeps that many steps.

    **Example:**

    >>> from robust_rlhf_jax.algorithms import SubgradientDescent
    >>> as_printed = SubgradientDescent(adaptive=False, averaging=0.0, history_length=50)  # `solver` of `descend`
    >>> as_printed.adaptive, as_printed.history_length
    (False, 50)
    """

    adaptive: bool = eqx.field(static=True, default=True)
    averaging: float | Float[Array, ""] = 8.0
    history_length: int = eqx.field(static=True, default=0)

    def init(self, problem: DescentProblem, *, key: PRNGKeyArray | None) -> DescentState:
        first = problem.allowed.project(problem.start)
        zero, none = jnp.zeros((), first.theta.dtype), jnp.zeros((), jnp.int32)
        return DescentState(
            theta=first.theta,
            average=first.theta,
            best_theta=first.theta,
            best_value=jnp.asarray(jnp.inf, first.theta.dtype),
            squares=zero,
            multiplier=first.multiplier,
            step=none,
            calls=none,
            solves=none,
            oracle_status=Status.CONVERGED.array(),
            projection_status=first.status,
            memory=problem.objective.memory,
            history=self._empty_history(first.theta),
        )

    def step(self, problem: DescentProblem, state: DescentState, *, key: Any) -> DescentState:
        found = problem.objective.evaluate(state.theta, state.memory, key=key)
        squares = state.squares + jnp.sum(found.gradient**2)
        scale = jnp.sqrt(positive_or_one(squares))
        rate = problem.step_size / scale if self.adaptive else problem.step_size
        rate = rate * jnp.maximum(1.0 - state.step / problem.fade, 0.0)
        warm = WarmStart(state.theta, state.multiplier)
        new = problem.allowed.project(state.theta - rate * found.gradient, warm)
        count = state.step + 1
        share = (self.averaging + 1.0) / (count + self.averaging)
        better = found.value < state.best_value
        return DescentState(
            theta=new.theta,
            average=state.average + share * (new.theta - state.average),
            best_theta=jnp.where(better, state.theta, state.best_theta),
            best_value=jnp.where(better, found.value, state.best_value),
            squares=squares,
            multiplier=new.multiplier,
            step=count,
            calls=state.calls + problem.objective.calls,
            solves=state.solves + new.solves,
            oracle_status=found.status,
            projection_status=worst_status(state.projection_status, new.status),
            memory=found.memory,
            history=self._record(state, found),
        )

    def terminate(self, problem: DescentProblem, state: DescentState) -> Int[Array, ""]:
        """Only a status that later steps cannot mend ends the descent early."""
        lost = state.oracle_status == Status.NONFINITE
        empty = (state.projection_status == Status.NONFINITE) | (state.projection_status == Status.INFEASIBLE)
        status = worst_status(state.oracle_status, state.projection_status)
        return jnp.where(lost | empty, status, Status.RUNNING.array())

    def extract(self, problem: DescentProblem, state: DescentState) -> Float[Array, " k"]:
        return state.average

    def _empty_history(self, theta: Float[Array, " k"]) -> History | None:
        if not self.history_length:
            return None
        nothing = jnp.full((self.history_length, len(theta)), jnp.inf, theta.dtype)
        return History(nothing[:, 0], nothing[:, 0], nothing)

    def _record(self, state: DescentState, found: Evaluation) -> History | None:
        if state.history is None:
            return None
        row = (found.value, jnp.linalg.norm(found.gradient), state.theta)
        return History(*(h.at[state.step].set(x) for h, x in zip(state.history, row, strict=True)))


class Descent(NamedTuple):
    """`theta` [k]: the average iterate; the rest as in `DescentState`; `status` of the whole, converged if all
    steps were made.
    """

    theta: Float[Array, " k"]
    best_theta: Float[Array, " k"]
    best_value: Float[Array, ""]
    steps: Int[Array, ""]
    calls: Int[Array, ""]
    solves: Int[Array, ""]
    status: Int[Array, ""]
    history: History | None


def descend(
    problem: DescentProblem, *, key: PRNGKeyArray, steps: int | Int[Array, ""], solver=None
) -> Descent:
    """Run `solver` (default `SubgradientDescent()`) for `steps` steps, which may be traced.

    **Raises:** ValueError for `steps` < 1.

    **Example:**

    >>> import equinox as eqx, jax, jax.numpy as jnp
    >>> from robust_rlhf_jax import Status, algorithms, likelihood
    >>> from robust_rlhf_jax.algorithms.descent import DescentProblem, Evaluation
    >>> class Distance(eqx.Module):
    ...     calls: int = 1
    ...     memory: None = None
    ...     def evaluate(self, theta, memory, *, key):
    ...         return Evaluation(jnp.sum((theta - 2.0) ** 2), 2.0 * (theta - 2.0), Status.CONVERGED.array())
    >>> ball = likelihood.ellipsoid(jnp.eye(2), jnp.zeros(2), 1.0, jnp.asarray(1.0))
    >>> problem = DescentProblem(Distance(), ball, start=jnp.zeros(2), step_size=jnp.asarray(1.0))
    >>> [round(float(v), 2) for v in algorithms.descend(problem, key=jax.random.key(0), steps=50).theta]
    [0.71, 0.71]
    """
    if not is_traced(steps) and steps < 1:
        raise ValueError(f"steps={steps}: give 1 or more.")
    solver = SubgradientDescent() if solver is None else solver
    end = iterate(solver, problem, key=key, max_steps=steps)
    state = end.state
    ran_out = jnp.where(end.status == Status.MAX_STEPS, Status.CONVERGED.array(), end.status)
    status = worst_status(ran_out, state.oracle_status, state.projection_status)
    return Descent(
        solver.extract(problem, state), state.best_theta, state.best_value, end.step, state.calls, state.solves,
        status, state.history,
    )  # fmt: skip


def unmoved(theta: Float[Array, " k"]) -> Descent:
    """The descent of no steps, from `theta`."""
    none = jnp.zeros((), jnp.int32)
    return Descent(
        theta, theta, jnp.full((), jnp.inf, theta.dtype), none, none, none, Status.CONVERGED.array(), None
    )


def then(first: Descent, second: Descent) -> Descent:
    """Two descents as one, `second` begun where `first` ended: its answer and status, the costs of both, no history."""
    better = first.best_value < second.best_value
    lost = first.status == Status.NONFINITE
    return Descent(
        theta=second.theta,
        best_theta=jnp.where(better, first.best_theta, second.best_theta),
        best_value=jnp.minimum(first.best_value, second.best_value),
        steps=first.steps + second.steps,
        calls=first.calls + second.calls,
        solves=first.solves + second.solves,
        status=jnp.where(lost, first.status, second.status),
        history=None,
    )


class TheoryParameters(NamedTuple):
    """K directions, T steps, smoothing μ and step η, as the theorem asks for; floats: they exceed any budget.

    **Example:**

    >>> from robust_rlhf_jax.algorithms import theory_parameters
    >>> found = theory_parameters(accuracy=0.1, horizon=5, dim=6)
    >>> found._fields, round(found.smoothing_std, 2)
    (('n_directions', 'steps', 'smoothing_std', 'step_size'), 1.98)
    """

    n_directions: float
    steps: float
    smoothing_std: float
    step_size: float


def theory_parameters(accuracy: float, horizon: int, dim: int, miss: float = 0.1) -> TheoryParameters:
    """K, T, μ, η for an oracle with |V̂ − V★| ≤ `accuracy` (paper: Theorem D.1, corrected).

    With k = Hd, D = √k, L = √H, |u| ≤ r = 4√k on [−4, 4]^k, the error of the average iterate is at most
    2D·2εr/μ + μL√k (oracle and smoothing) + 2D·G√(8 ln(2T/δ)/K) (sampling) + 2DG/√T (descent), where every sample is at
    most G = Lr² + 2εr/μ long. μ balances the first two; T and K make the others as large as they are; η = 2D/(G√T).
    The printed proof drops the factor 2D on the gradient's error, divides Σ‖g‖² by T twice, and takes √(8d) for the
    length of u (docs/errata.md).

    **Raises:** ValueError unless accuracy > 0 and 0 < miss < 1.

    **Example:**

    >>> from robust_rlhf_jax.algorithms import theory_parameters
    >>> found = theory_parameters(accuracy=0.1, horizon=5, dim=6)
    >>> f"{found.n_directions:.0e} directions, {found.steps:.0e} steps"
    '7e+06 directions, 6e+04 steps'
    """
    if not (accuracy > 0 and 0 < miss < 1):
        raise ValueError(f"accuracy={accuracy}, miss={miss}: needs accuracy > 0 and miss in (0, 1).")
    k = horizon * dim
    diameter, lipschitz, reach = k**0.5, horizon**0.5, 4 * k**0.5
    smoothing = (4 * diameter * accuracy * reach / (lipschitz * k**0.5)) ** 0.5
    error = 2 * smoothing * lipschitz * k**0.5
    longest = lipschitz * reach**2 + 2 * accuracy * reach / smoothing
    steps = (2 * diameter * longest / error) ** 2
    logarithm = float(jnp.log(2 * steps / miss))
    directions = 8 * logarithm * (2 * diameter * longest / error) ** 2
    return TheoryParameters(directions, steps, smoothing, 2 * diameter / (longest * steps**0.5))


class FirstOrderParameters(NamedTuple):
    """T steps and step η, as the theorem asks for; floats: they exceed any budget.

    **Example:**

    >>> from robust_rlhf_jax.algorithms import first_order_parameters
    >>> rough, fine = (first_order_parameters(accuracy, horizon=5, dim=6) for accuracy in (0.2, 0.1))
    >>> round(fine.steps / rough.steps, 3)
    4.0
    """

    steps: float
    step_size: float


def first_order_parameters(
    accuracy: float,
    horizon: int,
    dim: int,
    *,
    longest: float | None = None,
    radius: float | None = None,
) -> FirstOrderParameters:
    """T, η for an oracle whose subgradients are `accuracy`-approximate (paper: Theorems 5.1 and C.1, corrected).

    The average iterate of θ ← Proj(θ − ηg) with constant η is within 2DG/√T + accuracy of the minimum over a set of
    diameter 2D where ‖g‖ ≤ G; T = (2DG/accuracy)² makes that 2·accuracy, η = 2D/(G√T). The printed proof takes G for
    G² in Σ‖g‖² and D for the diameter: D√(G/T), T = D²G/accuracy², η = D/√(GT) (docs/errata.md).

    **Arguments:** `accuracy`: f(ε), what the oracle's subgradients may be wrong by; `longest`: bound on the oracle's
    ‖v̂‖, None for √H, that of the exact E_π[φ(τ)]; G adds ‖E_ref[φ(τ)]‖ ≤ √H to it; `radius` D: bound on ‖θ‖₂, None for
    √(Hd).

    **Raises:** ValueError unless accuracy, longest and radius are positive.

    **Example:**

    >>> from robust_rlhf_jax.algorithms import first_order_parameters
    >>> found = first_order_parameters(accuracy=0.1, horizon=5, dim=6)
    >>> round(found.steps), round(found.step_size, 4)
    (240000, 0.005)
    """
    oracles = horizon**0.5 if longest is None else longest
    reach = (horizon * dim) ** 0.5 if radius is None else radius
    if not (accuracy > 0 and oracles > 0 and reach > 0):
        raise ValueError(f"accuracy={accuracy}, longest={oracles}, radius={reach}: all must be positive.")
    length = oracles + horizon**0.5
    steps = (2 * reach * length / accuracy) ** 2
    return FirstOrderParameters(steps, 2 * reach / (length * steps**0.5))
