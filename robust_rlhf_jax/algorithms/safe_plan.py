"""The greedy plan, or the one that is guaranteed most whichever possible reward is true, if that is clearly more."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from robust_rlhf_jax._iterate import Status, worst_status
from robust_rlhf_jax.oracles import Oracle

from .descent import DescentProblem, Evaluation, SubgradientDescent, descend
from .pessimism_objective import PessimismObjective, Smoothing
from .possible_rewards import PossibleRewards

STEPS = 60
# The descent is left out if at most the share `UNCERTAIN` of what the greedy plan promises is uncertain. The
# pessimistic plan is returned if it is guaranteed more than the greedy one by the share `GAINED` of that promise. Both
# are 0 where lies may hide.
UNCERTAIN, GAINED = 0.1, 0.02


class Planner(eqx.Module):
    """`oracle` on what it prepared, with the value's derivative E_π̂[φ] whatever kind of oracle it is."""

    oracle: Oracle
    prepared: Any
    reference: Float[Array, " k"]
    steps: int = eqx.field(static=True)
    stationary: bool = eqx.field(static=True)

    def objective(self) -> PessimismObjective:
        shape = jax.eval_shape(lambda t: self._bare("autodiff").solve(t), self.reference)
        return self._bare("autodiff" if shape.subgradient is None else "oracle")

    def _bare(self, gradient: str) -> PessimismObjective:
        settings = (self.oracle, self.prepared, self.reference, Smoothing(), self.steps, self.stationary)
        return PessimismObjective(*settings, gradient)


class Certified(eqx.Module):
    """An objective as a function of θ·sizes, whose value is what the plan at θ is not guaranteed: its best iterate is
    the plan with the best certificate.
    """

    inner: PessimismObjective
    possible: PossibleRewards

    @property
    def calls(self) -> int:
        return self.inner.calls

    @property
    def memory(self):
        return self.inner.memory

    def evaluate(self, theta: Float[Array, " k"], memory: Any, *, key: PRNGKeyArray) -> Evaluation:
        sizes = self.possible.sizes
        found = self.inner.evaluate(theta / sizes, memory, key=key)
        value = -self.possible.guaranteed(found.gradient)
        return found._replace(value=value, gradient=found.gradient / sizes)


class Candidate(NamedTuple):
    """A plan for `theta`, and what it gains over the reference: at least, and by the estimate."""

    theta: Float[Array, " k"]
    policy: Any
    value: Float[Array, ""]
    guaranteed: Float[Array, ""]
    promised: Float[Array, ""]
    status: Array


class Plan(NamedTuple):
    chosen: Candidate
    pessimistic: Array
    calls: Array


def safe_plan(
    planner: Planner, possible: PossibleRewards, theta: Float[Array, " k"], hiding: Bool[Array, ""]
) -> Plan:
    """The greedy plan for `theta`, or the one found by descent on what is not guaranteed; `hiding`: whether lies may be
    among the pairs that nobody disputes, so that every gain is taken.
    """
    objective = planner.objective()
    key = jax.random.key(0)
    problem = DescentProblem(
        Certified(objective, possible), possible.set, possible.set.centre,
        0.5 * possible.set.radius, float(STEPS),
    )  # fmt: skip

    def consider(t):
        """What the plan at t gains over the reference by the estimate, and at least."""
        answer = objective.solve(t)
        # The derivative of V̂ − E_ref·θ: the plan's features less the reference's.
        ahead = objective.evaluate(t, objective.memory, key=key).gradient
        gains = possible.guaranteed(ahead), possible.promised(ahead)
        return Candidate(t, answer.policy, answer.value, *gains, answer.status)

    def ends():
        descent = descend(problem, key=key, steps=STEPS, solver=SubgradientDescent())
        found = jnp.stack([descent.theta, descent.best_theta]) / possible.sizes
        return jnp.concatenate([theta[None], found]), descent.calls + 2, descent.status

    def turn(state: _Considered, number):
        """The greedy plan first; where more can be guaranteed, the two ends of the descent after it."""
        known = state.thetas, state.calls, state.status
        # The outer condition is one for all lanes of a batch, which descend but once.
        thetas, calls, status = jax.lax.cond(
            number == 1, lambda: jax.lax.cond(state.settled, lambda: known, ends), lambda: known
        )
        plan = jax.lax.cond(state.settled, lambda _: state.plan, consider, thetas[number])
        promise = jnp.maximum(plan.promised, 0.0)
        # No plan is guaranteed more than the greedy one promises.
        sure = plan.promised - plan.guaranteed <= jnp.where(hiding, 0.0, UNCERTAIN) * promise
        return _Considered(thetas, plan, state.settled | ((number == 0) & sure), calls, status), plan

    # One program for all three plans: each would take seconds to compile.
    none = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(consider, theta))
    first = _Considered(
        jnp.stack([theta] * 3), none, jnp.asarray(False), jnp.zeros((), jnp.int32), Status.CONVERGED.array()
    )
    end, plans = jax.lax.scan(turn, first, jnp.arange(3))
    greedy, last, best = (jax.tree.map(lambda leaf, i=i: leaf[i], plans) for i in range(3))
    careful = _either(last.guaranteed >= best.guaranteed, last, best)
    careful = careful._replace(status=worst_status(careful.status, end.status))
    promise = jnp.maximum(greedy.promised, 0.0)
    pessimistic = careful.guaranteed > greedy.guaranteed + jnp.where(hiding, 0.0, GAINED) * promise
    return Plan(_either(pessimistic, careful, greedy), pessimistic, end.calls + 1)


class _Considered(NamedTuple):
    """`thetas` [3, k] to plan for, the greedy one first; the last `plan`; `settled`: none can be better than greedy."""

    thetas: Float[Array, "3 k"]
    plan: Candidate
    settled: Array
    calls: Array
    status: Array


def _either(condition: Bool[Array, ""], one: Any, other: Any):
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), one, other)
