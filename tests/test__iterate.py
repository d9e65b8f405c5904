"""The driver: both loops agree, a resumed run is the uninterrupted one, and NaN stops only its own lane."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from slow_parameters import slow

from robust_rlhf_jax._iterate import Iteration, Status, iterate, start, worst_status


class NoisyDescent(eqx.Module):
    """x ← x − rate·(x − target) + noise; converged within `tolerance`; the state counts its steps."""

    noise: float = eqx.field(static=True, default=0.1)
    tolerance: float = eqx.field(static=True, default=0.0)

    def init(self, problem, *, key):
        return {"x": jax.random.normal(key, problem["target"].shape), "count": jnp.zeros((), jnp.int32)}

    def step(self, problem, state, *, key):
        pull = problem["rate"] * (problem["target"] - state["x"])
        x = state["x"] + pull + self.noise * jax.random.normal(key, state["x"].shape)
        return {"x": x, "count": state["count"] + 1}

    def terminate(self, problem, state):
        near = jnp.max(jnp.abs(state["x"] - problem["target"])) < self.tolerance
        return jnp.where(near, int(Status.CONVERGED), int(Status.RUNNING))

    def extract(self, problem, state):
        return state["x"]


class Countdown(eqx.Module):
    """Counts up from 0 to `goal`; its value turns NaN at step `poison`."""

    def init(self, problem, *, key):
        return {"value": jnp.zeros(()), "history": jnp.full(3, -jnp.inf), "steps": jnp.zeros((), jnp.int32)}

    def step(self, problem, state, *, key):
        value = jnp.where(state["steps"] + 1 == problem["poison"], jnp.nan, state["value"] + 1)
        history = state["history"].at[state["steps"] % 3].set(state["value"])
        return {"value": value, "history": history, "steps": state["steps"] + 1}

    def terminate(self, problem, state):
        return jnp.where(state["value"] >= problem["goal"], int(Status.CONVERGED), int(Status.RUNNING))

    def extract(self, problem, state):
        return state["value"]


KEY = jax.random.key(0)
# Jitted, so that tests share their programs; the solvers have static fields only.
run = jax.jit(iterate, static_argnames=("solver", "max_steps", "loop"))
LOOPS = ["while", "scan"]


def descent(target=(1.0, -2.0, 0.5), rate=0.3):
    return {"target": jnp.asarray(target), "rate": jnp.asarray(rate)}


def countdown(goal=5.0, poison=-1):
    return {"goal": jnp.asarray(goal), "poison": jnp.asarray(poison)}


def assert_same(first, second):
    """Bit for bit, NaN included."""
    assert jax.tree.structure(first) == jax.tree.structure(second)
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        assert a.dtype == b.dtype
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def python_loop(solver, problem, key, max_steps):
    """What `iterate` promises, with a Python loop and the keys written out."""
    state = solver.init(problem, key=jax.random.fold_in(key, 0))
    for t in range(max_steps):
        state = solver.step(problem, state, key=jax.random.fold_in(key, t + 1))
    return state


@pytest.mark.parametrize("loop", LOOPS)
def test_against_a_python_loop(loop):
    result = run(NoisyDescent(), descent(), key=KEY, max_steps=7, loop=loop)
    expected = python_loop(NoisyDescent(), descent(), KEY, 7)
    np.testing.assert_allclose(result.state["x"], expected["x"], rtol=1e-6)
    assert result.state["count"] == result.step == 7
    assert result.status == Status.MAX_STEPS
    assert result.status.dtype == result.step.dtype == jnp.int32


@pytest.mark.parametrize("max_steps", [0, slow(4), 60])
def test_while_equals_scan(max_steps):
    solver, problem = NoisyDescent(noise=0.01, tolerance=0.05), descent()
    results = [run(solver, problem, key=KEY, max_steps=max_steps, loop=loop) for loop in LOOPS]
    assert_same(*results)
    assert results[0].status == (Status.CONVERGED if max_steps == 60 else Status.MAX_STEPS)
    assert results[0].step < 60


@pytest.mark.slow
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("cuts", [(4,), (0, 1, 6)])
def test_resumed_equals_uninterrupted(loop, cuts):
    solver, problem = NoisyDescent(), descent()
    whole = run(solver, problem, key=KEY, max_steps=9, loop=loop)
    part = None
    for limit in (*cuts, 9):
        part = run(solver, problem, key=KEY, max_steps=limit, loop=loop, resume=part)
        assert part.step == limit
    assert_same(part, whole)
    other = run(solver, problem, key=jax.random.key(1), max_steps=9, loop=loop)
    assert (other.state["x"] != whole.state["x"]).any(), (
        "the solver must use its key for this test to mean anything"
    )


@pytest.mark.slow
def test_resume_from_the_start_and_across_loops():
    solver, problem = NoisyDescent(), descent()
    whole = run(solver, problem, key=KEY, max_steps=6)
    first = start(solver, problem, key=KEY)
    assert (first.step, first.status) == (0, Status.RUNNING)
    assert_same(run(solver, problem, key=KEY, max_steps=6, resume=first), whole)
    half = run(solver, problem, key=KEY, max_steps=3, loop="scan")
    assert_same(run(solver, problem, key=KEY, max_steps=6, resume=half), whole)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_finished_run_stays_finished(loop):
    done = run(Countdown(), countdown(goal=3.0), key=KEY, max_steps=10, loop=loop)
    assert (done.status, done.step, done.state["value"]) == (Status.CONVERGED, 3, 3.0)
    assert_same(run(Countdown(), countdown(goal=3.0), key=KEY, max_steps=50, loop=loop, resume=done), done)
    failed = run(Countdown(), countdown(poison=2), key=KEY, max_steps=10, loop=loop)
    assert_same(
        run(Countdown(), countdown(poison=2), key=KEY, max_steps=50, loop=loop, resume=failed), failed
    )


@pytest.mark.parametrize("loop", LOOPS)
def test_converged_at_the_start_takes_no_step(loop):
    done = run(Countdown(), countdown(goal=0.0), key=KEY, max_steps=5, loop=loop)
    assert (done.status, done.step, done.state["steps"]) == (Status.CONVERGED, 0, 0)


@pytest.mark.parametrize("loop", LOOPS)
def test_convergence_on_the_last_allowed_step_counts(loop):
    assert run(Countdown(), countdown(5.0), key=KEY, max_steps=5, loop=loop).status == Status.CONVERGED
    late = run(Countdown(), countdown(5.0), key=KEY, max_steps=4, loop=loop)
    assert (late.status, late.step, late.state["value"]) == (Status.MAX_STEPS, 4, 4.0)


@pytest.mark.parametrize("loop", LOOPS)
def test_nan_keeps_the_last_finite_state(loop):
    result = run(Countdown(), countdown(poison=3), key=KEY, max_steps=10, loop=loop)
    assert result.status == Status.NONFINITE
    assert result.state["value"] == 2.0
    assert result.state["steps"] == 2, "every part of the refused step is dropped"
    np.testing.assert_array_equal(result.state["history"], [0.0, 1.0, -np.inf])


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("max_steps", [0, 5])
def test_nan_at_the_start_is_reported(loop, max_steps):
    """A start that holds a NaN is not finite: the status must say so, whatever later steps make of it."""

    class Forgetful(Countdown):
        def init(self, problem, *, key):
            state = super().init(problem, key=key)
            return state | {"value": state["value"] * jnp.nan}

        def step(self, problem, state, *, key):
            return state | {"value": jnp.nan_to_num(state["value"]) + 1, "steps": state["steps"] + 1}

    result = run(Forgetful(), countdown(), key=KEY, max_steps=max_steps, loop=loop)
    assert result.status == Status.NONFINITE


@pytest.mark.slow
@pytest.mark.parametrize("loop", LOOPS)
def test_one_bad_lane_leaves_the_others_unchanged(loop):
    goals, poisons = jnp.array([5.0, 50.0, 2.0, 5.0, 0.0]), jnp.array([-1, -1, -1, 2, -1])
    lane = lambda goal, poison: run(  # noqa: E731
        Countdown(), {"goal": goal, "poison": poison}, key=KEY, max_steps=8, loop=loop
    )
    batch = jax.vmap(lane)(goals, poisons)
    names = [Status(int(s)).name for s in batch.status]
    assert names == ["CONVERGED", "MAX_STEPS", "CONVERGED", "NONFINITE", "CONVERGED"]
    for i in range(5):
        assert_same(jax.tree.map(lambda leaf, i=i: leaf[i], batch), lane(goals[i], poisons[i]))


@pytest.mark.parametrize("loop", LOOPS)
def test_a_neighbour_with_nan_data_changes_no_bit(loop):
    solver = NoisyDescent(noise=0.01, tolerance=0.05)
    targets = jnp.array([[1.0, 2.0], [-1.0, 0.5], [3.0, 3.0]])
    keys = jax.random.split(KEY, 3)
    lanes = jax.vmap(lambda t, k: run(solver, descent(t), key=k, max_steps=40, loop=loop))
    clean, corrupted = lanes(targets, keys), lanes(targets.at[1].set(jnp.nan), keys)
    assert corrupted.status[1] == Status.NONFINITE
    assert np.isfinite(corrupted.state["x"]).all(), "the last finite state is kept"
    rest = lambda tree: jax.tree.map(lambda leaf: leaf[jnp.array([0, 2])], tree)  # noqa: E731
    assert_same(rest(corrupted), rest(clean))
    assert (clean.status == Status.CONVERGED).all()


def test_infinities_are_no_nan():
    result = run(Countdown(), countdown(goal=2.0), key=KEY, max_steps=5)
    assert np.isneginf(result.state["history"]).any()
    assert result.status == Status.CONVERGED


def test_scan_is_reverse_differentiable():
    """x_T = target + (1 − rate)^T (x_0 − target) without noise, so ∂x_T/∂target = 1 − (1 − rate)^T."""

    def final(target):
        problem = descent(target)
        return run(NoisyDescent(noise=0.0), problem, key=KEY, max_steps=6, loop="scan").state["x"].sum()

    np.testing.assert_allclose(jax.grad(final)(jnp.zeros(3)), 1 - 0.7**6, rtol=1e-5)


class Weak(Countdown):
    """Starts from a Python number: a weakly typed carry."""

    traces = []  # noqa: RUF012

    def init(self, problem, *, key):
        return {"value": jnp.asarray(0.0) * 1.0}

    def step(self, problem, state, *, key):
        self.traces.append(state["value"].weak_type)
        return {"value": state["value"] + 1.0}


def test_a_weakly_typed_start_is_made_strong():
    assert Weak().init(None, key=KEY)["value"].weak_type, "or this test shows nothing"
    Weak.traces.clear()
    result = iterate(Weak(), countdown(3.0), key=KEY, max_steps=5)
    assert Weak.traces == [False], "the step is traced once, with a strongly typed state"
    assert not result.state["value"].weak_type
    assert not start(Weak(), countdown(3.0), key=KEY).state["value"].weak_type


def test_a_state_may_hold_a_key():
    class KeyHolder(NoisyDescent):
        def init(self, problem, *, key):
            return super().init(problem, key=key) | {"key": key}

        def step(self, problem, state, *, key):
            moved = super().step(problem, {k: state[k] for k in ("x", "count")}, key=state["key"])
            return moved | {"key": jax.random.split(state["key"], 1)[0]}

    result = iterate(KeyHolder(), descent(), key=KEY, max_steps=3)
    assert result.step == 3


@pytest.mark.parametrize("loop", LOOPS)
def test_new_data_compile_nothing(loop, count_compilations):
    run = jax.jit(lambda problem, key: iterate(NoisyDescent(), problem, key=key, max_steps=5, loop=loop))
    other, key = descent((7.0, 7.0, 7.0), 0.9), jax.random.key(5)
    run(descent(), KEY)
    with count_compilations() as count:
        run(other, key)
    assert count.compiled == count.traced == []
    assert run._cache_size() == 1


def test_resuming_again_compiles_nothing(count_compilations):
    """The result of a run has the types of its input: no second program for the second chunk."""
    run = jax.jit(lambda it, key: iterate(Weak(), countdown(9.0), key=key, max_steps=4, resume=it))
    first = start(Weak(), countdown(9.0), key=KEY)
    once = run(first, KEY)
    with count_compilations() as count:
        run(once, KEY)
    assert count.compiled == count.traced == []


def test_bad_input():
    with pytest.raises(ValueError, match="loop='for' is unknown"):
        iterate(Countdown(), countdown(), key=KEY, max_steps=3, loop="for")
    with pytest.raises(ValueError, match="max_steps=-1 is negative"):
        iterate(Countdown(), countdown(), key=KEY, max_steps=-1)


def test_works_in_float64(x64):
    result = iterate(NoisyDescent(), descent(), key=KEY, max_steps=4)
    assert isinstance(result, Iteration)
    assert result.state["x"].dtype == jnp.float64
    assert result.step.dtype == result.status.dtype == jnp.int32
    np.testing.assert_allclose(
        result.state["x"], python_loop(NoisyDescent(), descent(), KEY, 4)["x"], rtol=1e-13
    )


def test_worst_status():
    order = ["CONVERGED", "MAX_STEPS", "FILTER_REMOVED_TOO_MUCH", "INFEASIBLE", "NONFINITE"]
    for i, milder in enumerate(order):
        for graver in order[i:]:
            pair = [Status[milder].array(), Status[graver].array()]
            for statuses in (pair, pair[::-1]):
                assert Status(int(worst_status(*statuses))).name == graver
    assert jax.jit(worst_status)(*[s.array() for s in Status if s >= 0]) == Status.NONFINITE
    batch = jax.vmap(worst_status)(jnp.array([0, 1, 2]), jnp.array([4, 3, 0]))
    np.testing.assert_array_equal(batch, [4, 3, 2])
