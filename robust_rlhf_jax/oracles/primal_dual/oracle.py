"""The first-order RobRL: offline planning as a game between values and occupancies (paper: Algorithm 7)."""

import dataclasses
import math
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from robust_rlhf_jax._iterate import Iteration, Status, iterate, worst_status
from robust_rlhf_jax.checks import is_traced
from robust_rlhf_jax.kernels.divisors import positive_or_one
from robust_rlhf_jax.kernels.linalg import einsum
from robust_rlhf_jax.kernels.primal_dual import softmax_policy
from robust_rlhf_jax.mdp import SoftmaxMixture
from robust_rlhf_jax.module import Module
from robust_rlhf_jax.oracles.base import OracleResult
from robust_rlhf_jax.preferences import PreferenceData

from .data import Game, features_of, prepare_game
from .updates import DescentAscent, SaddleProblem, SaddleState, WarmSaddle, cold_start, leave_behind

PUBLISHED_STEP, PUBLISHED_POLICY_STEP = 0.05, 5.0
# Bold steps throw the policy from action to action where whitened features are long: the game is chaos, and its answer
# depends on the last bit of the data. Seventy short games in a row amplify that more than one long game does.
CAUTION = 0.1
# Coverage that is taken for granted, in multiples of what the data have on average.
USUAL_COVERAGE = 16.0


class PrimalDual(Module):
    """Corruption-robust offline primal–dual, with a subgradient of V★ (paper: Algorithm 7, Theorem 5.3).

    `steps` T iterations; the samples' weights in the robust means are renewed every `refresh`. `robust_means`:
    "residual" clips temporal differences on top of a covariate filter, "spectral" filters the samples' gradients
    themselves as printed, which takes rare for corrupt (`filter_steps` a round at most). `optimistic`: the default
    update (ours), which converges where the published one cycles. `whiten`: play in coordinates in which the robust
    second moment of the features, averaged over steps, is I (a linear MDP stays one; ours). `step_size` η: None
    adapts to the game (optimistic), or is 0.05; `occupancy_step` η_β: None is η, else η is that of w alone.
    `step_size="theory"` takes η_w, η_β and α from `theory_steps`, with T and ν of this oracle. `policy_step` α, for
    rewards of at most 1: None is `policy_share`/E‖φ‖² (optimistic; ours), or 5. `averaging` p: iterate t counts about
    tᵖ times; 0 is the uniform average and mixture as printed. `coverage` ν: bound on ‖β‖², None for 16·H·d. `tolerance`
    of the flow residual for the status `converged`. `sample_splitting`: 2HT disjoint groups of samples as analysed,
    each filtered on its own.

    Published settings: `optimistic=False, whiten=False, averaging=0.0, sample_splitting=True, step_size="theory"`.

    **Example:**

    >>> from robust_rlhf_jax.oracles import PrimalDual
    >>> published = PrimalDual(optimistic=False, whiten=False, averaging=0.0, sample_splitting=True, step_size="theory")
    >>> published.steps, published.shortened(100).steps
    (1000, 100)
    """

    steps: int = eqx.field(static=True, default=1000)
    refresh: int = eqx.field(static=True, default=50)
    optimistic: bool = eqx.field(static=True, default=True)
    whiten: bool = eqx.field(static=True, default=True)
    sample_splitting: bool = eqx.field(static=True, default=False)
    robust_means: Literal["residual", "spectral"] = eqx.field(static=True, default="residual")
    filter_steps: int = eqx.field(static=True, default=8)
    step_size: float | Float[Array, ""] | Literal["theory"] | None = None
    occupancy_step: float | Float[Array, ""] | None = None
    policy_step: float | Float[Array, ""] | None = None
    policy_share: float | Float[Array, ""] = 8.0
    averaging: float | Float[Array, ""] = 3.0
    coverage: float | Float[Array, ""] | None = None
    tolerance: float | Float[Array, ""] = 0.1

    def __check_init__(self):
        if self.steps < 1 or self.refresh < 1 or self.steps % self.refresh:
            raise ValueError(
                f"steps={self.steps}, refresh={self.refresh}: steps must be a positive multiple of refresh."
            )
        if self.robust_means not in ("residual", "spectral"):
            raise ValueError(
                f'robust_means={self.robust_means!r} is unknown: it is "residual" or "spectral".'
            )
        if self.filter_steps < 0:
            raise ValueError(f"filter_steps={self.filter_steps} is negative: give 0 or more.")
        if isinstance(self.step_size, str) and self.step_size != "theory":
            raise ValueError(f'step_size={self.step_size!r} is unknown: it is a number, "theory" or None.')
        if self.occupancy_step is not None and (self.step_size is None or isinstance(self.step_size, str)):
            raise ValueError(f"occupancy_step={self.occupancy_step} needs a number as step_size, that of w.")
        for name in ("step_size", "occupancy_step", "policy_step", "policy_share", "coverage", "tolerance"):
            value = getattr(self, name)
            if isinstance(value, str):
                continue
            if value is not None and not is_traced(value) and not float(value) > 0:
                raise ValueError(f"{name}={value} must be positive.")
        if not is_traced(self.averaging) and not float(self.averaging) >= 0:
            raise ValueError(f"averaging={self.averaging} must not be negative: 0 is the uniform average.")

    def prepare(self, data: PreferenceData, epsilon: Float[Array, ""], *, key: PRNGKeyArray) -> Game:
        """**Raises:** ValueError for fewer samples than 2HT groups, with `sample_splitting`."""
        horizon, samples = data.plan_steps, 2 * data.n_pairs * (data.horizon if data.pooled else 1)
        if self.sample_splitting and self._group_size(samples, horizon) < 1:
            raise ValueError(
                f"{samples} trajectories cannot give 2·H·T = {2 * horizon * self.steps} groups one each: "
                "take fewer steps or reuse the data."
            )
        return prepare_game(data, jnp.asarray(epsilon, data.features.dtype), key, self.whiten)

    def solve(self, prepared: Game, theta: Float[Array, "H p"]) -> OracleResult:
        """`value`: Σ_h⟨θ_h, v̂_h⟩; `policy`: the mixture of all policies played, a `SoftmaxMixture`; `subgradient` v̂.

        `details`: `average_policy` [H, S, A], the softmax of the averaged logits (a heuristic: one policy for the
        mixture), `duality_gap`, `flow_residual`, `gaps` and `residuals` by round.
        """
        return self.solve_from(prepared, theta, cold_start(prepared))[0]

    def start(self, prepared: Game) -> WarmSaddle:
        """What `solve_from` begins with the first time."""
        return cold_start(prepared)

    def solve_from(
        self,
        prepared: Game,
        theta: Float[Array, "H p"],
        warm: WarmSaddle,
        steps: int | Int[Array, ""] | None = None,
    ) -> tuple[OracleResult, WarmSaddle]:
        """`solve` from where the game of another θ ended, and where this one did.

        `steps`: at most the oracle's own, a multiple of `refresh`; it may be traced.
        """
        problem, scale = self._problem(prepared, theta, warm)
        group = self._group_size(prepared.phi.shape[1], prepared.horizon) if self.sample_splitting else 0
        rounds = self.steps // self.refresh
        solver = DescentAscent(
            rounds, self.refresh, self.optimistic, group, self.robust_means, self.filter_steps
        )
        played = rounds if steps is None else steps // self.refresh
        end = iterate(solver, problem, max_steps=played)
        return self._result(problem, end, theta, scale), leave_behind(end.state)

    def shortened(self, *steps: int) -> "PrimalDual":
        """The same oracle for games of `steps` iterations, weights renewed about as often, the policy more cautious."""
        share = CAUTION * self.policy_share
        refresh = math.gcd(self.refresh, *steps)
        return dataclasses.replace(self, steps=max(steps), refresh=refresh, policy_share=share)

    def _group_size(self, n_samples: int, horizon: int) -> int:
        return n_samples // (2 * horizon * self.steps)

    def _problem(
        self, game: Game, theta: Float[Array, "H p"], start: WarmSaddle
    ) -> tuple[SaddleProblem, Float[Array, ""]]:
        dtype = game.phi.dtype
        largest = jnp.max(jnp.abs(einsum("sap,hp->hsa", game.reward_table, theta)))
        scale = positive_or_one(largest)
        horizon, dim = game.horizon, game.phi.shape[2]
        coverage = USUAL_COVERAGE * horizon * dim if self.coverage is None else self.coverage
        step, ratio, policy_step = self._steps(game, coverage)
        return SaddleProblem(
            game=game,
            theta=theta / scale,
            radius_w=jnp.asarray(2 * horizon * dim**0.5, dtype),
            radius_beta=jnp.sqrt(jnp.asarray(coverage, dtype)),
            policy_step=jnp.asarray(policy_step, dtype),
            step_size=jnp.asarray(step, dtype),
            balance=jnp.asarray([1.0, ratio], dtype),
            averaging=jnp.asarray(self.averaging, dtype),
            start=start,
        ), scale

    def _steps(self, game: Game, coverage: Any):
        """(η_w or 0 for one that adapts, η_β/η_w, α)."""
        if isinstance(self.step_size, str):
            actions, dim = game.table.shape[1:]
            step, other, share = theory_steps(game.horizon, dim, actions, self.steps, coverage)
        else:
            adapts = self.optimistic and not self.sample_splitting
            step = (0.0 if adapts else PUBLISHED_STEP) if self.step_size is None else self.step_size
            other = step if self.occupancy_step is None else self.occupancy_step
            share = self.policy_share / game.mean_square if self.optimistic else PUBLISHED_POLICY_STEP
        ratio = 1.0 if other is step else other / step
        return step, ratio, share if self.policy_step is None else self.policy_step

    def _result(
        self, problem: SaddleProblem, end: Iteration, theta: Float[Array, "H p"], scale: Float[Array, ""]
    ) -> OracleResult:
        state: SaddleState = end.state
        game = problem.game
        subgradient = features_of(game, state.means.at[1])
        value = jnp.sum(theta * subgradient)
        lost = end.status == Status.NONFINITE
        last = jnp.maximum(state.count // self.refresh - 1, 0)
        weights = self._mixture_weights(state)
        mixture = SoftmaxMixture(game.table, state.logits, weights)
        details = {
            "average_policy": softmax_policy(game.table, einsum("t,thd->hd", weights, state.logits)),
            "duality_gap": scale * state.gaps[last],
            "flow_residual": state.residuals[last],
            "gaps": scale * state.gaps,
            "residuals": state.residuals,
        }
        status = jnp.where(lost, end.status, self._status(problem, state, state.residuals[last]))
        value = jnp.where(lost, jnp.nan, value)
        return OracleResult(value, mixture, worst_status(status, game.status), subgradient, details)

    def _status(self, problem: SaddleProblem, state: SaddleState, residual: Float[Array, ""]):
        """No flow within the ball of β: infeasible; none found yet: max_steps."""
        at_edge = jnp.linalg.norm(state.means.at[1]) >= 0.98 * problem.radius_beta
        short = jnp.where(at_edge, Status.INFEASIBLE.array(), Status.MAX_STEPS.array())
        return jnp.where(residual <= self.tolerance, Status.CONVERGED.array(), short)

    def _mixture_weights(self, state: SaddleState):
        """Those of the average: Π over later iterations of (1 − share)."""
        t = jnp.arange(self.steps, dtype=state.logits.dtype) + 1.0
        log_kept = jax.scipy.special.gammaln(t + self.averaging) - jax.scipy.special.gammaln(t)
        weights = jnp.where(t <= jnp.maximum(state.count, 1), jnp.exp(log_kept - jnp.max(log_kept)), 0.0)
        return weights / jnp.sum(weights)


def theory_steps(
    horizon: int, dim: int, n_actions: int, steps: int, coverage: float | Float[Array, ""]
) -> tuple[float | Float[Array, ""], float | Float[Array, ""], float]:
    """(η_w, η_β, α) of the analysis: H/(ν√(dT)), ν/(d^{3/2}√(2(H²+1)T)), √(2 log A/(dT))/H (paper: Theorem 5.3).

    `PrimalDual(step_size="theory")` takes them; its default has one η for both players.

    **Example:**

    >>> from robust_rlhf_jax.oracles import theory_steps
    >>> [round(step, 5) for step in theory_steps(horizon=5, dim=6, n_actions=4, steps=1000, coverage=10.0)]
    [0.00645, 0.00298, 0.0043]
    """
    log_actions = math.log(n_actions)
    return (
        horizon / (coverage * (dim * steps) ** 0.5),
        coverage / (dim**1.5 * (2 * (horizon**2 + 1) * steps) ** 0.5),
        (2 * log_actions / (dim * steps)) ** 0.5 / horizon,
    )
