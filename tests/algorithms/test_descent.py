"""Projected subgradient descent: known minima, its switches, its history, and the theory's parameters."""

import inspect
import itertools
from types import SimpleNamespace

import chex
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax._iterate import Status, iterate, worst_status
from robust_rlhf_jax.algorithms import DescentConfig
from robust_rlhf_jax.algorithms.descent import (
    Descent,
    DescentProblem,
    Evaluation,
    History,
    SubgradientDescent,
    descend,
    first_order_parameters,
    then,
    theory_parameters,
    unmoved,
)
from robust_rlhf_jax.likelihood.projection import Projection


class Cone(eqx.Module):
    """‖θ − centre‖₂, whose minimum is a kink; NaN beyond `cliff` in the first coordinate."""

    centre: jax.Array
    cliff: jax.Array

    calls = 1
    memory = None

    def evaluate(self, theta, memory, *, key):
        offset = theta - self.centre
        size = jnp.linalg.norm(offset)
        gradient = offset / jnp.where(size > 0, size, 1.0)
        fine = theta[0] <= self.cliff
        status = jnp.where(fine, Status.CONVERGED.array(), Status.NONFINITE.array())
        return Evaluation(jnp.where(fine, size, jnp.nan), gradient, status)


class Box(eqx.Module):
    """{|θ_i| ≤ radius}."""

    centre: jax.Array
    radius: jax.Array

    def contains(self, theta):
        return jnp.all(jnp.abs(theta) <= self.radius)

    def project(self, y, warm=None):
        none = jnp.zeros((), y.dtype)
        status = jnp.where(jnp.any(jnp.isnan(y)), Status.NONFINITE.array(), Status.CONVERGED.array())
        return Projection(jnp.clip(y, -self.radius, self.radius), none, jnp.ones((), jnp.int32), status)


def cone_in_a_box(centre, cliff=np.inf, step_size=1.0, fade=np.inf):
    centre = jnp.asarray(centre)
    box = Box(jnp.zeros_like(centre), jnp.asarray(1.0, centre.dtype))
    cone = Cone(centre, jnp.asarray(cliff, centre.dtype))
    return DescentProblem(cone, box, box.centre, jnp.asarray(step_size, centre.dtype), fade)


run = eqx.filter_jit(
    lambda problem, steps, solver: descend(problem, key=jax.random.key(0), steps=steps, solver=solver)
)
SOLVERS = {
    "default": (SubgradientDescent(), 1.0, 400.0, 1e-3),
    "constant rate": (SubgradientDescent(), 1.0, np.inf, 5e-2),
    "as printed": (SubgradientDescent(adaptive=False, averaging=0.0), 0.05, np.inf, 0.1),
}


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("centre", [[0.3, -0.2, 0.6], [2.0, 0.5, -3.0]])
def test_finds_the_kink_or_the_corner(name, centre, x64):
    solver, step_size, fade, tolerance = SOLVERS[name]
    found = run(cone_in_a_box(centre, step_size=step_size, fade=fade), 400, solver)
    expected = np.clip(centre, -1, 1)
    assert found.status == Status.CONVERGED
    np.testing.assert_allclose(found.theta, expected, atol=tolerance)
    assert found.steps == found.calls == 400
    assert found.best_value <= np.linalg.norm(expected - centre) + tolerance


class Bowl(eqx.Module):
    """½θᵀAθ − b·θ, at three calls an evaluation; what it remembers is how often it was asked."""

    shape: jax.Array
    slope: jax.Array

    calls = 3

    @property
    def memory(self):
        return jnp.zeros((), jnp.int32)

    def evaluate(self, theta, memory, *, key):
        bent = self.shape @ theta
        value = 0.5 * theta @ bent - self.slope @ theta
        return Evaluation(value, bent - self.slope, Status.CONVERGED.array(), memory + 1)


@pytest.mark.slow
@pytest.mark.parametrize(("adaptive", "averaging"), [(False, 0.0), (True, 2.5)])
def test_every_step_against_numpy(adaptive, averaging, x64):
    """Seven steps in a box, of which the last two are of length 0 since η has faded after five."""
    shape, slope, step_size, fade = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([1.0, 0.7]), 0.3, 5.0
    start = jnp.asarray([-3.0, 0.2])
    box = Box(jnp.zeros(2), jnp.asarray(1.0))
    problem = DescentProblem(Bowl(shape, slope), box, start, jnp.asarray(step_size), fade)
    solver = SubgradientDescent(adaptive, averaging, history_length=7)
    found = run(problem, 7, solver)
    state = iterate(solver, problem, key=jax.random.key(0), max_steps=7).state
    theta, squares, average = np.clip(start, -1, 1), 0.0, np.zeros(2)
    thetas, values, norms = [], [], []
    for t in range(7):
        gradient = shape @ theta - slope
        thetas.append(theta)
        values.append(0.5 * theta @ shape @ theta - slope @ theta)
        norms.append(np.linalg.norm(gradient))
        squares += norms[-1] ** 2
        rate = step_size / (np.sqrt(squares) if adaptive else 1.0) * max(1 - t / fade, 0.0)
        theta = np.clip(theta - rate * gradient, -1, 1)
        average += (averaging + 1) / (t + 1 + averaging) * (theta - average)
    np.testing.assert_allclose(found.theta, average, rtol=1e-12)
    np.testing.assert_allclose(state.theta, theta, rtol=1e-12)
    np.testing.assert_allclose(state.squares, squares, rtol=1e-12)
    np.testing.assert_allclose(found.history.theta, thetas, rtol=1e-12)
    np.testing.assert_allclose(found.history.value, values, rtol=1e-12)
    np.testing.assert_allclose(found.history.gradient_norm, norms, rtol=1e-12)
    np.testing.assert_allclose(found.best_value, min(values), rtol=1e-12)
    np.testing.assert_allclose(found.best_theta, thetas[int(np.argmin(values))], rtol=1e-12)
    assert (found.steps, found.calls, found.solves, state.memory) == (7, 21, 7, 7)
    np.testing.assert_array_equal(found.history.theta[5], found.history.theta[6])


def test_of_equally_good_iterates_the_first_is_the_best(x64):
    """Steps of 1 about a kink at ½ go to and fro between 0 and 1."""
    found = run(cone_in_a_box([0.5]), 4, SubgradientDescent(adaptive=False))
    assert found.best_value == 0.5
    assert found.best_theta == 0.0


@pytest.mark.slow
def test_one_step_by_the_default_solver(x64):
    problem = cone_in_a_box([0.3, -0.2, 0.6])
    usual = descend(problem, key=jax.random.key(0), steps=1)
    assert usual.steps == 1
    assert usual.history is None
    np.testing.assert_array_equal(usual.theta, run(problem, 1, SubgradientDescent()).theta)


def test_the_default_average_is_the_same_everywhere():
    assert SubgradientDescent().averaging == DescentConfig().averaging


@pytest.mark.parametrize(("oracle", "projection"), list(itertools.product(Status, Status)))
def test_only_what_cannot_be_mended_ends_a_descent(oracle, projection):
    state = SimpleNamespace(oracle_status=oracle.array(), projection_status=projection.array())
    found = SubgradientDescent().terminate(None, state)
    lost = oracle == Status.NONFINITE or projection in (Status.NONFINITE, Status.INFEASIBLE)
    expected = worst_status(oracle.array(), projection.array()) if lost else Status.RUNNING
    assert found == expected


class Slope(eqx.Module):
    """A plane of value 0 whose gradient and status are given."""

    gradient: jax.Array
    status: jax.Array

    calls = 1
    memory = None

    def evaluate(self, theta, memory, *, key):
        return Evaluation(jnp.zeros(()), self.gradient, self.status)


@pytest.mark.parametrize("status", [Status.MAX_STEPS, Status.FILTER_REMOVED_TOO_MUCH, Status.INFEASIBLE])
def test_what_an_oracle_complains_of_is_told_after_all_steps(status):
    box = Box(jnp.zeros(2), jnp.asarray(1.0))
    problem = DescentProblem(Slope(jnp.ones(2), status.array()), box, box.centre, jnp.asarray(0.1))
    found = run(problem, 3, SubgradientDescent())
    assert found.steps == 3
    assert found.status == status


def test_a_gradient_of_nan_is_nonfinite_whatever_the_oracle_says():
    box = Box(jnp.zeros(2), jnp.asarray(1.0))
    plane = Slope(jnp.full(2, jnp.nan), Status.CONVERGED.array())
    found = run(DescentProblem(plane, box, box.centre, jnp.asarray(0.1)), 3, SubgradientDescent())
    assert found.status == Status.NONFINITE
    assert found.steps == 0
    assert np.isfinite(found.theta).all()


@pytest.mark.slow
def test_averages_are_those_of_the_history(x64):
    """averaging = 0: the plain mean of θ_1 … θ_T; p: weights close to tᵖ."""
    problem = cone_in_a_box([0.3, -0.2, 0.6], step_size=0.1)
    path = []
    for steps in range(1, 6):
        last = iterate(SubgradientDescent(), problem, key=jax.random.key(0), max_steps=steps)
        path.append(np.asarray(last.state.theta))
    plain = run(problem, 5, SubgradientDescent(averaging=0.0)).theta
    np.testing.assert_allclose(plain, np.mean(path, axis=0), rtol=1e-12)
    linear = run(problem, 5, SubgradientDescent(averaging=1.0)).theta
    np.testing.assert_allclose(linear, np.average(path, axis=0, weights=range(1, 6)), rtol=1e-12)


@pytest.mark.slow
def test_history_and_resumption(x64):
    problem, key = cone_in_a_box([0.3, -0.2, 0.6], fade=20.0), jax.random.key(1)
    solver = SubgradientDescent(history_length=10)
    whole = iterate(solver, problem, key=key, max_steps=10)
    half = iterate(solver, problem, key=key, max_steps=4)
    resumed = iterate(solver, problem, key=key, max_steps=10, resume=half)
    for a, b in zip(jax.tree.leaves(whole), jax.tree.leaves(resumed), strict=True):
        np.testing.assert_array_equal(a, b)
    assert np.isinf(half.state.history.value[4:]).all()
    thetas = np.asarray(whole.state.history.theta)
    np.testing.assert_allclose(
        whole.state.history.value, np.linalg.norm(thetas - [0.3, -0.2, 0.6], axis=1), rtol=1e-12
    )
    assert whole.state.best_value == whole.state.history.value.min()


@pytest.mark.slow
def test_a_lane_whose_oracle_fails_stops_alone(x64):
    """Lane 1 walks over the cliff: it says nonfinite, keeps its finite average, and lane 0 is as if alone."""
    problems = [cone_in_a_box([0.5, 0.5], cliff) for cliff in (np.inf, 0.2)]
    batch = jax.tree.map(lambda *leaves: jnp.stack(leaves), *problems)
    found = jax.jit(jax.vmap(lambda p: descend(p, key=jax.random.key(0), steps=50)))(batch)
    alone = run(problems[0], 50, SubgradientDescent())
    assert found.status.tolist() == [Status.CONVERGED, Status.NONFINITE]
    assert found.steps[1] < 50
    assert np.isfinite(found.theta).all()
    np.testing.assert_allclose(found.theta[0], alone.theta, rtol=1e-12)


@pytest.mark.slow
def test_a_second_descent_mends_what_the_first_oracle_got_wrong(x64):
    wrong, right = cone_in_a_box([-0.6, 0.5]), cone_in_a_box([0.3, -0.4])
    key = jax.random.key(0)
    first = descend(wrong, key=key, steps=200)
    again = eqx.tree_at(lambda p: p.start, right, first.theta)
    both = then(first, descend(again, key=key, steps=200))
    np.testing.assert_allclose(both.theta, [0.3, -0.4], atol=0.02)
    assert (both.steps, both.calls, both.solves) == (400, 400, 400)
    assert both.best_value <= first.best_value


@pytest.mark.slow
def test_a_descent_after_none_is_that_descent(x64):
    found = descend(cone_in_a_box([0.3, 0.0]), key=jax.random.key(0), steps=50)
    chex.assert_trees_all_equal(then(unmoved(found.theta + 1.0), found), found)


def test_the_number_of_steps_may_be_traced(x64):
    problem, key = cone_in_a_box([0.3, 0.0]), jax.random.key(0)
    given = jax.jit(lambda steps: descend(problem, key=key, steps=steps))
    chex.assert_trees_all_equal(given(20), jax.jit(lambda: descend(problem, key=key, steps=20))())


@pytest.mark.slow
def test_a_second_descent_does_not_hide_that_the_first_was_lost(x64):
    fell = descend(cone_in_a_box([0.9, 0.0], cliff=0.5), key=jax.random.key(0), steps=50)
    whole = descend(cone_in_a_box([0.3, 0.0]), key=jax.random.key(0), steps=50)
    assert then(fell, whole).status == Status.NONFINITE
    assert then(whole, whole).status == Status.CONVERGED
    assert then(whole, fell).status == Status.NONFINITE


def ended(theta, best, counts, status, history=None):
    """A descent that found `theta` and saw the value `best` there; `counts`: steps, calls, solves."""
    theta = jnp.asarray(theta)
    return Descent(theta, theta, jnp.asarray(best), *counts, jnp.asarray(status), history)


@pytest.mark.parametrize(("bests", "kept"), [((1.0, 2.0), 0), ((2.0, 1.0), 1), ((1.0, 1.0), 1)])
def test_two_descents_as_one(bests, kept):
    thetas = ([1.0, 2.0], [3.0, 4.0])
    history = History(jnp.zeros(1), jnp.zeros(1), jnp.zeros((1, 2)))
    first = ended(thetas[0], bests[0], (3, 5, 11), Status.INFEASIBLE, history)
    second = ended(thetas[1], bests[1], (17, 29, 41), Status.CONVERGED, history)
    both = then(first, second)
    np.testing.assert_array_equal(both.theta, thetas[1])
    np.testing.assert_array_equal(both.best_theta, thetas[kept])
    assert both.best_value == bests[kept]
    assert (both.steps, both.calls, both.solves) == (20, 34, 52)
    assert both.status == Status.CONVERGED
    assert both.history is None


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (descend, "key"),
        (first_order_parameters, "longest"),
        (SubgradientDescent.init, "key"),
        (SubgradientDescent.step, "key"),
    ],
)
def test_keys_and_bounds_go_by_name(function, name):
    assert inspect.signature(function).parameters[name].kind is inspect.Parameter.KEYWORD_ONLY


def test_no_steps_are_refused():
    with pytest.raises(ValueError, match=r"steps=0: give 1 or more\."):
        descend(cone_in_a_box([0.0]), key=jax.random.key(0), steps=0)


def test_theory_parameters_balance_their_bound():
    """With K, T, μ, η as given the four terms of the error are those that the docstring states, in pairs equal."""
    accuracy, horizon, dim, miss = 0.01, 3, 4, 0.1
    found = theory_parameters(accuracy, horizon, dim, miss)
    k = horizon * dim
    diameter, lipschitz, reach = np.sqrt(k), np.sqrt(horizon), 4 * np.sqrt(k)
    oracle = 2 * diameter * 2 * accuracy * reach / found.smoothing_std
    smoothing = found.smoothing_std * lipschitz * np.sqrt(k)
    longest = lipschitz * reach**2 + 2 * accuracy * reach / found.smoothing_std
    sampling = 2 * diameter * longest * np.sqrt(8 * np.log(2 * found.steps / miss) / found.n_directions)
    descent = 2 * diameter * longest / np.sqrt(found.steps)
    np.testing.assert_allclose(oracle, smoothing, rtol=1e-5)
    np.testing.assert_allclose(sampling, oracle + smoothing, rtol=1e-5)
    np.testing.assert_allclose(descent, oracle + smoothing, rtol=1e-5)
    np.testing.assert_allclose(found.step_size, 2 * diameter / (longest * np.sqrt(found.steps)), rtol=1e-5)
    assert theory_parameters(accuracy / 4, horizon, dim).steps > found.steps


@pytest.mark.parametrize(
    ("accuracy", "miss"),
    [(0.0, 0.1), (-1.0, 0.1), (np.nan, 0.1), *((0.1, miss) for miss in (0.0, -0.5, 1.0, 1.5, np.nan))],
)
def test_bad_theory_settings(accuracy, miss):
    with pytest.raises(ValueError, match="needs accuracy > 0"):
        theory_parameters(accuracy, 3, 4, miss)


def worst_gap(steps, step_size, slope, radius):
    """Gap of the average iterate on f(θ) = G|θ − a| over [−D, D], the worst of many a; NumPy, from −D."""
    targets = np.linspace(-radius, radius, 401)
    theta, total = np.full(targets.shape, -radius), np.zeros(targets.shape)
    for _ in range(int(np.ceil(steps))):
        total += theta
        theta = np.clip(theta - step_size * slope * np.sign(theta - targets), -radius, radius)
    return (slope * np.abs(total / np.ceil(steps) - targets)).max()


@pytest.mark.parametrize(("accuracy", "longest"), [(2.0, 10.0), (1.0, 3.0), (0.5, None)])
def test_first_order_parameters_reach_their_accuracy(accuracy, longest):
    horizon, dim = 2, 3
    found = first_order_parameters(accuracy, horizon, dim, longest=longest)
    slope, radius = (np.sqrt(2) if longest is None else longest) + np.sqrt(2), np.sqrt(6)
    np.testing.assert_allclose(found.steps, (2 * radius * slope / accuracy) ** 2)
    assert worst_gap(found.steps, found.step_size, slope, radius) <= accuracy
    finer = first_order_parameters(accuracy / 2, horizon, dim, longest=longest)
    np.testing.assert_allclose([finer.steps / found.steps, found.step_size / finer.step_size], [4.0, 2.0])
    smaller = first_order_parameters(accuracy, horizon, dim, longest=longest, radius=radius / 2)
    np.testing.assert_allclose(smaller.steps, found.steps / 4)


def test_the_printed_steps_of_theorem_5_1_miss_their_accuracy():
    """T = D²G/f² and η = D/√(GT): G = 30 misses f several times over, where the corrected ones reach it."""
    accuracy, slope, radius = 1.0, 30.0, np.sqrt(6)
    steps = radius**2 * slope / accuracy**2
    assert worst_gap(steps, radius / np.sqrt(slope * steps), slope, radius) > 3 * accuracy
    right = first_order_parameters(accuracy, 2, 3, longest=slope - np.sqrt(2))
    assert worst_gap(right.steps, right.step_size, slope, radius) <= accuracy


def test_bad_first_order_settings():
    for name, value in itertools.product(("accuracy", "longest", "radius"), (0.0, -0.5, float("nan"))):
        bad = {name: value}
        with pytest.raises(ValueError, match="all must be positive"):
            first_order_parameters(**({"accuracy": 0.1, "horizon": 2, "dim": 3} | bad))


def test_first_order_settings_may_be_small():
    """2D(G + √H)/f, squared: here 2·½·(½ + √2)/.1."""
    found = first_order_parameters(0.1, 2, 3, longest=0.5, radius=0.5)
    np.testing.assert_allclose(found.steps, (10 * (0.5 + np.sqrt(2))) ** 2)
    np.testing.assert_allclose(found.step_size, 1.0 / ((0.5 + np.sqrt(2)) * np.sqrt(found.steps)))
