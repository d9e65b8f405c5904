"""The one driver: runs any init/step/terminate solver, derives its keys, keeps its status."""

import enum
from typing import Generic, Protocol, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray, PyTree

from robust_rlhf_jax.checks import is_traced

State = TypeVar("State")


class Status(enum.IntEnum):
    """How a computation ended; carried through jit and vmap as an int32 array.

    `Status(int(result.status)).name` reads it back.

    **Example:**

    >>> from robust_rlhf_jax import Status, fit_reward, load_rail_choices
    >>> Status(int(fit_reward(load_rail_choices()).status)).name
    'CONVERGED'
    """

    RUNNING = -1
    CONVERGED = 0
    MAX_STEPS = 1
    NONFINITE = 2
    INFEASIBLE = 3
    FILTER_REMOVED_TOO_MUCH = 4
    SEPARABLE = 5

    def array(self) -> Int[Array, ""]:
        return jnp.asarray(int(self), jnp.int32)


def worst_status(*statuses: Int[Array, ""]) -> Int[Array, ""]:
    """The most serious of several stages' statuses.

    In rising order: running, converged, separable, max_steps, filter_removed_too_much, infeasible, nonfinite.
    """
    severity = jnp.asarray([1, 3, 6, 5, 4, 2, 0], jnp.int32)  # indexed by the status' code, RUNNING = −1 last
    codes = jnp.stack([jnp.asarray(s, jnp.int32) for s in statuses])
    return codes[jnp.argmax(severity[codes])]


class Solver(Protocol[State]):
    """What `iterate` runs. All three are pure; data come in through `problem`, never through a closure."""

    def init(self, problem: PyTree, *, key: PRNGKeyArray | None) -> State: ...

    def step(self, problem: PyTree, state: State, *, key: PRNGKeyArray | None) -> State: ...

    def terminate(self, problem: PyTree, state: State) -> Int[Array, ""]:
        """`Status.RUNNING` to go on, any other status to stop."""
        ...


class Iteration(eqx.Module, Generic[State]):
    """Where a run stands: enough to resume it exactly.

    `state` is the solver's last finite state, `step` the number of steps made, `status` a `Status` code.
    """

    state: State
    step: Int[Array, ""]
    status: Int[Array, ""]


def start(solver: Solver, problem: PyTree, *, key: PRNGKeyArray | None = None) -> Iteration:
    """The iteration before its first step."""
    state = _strongly_typed(solver.init(problem, key=_key_of(key, 0)))
    status = jnp.where(has_nan(state), Status.NONFINITE.array(), solver.terminate(problem, state))
    return Iteration(state, jnp.zeros((), jnp.int32), status.astype(jnp.int32))


def iterate(
    solver: Solver,
    problem: PyTree,
    *,
    key: PRNGKeyArray | None = None,
    max_steps: int | Int[Array, ""],
    loop: str = "while",
    resume: Iteration | None = None,
) -> Iteration:
    """Step `solver` until it terminates or has made `max_steps` steps in all.

    The key of step t is `fold_in(key, t + 1)`, so that a resumed run equals an uninterrupted one; a solver that draws
    nothing needs none. A step whose result holds a NaN is not taken: the state before it is returned with status
    `nonfinite`. Under `vmap`, lanes that are done stay as they are while others go on.

    **Arguments:** `loop` is "while" (stops early) or "scan" (reverse-differentiable; makes max_steps passes);
    `max_steps` may be traced with "while".

    **Raises:** ValueError for another `loop` or `max_steps` < 0.
    """
    if loop not in ("while", "scan"):
        raise ValueError(f'loop={loop!r} is unknown: it is "while" or "scan".')
    if not is_traced(max_steps) and max_steps < 0:
        raise ValueError(f"max_steps={max_steps} is negative: give 0 or more.")
    first = start(solver, problem, key=key) if resume is None else _reopen(resume, solver, problem)

    def unfinished(it: Iteration):
        return (it.status == Status.RUNNING) & (it.step < max_steps)

    def advance(it: Iteration) -> Iteration:
        proposed = solver.step(problem, it.state, key=_key_of(key, it.step + 1))
        bad = has_nan(proposed)
        state = jax.tree.map(lambda new, old: jnp.where(bad, old, new), proposed, it.state)
        status = jnp.where(bad, Status.NONFINITE.array(), solver.terminate(problem, state))
        return Iteration(state, it.step + jnp.where(bad, 0, 1), status.astype(jnp.int32))

    def frozen_advance(it: Iteration, _):
        go, proposed = unfinished(it), advance(it)
        return jax.tree.map(lambda new, old: jnp.where(go, new, old), proposed, it), None

    if loop == "while":
        last = jax.lax.while_loop(unfinished, advance, first)
    else:
        last = jax.lax.scan(frozen_advance, first, length=int(max_steps))[0]
    status = jnp.where(last.status == Status.RUNNING, Status.MAX_STEPS.array(), last.status)
    return Iteration(last.state, last.step, status)


def _key_of(key: PRNGKeyArray | None, step: Int[Array, ""] | int) -> PRNGKeyArray | None:
    return None if key is None else jax.random.fold_in(key, step)


def has_nan(tree: PyTree):
    """Whether any floating-point leaf holds a NaN (infinities are allowed: a start value may be −∞)."""
    leaves = [x for x in jax.tree.leaves(tree) if jnp.issubdtype(x.dtype, jnp.inexact)]
    numbers, arrays = [x for x in leaves if not x.ndim], [x for x in leaves if x.ndim]
    # Counted in floats, numbers together: XLA turns `any` over many rows into three programs, and each count into one.
    together = [jnp.stack(numbers)] if numbers else []
    counts = [jnp.sum(jnp.isnan(x), dtype=jnp.float32) for x in together + arrays]
    return sum(counts, jnp.zeros((), jnp.float32)) > 0


def _reopen(it: Iteration, solver: Solver, problem: PyTree) -> Iteration:
    """An iteration that stopped at its step limit may go on; any other end is final."""
    open_again = solver.terminate(problem, it.state).astype(jnp.int32)
    return Iteration(it.state, it.step, jnp.where(it.status == Status.MAX_STEPS, open_again, it.status))


def _strongly_typed(tree: PyTree) -> PyTree:
    """Weakly typed carries would compile the loop twice."""
    return jax.tree.map(lambda x: jax.lax.convert_element_type(x, jnp.asarray(x).dtype), tree)
