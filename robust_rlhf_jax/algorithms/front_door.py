"""`robust_policy`: from preferences to a policy, greedy where the data know enough and pessimistic where they don't."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from robust_rlhf_jax._iterate import Status, worst_status
from robust_rlhf_jax.checks import check_epsilon
from robust_rlhf_jax.kernels.lapack import cholesky, lower_solve
from robust_rlhf_jax.kernels.units import typical_entries
from robust_rlhf_jax.likelihood.confidence import Ellipsoid, chi_square_quantile, ellipsoid
from robust_rlhf_jax.oracles import RLSVI, Oracle
from robust_rlhf_jax.preferences import PreferenceData, ask_table, check_preferences
from robust_rlhf_jax.preferences.table_check import believed as believed_pairs
from robust_rlhf_jax.rewards import RewardFit, believed_differences, fit_data
from robust_rlhf_jax.rewards.fit import CEILING
from robust_rlhf_jax.rewards.scarcity import secured

from .descent import DescentProblem, Evaluation, SubgradientDescent, descend
from .pessimism import check_reference, resolve_reference
from .pessimism_objective import PessimismObjective, Smoothing
from .solution import Solution

# The set's half-width in standard errors: a plan's value is one direction of θ, and this is its interval of 90 %. Where
# the data are merely noisy, the set that holds all of θ with that chance, wider by √(χ²_rank/χ²_1), forgoes more than
# it saves: on clean gridworlds of 48 directions it triples the gap of greedy plans. Where lies may hide, the set is
# that wide: liars choose which direction they speak of.
CONFIDENCE, STANDARD_ERRORS = 0.9, 1.645
STEPS = 60
# The set reaches this many times as far as the estimate where the data say nothing, and this much further.
REACH, LEAST_REACH = 3.0, 1.0
# Unless lies may hide, nothing is descended for if the data leave no more than this share of what the
# greedy plan promises uncertain; and the pessimist's plan must be guaranteed this share of it more than the greedy one
# to be returned.
UNCERTAIN, GAINED = 0.1, 0.02


def robust_policy(
    key: PRNGKeyArray,
    data: PreferenceData,
    epsilon: float | Float[Array, ""] | None = None,
    *,
    oracle: Oracle | None = None,
    reference: Float[Array, "H p"] | None = None,
) -> Solution:
    """A policy from preferences, some of which may be corrupt: safe whatever the coverage.

    `fit_reward` gives θ̂ and the pairs that no plausible explanation of the data disputes. With F the information of
    those pairs alone, Θ = {θ: (θ − θ̂)ᵀF(θ − θ̂) ≤ c²} is what they leave possible: narrow where they cover θ, wide where
    nobody does, where only suspects do of whom some are contradicted, and where so few pairs do that lies may be most
    of them. c = 1.645 holds the value of one plan with 90 %. Where the data show corruption and fewer than a share ε of
    the pairs are disputed, other lies may hide: c² = χ²₀.₉(rank) holds all of θ. The plan maximises
    min over Θ of V^π(θ) − E_ref[φ]·θ (the paper's Algorithm 3 on this set, by the oracle's derivative). Where greedy
    planning at θ̂ is guaranteed about as much, it is returned instead.

    **Arguments:**

    - `key`: for oracles that draw; `data`: `PreferenceData`.
    - `epsilon`: the largest share of corrupt pairs, in [0, ½). None: decided from the evidence; without any, the answer
      is that of ε = 0. Lies about what nobody else shows leave none: tell ε where you fear them.
    - `oracle`: an offline planner whose value can be differentiated, or that gives subgradients; default `RLSVI()`.
    - `reference` [H, p]: E_ref[φ_h] of a policy to be no worse than (`expected_features`); default: the behaviour.

    **Returns:** `Solution` with diagnostics `epsilon` (share of pairs left out), `rank`, `undisputed` (share of pairs),
    `pessimistic` (whether the plan is not the greedy one), `guaranteed_gain` and `promised_gain` over the reference,
    `off_table`, `oracle_calls`, `reward_status`, `oracle_status`.

    **Raises:** ValueError for ε outside [0, ½), malformed or non-finite data, or a reference of another shape.

    **Source:** the paper's Algorithm 3 and Theorem 4.3; the set over explanations and the certificate are ours.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import attacks, robust_policy, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> clean = sample_preferences(jax.random.key(0), mdp, 2000)
    >>> bad = attacks.push_features(jax.random.key(1), clean, 0.1, mdp)
    >>> found = robust_policy(jax.random.key(2), bad, 0.1)
    >>> float(worlds.normalised_gap(mdp, found.policy)) < 0.05
    True
    """
    if epsilon is not None:
        check_epsilon(epsilon)
    check_preferences(data)
    check_reference(reference, data)
    level = None if epsilon is None else jnp.asarray(epsilon, data.features.dtype)
    return _run(key, data, level, RLSVI() if oracle is None else oracle, reference)


@eqx.filter_jit
def _run(key, data, epsilon, oracle, reference) -> Solution:
    believed, off = ask_table(data)
    dtype = data.features.dtype
    # What the table shows to be corrupt is no longer among the pairs that may be.
    gone = jnp.mean(believed_pairs(off), dtype=dtype)
    found, remaining = _fitted(data, epsilon, gone)
    target = resolve_reference(reference, believed, remaining)
    prepared = oracle.prepare(believed, remaining, key=key)
    planner = _Planner(oracle, prepared, target, data.plan_steps, data.stationary)
    hiding = _lies_may_hide(found, remaining, gone)
    possible = _possible(believed_differences(data)[0], found, remaining, hiding)
    plan = _plan(planner, possible, found.theta, hiding)
    chosen = plan.chosen
    diagnostics = {
        "epsilon": found.epsilon,
        "rank": found.rank,
        "undisputed": jnp.mean(found.undisputed),
        "pessimistic": plan.pessimistic,
        "guaranteed_gain": chosen.guaranteed,
        "promised_gain": chosen.promised,
        "off_table": jnp.mean(off, dtype=dtype),
        "oracle_calls": plan.calls,
        "reward_status": found.status,
        "oracle_status": chosen.status,
    }
    status = worst_status(jnp.where(found.at_radius, Status.CONVERGED.array(), found.status), chosen.status)
    return Solution(chosen.policy, data.per_step(chosen.theta), chosen.value, status, diagnostics)


def _fitted(data: PreferenceData, epsilon, gone) -> tuple[RewardFit, Float[Array, ""]]:
    """The robust reward, and the share of the pairs on the table that may be corrupt: what is told, or else found."""
    if epsilon is not None:
        remaining = jnp.maximum((epsilon - gone) / (1.0 - gone), 0.0)
        return fit_data(data, remaining), remaining
    found = fit_data(data, jnp.asarray(CEILING, data.features.dtype))
    remaining = jnp.maximum(found.epsilon - gone, 0.0)
    # Without evidence of corruption no pair is disputed and no direction doubted, whatever the ceiling would allow.
    evidence = remaining > 0.5 / data.n_pairs
    undisputed = jnp.where(evidence, found.undisputed, found.weights)
    return found._replace(undisputed=undisputed, doubted=jnp.where(evidence, found.doubted, 0.0)), remaining


def _lies_may_hide(found: RewardFit, epsilon: Float[Array, ""], gone: Float[Array, ""]) -> Bool[Array, ""]:
    """Whether the data show corruption, and fewer pairs on the table are disputed than the share ε of them that may
    lie.
    """
    pairs = found.undisputed.size
    disputed = 1.0 - jnp.sum(found.undisputed) / (pairs * (1.0 - gone))
    evidence = found.epsilon > 0.5 / pairs
    return evidence & (epsilon - disputed > 0.5 / pairs)


class _Planner(eqx.Module):
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


class _Possible(NamedTuple):
    """Θ in units of `sizes` [k]: `set`, and the Cholesky `factor` [k, k] of its shape; its half-width is `set.size`
    standard errors.
    """

    set: Ellipsoid
    sizes: Float[Array, " k"]
    factor: Float[Array, "k k"]

    def uncertainty(self, features: Float[Array, " k"]) -> Float[Array, ""]:
        """max over Θ of (θ̂ − θ)·features, at most."""
        scaled = features / self.sizes
        by_data = self.set.size * jnp.linalg.norm(lower_solve(self.factor, scaled[:, None]))
        return jnp.minimum(by_data, 2.0 * self.set.radius * jnp.linalg.norm(scaled))

    def promised(self, features: Float[Array, " k"]) -> Float[Array, ""]:
        """θ̂·features, as far as the data know."""
        return jnp.dot(self.set.centre, features / self.sizes)

    def guaranteed(self, features: Float[Array, " k"]) -> Float[Array, ""]:
        """min over Θ of θ·features, at least."""
        return self.promised(features) - self.uncertainty(features)


def _possible(x: Float[Array, "N k"], found: RewardFit, epsilon, hiding) -> _Possible:
    """What the undisputed pairs leave possible if a share ε of the pairs may be corrupt: along one direction, or, if
    lies may be `hiding` among them, along all at once.
    """
    everywhere = jnp.sqrt(chi_square_quantile(CONFIDENCE, jnp.maximum(found.rank, 1)))
    width = jnp.where(hiding, everywhere, STANDARD_ERRORS).astype(x.dtype)
    sizes = typical_entries(x)
    sure = secured(x, found, epsilon)
    known = sure.information / (sizes[:, None] * sizes)
    centre = sure.theta * sizes
    radius = REACH * jnp.linalg.norm(centre) + LEAST_REACH
    floor = (width / radius) ** 2 * jnp.eye(x.shape[1], dtype=x.dtype)
    return _Possible(ellipsoid(known, centre, width, radius), sizes, cholesky(known + floor))


class _Certified(eqx.Module):
    """An objective as a function of θ·sizes, whose value is what the plan at θ is not guaranteed: its best iterate is
    the plan with the best certificate.
    """

    inner: PessimismObjective
    possible: _Possible

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


class _Candidate(NamedTuple):
    """A plan for `theta`, and what it gains over the reference: at least, and by the estimate."""

    theta: Float[Array, " k"]
    policy: Any
    value: Float[Array, ""]
    guaranteed: Float[Array, ""]
    promised: Float[Array, ""]
    status: Array


class _Plan(NamedTuple):
    chosen: _Candidate
    pessimistic: Array
    calls: Array


def _plan(planner: _Planner, possible: _Possible, theta: Float[Array, " k"], hiding) -> _Plan:
    objective = planner.objective()
    key = jax.random.key(0)
    problem = DescentProblem(
        _Certified(objective, possible), possible.set, possible.set.centre,
        0.5 * possible.set.radius, float(STEPS),
    )  # fmt: skip

    def consider(t):
        """What the plan at t gains over the reference by the estimate, and at least."""
        answer = objective.solve(t)
        # The derivative of V̂ − E_ref·θ: what the plan's features exceed the reference's by.
        ahead = objective.evaluate(t, objective.memory, key=key).gradient
        gains = possible.guaranteed(ahead), possible.promised(ahead)
        return _Candidate(t, answer.policy, answer.value, *gains, answer.status)

    def descend_too():
        descent = descend(problem, key=key, steps=STEPS, solver=SubgradientDescent())
        ends = jnp.stack([descent.theta, descent.best_theta]) / possible.sizes
        # One after the other in a loop: half of a program that takes seconds to compile.
        both = jax.lax.map(consider, ends)
        last, best = (jax.tree.map(lambda leaf, i=i: leaf[i], both) for i in range(2))
        careful = _either(last.guaranteed >= best.guaranteed, last, best)
        return careful._replace(status=worst_status(careful.status, descent.status)), descent.calls + 2

    greedy = consider(theta)
    promise = jnp.maximum(greedy.promised, 0.0)
    # No plan is guaranteed more than the greedy one promises.
    settled = greedy.promised - greedy.guaranteed <= jnp.where(hiding, 0.0, UNCERTAIN) * promise
    careful, calls = jax.lax.cond(settled, lambda: (greedy, jnp.zeros((), jnp.int32)), descend_too)
    pessimistic = careful.guaranteed > greedy.guaranteed + jnp.where(hiding, 0.0, GAINED) * promise
    return _Plan(_either(pessimistic, careful, greedy), pessimistic, calls + 1)


def _either(condition, one, other):
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), one, other)
