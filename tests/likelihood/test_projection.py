"""The steps of a projection on a confidence set: when one is halved, and when they end."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax._iterate import Status, iterate
from robust_rlhf_jax.kernels.halfspace import CutBallPoint
from robust_rlhf_jax.likelihood import WarmStart
from robust_rlhf_jax.likelihood.projection import (
    MAX_HALVINGS,
    MAX_STEPS,
    ProjectionProblem,
    RefreshedCurvature,
    RoundState,
    SequentialQuadratic,
    _left,
    _model_minimiser,
    tolerance,
)

from .example_sets import EPS, K, N, example_set
from .logistic_reference import gradient, mean_likelihood


def test_tolerance_grows_with_the_point():
    at_zero, at_three = (float(tolerance(jnp.asarray([v]))) for v in (0.0, -3.0))
    assert at_three == pytest.approx(4 * at_zero)
    assert 0.1 < at_zero / np.finfo(np.float32).eps ** 0.5 < 1.0


@pytest.mark.parametrize(
    ("step", "previous", "left"),
    [
        (0.1, np.inf, 0.1),  # the first step
        (0.05, 0.2, 0.05 / 3),  # 1/4 + 1/16 + … = 1/3
        (0.07, 0.2, 0.07),  # not yet geometric
        (0.4, 0.2, 0.4),
    ],
)
def test_steps_that_shrink_leave_a_geometric_rest(step, previous, left):
    assert float(_left(jnp.asarray(step), jnp.asarray(previous))) == pytest.approx(left, rel=1e-5)


def example_problem(y, warm, radius=100.0, zeta=0.05, multiplier=0.0):
    """In the coordinates of `example_set`, whose ball is out of the way."""
    allowed = example_set(zeta)
    data = (allowed.x, allowed.labels, allowed.weights, allowed.floor, jnp.asarray(radius))
    warm = WarmStart(jnp.asarray(warm), jnp.asarray(multiplier))
    return ProjectionProblem(jnp.asarray(y), warm, *data, allowed.eigenvalues, allowed.eigenvectors)


search = jax.jit(lambda *args: SequentialQuadratic()._search(*args))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("share", "reach", "multiplier", "halvings"),
    [
        (0.0, 1.0, 0.0, 0),
        (0.0, 5.0, 0.0, 2),
        (0.0, 1.0, 30.0, 2),
        (0.0, 1.0, 100.0, 2),
        (0.0, 5.0, 100.0, 5),
        (0.0, -1.0, 0.0, MAX_HALVINGS),
        (0.9, -0.1, 1.0, 3),
        (0.9, -0.1, 5.0, 0),
    ],
)
def test_a_step_is_halved_until_the_merit_falls(share, reach, multiplier, halvings, x64):
    """½‖θ − y‖² + λ·max(0, floor − ℓ(θ)) by NumPy; from the centre, or from beyond the bound on the way to y."""
    centre = np.asarray(example_set(0.05).centre)
    away = np.array([1.5, -2.0, 0.5, 1.0, -1.0])
    y, begin, move = centre + away, centre + share * away, reach * away
    problem = example_problem(y, begin)
    state = SequentialQuadratic().init(problem, key=None)
    target = CutBallPoint(jnp.asarray(begin + move), jnp.asarray(multiplier), jnp.asarray(True))
    found = search(problem, state, target, jnp.asarray(False))

    def merit(theta):
        value = mean_likelihood(theta, np.asarray(problem.x), np.asarray(problem.labels), np.ones(N))
        return 0.5 * np.sum((theta - y) ** 2) + multiplier * max(float(problem.floor) - value, 0.0)

    scales = 0.5 ** np.arange(MAX_HALVINGS)
    falls = [merit(begin + scale * move) < merit(begin) for scale in scales]
    assert halvings == (np.argmax(falls) if any(falls) else MAX_HALVINGS)
    np.testing.assert_allclose(found.theta, begin + 0.5**halvings * move, rtol=1e-12)
    length = 0.5**halvings * np.linalg.norm(move)
    np.testing.assert_allclose([found.step_size, found.left], length, rtol=1e-12)  # after an infinite step
    assert float(found.multiplier) == multiplier
    assert not found.feasible


@pytest.mark.slow
@pytest.mark.parametrize(("excess", "halved"), [(50, False), (64, True)])
def test_a_merit_that_rounding_may_have_raised_is_no_reason_to_halve(excess, halved, x64):
    """From y − e to y + (1 + δ)e the merit rises by δ; forgiven are 16 rounding errors of 1 + ½ + λ, 56 eps."""
    y, e = np.zeros(K), np.eye(K)[0]
    problem = example_problem(y, -e, zeta=50.0)
    state = SequentialQuadratic()._state(problem, jnp.asarray(-e), jnp.zeros(()), jnp.ones(()))
    target = CutBallPoint(jnp.asarray((1 + excess * EPS) * e), jnp.asarray(2.0), jnp.asarray(True))
    found = search(problem, state, target, jnp.asarray(True))
    assert (float(found.step_size) < 1.5) == halved


def test_the_model_holds_its_own_multiplier(x64):
    """min ½‖u − y‖² + ½λ(u − θ)ᵀC(u − θ) where ∇ℓᵀ(u − θ) = floor − ℓ, at the state's λ, then at what that gives."""
    rng = np.random.default_rng(12)
    centre = np.asarray(example_set(0.05).centre)
    y, theta = centre + 2.0 * rng.normal(size=K), centre + 0.5 * rng.normal(size=K)
    problem = example_problem(y, theta, multiplier=3.0)
    state = SequentialQuadratic()._state(problem, jnp.asarray(theta), jnp.asarray(3.0), jnp.ones(()))
    point, feasible = jax.jit(_model_minimiser)(problem, state)
    x, labels = np.asarray(problem.x), np.asarray(problem.labels)
    normal, turn = gradient(theta, x, labels, np.ones(N)), np.asarray(problem.eigenvectors)
    level = normal @ theta + float(problem.floor) - mean_likelihood(theta, x, labels, np.ones(N))
    curvature, multiplier = turn * problem.eigenvalues @ turn.T, 3.0
    for _ in range(2):
        inverse = np.linalg.inv(np.eye(K) + multiplier * curvature)
        free = inverse @ (y + multiplier * curvature @ theta)
        multiplier = (level - normal @ free) / (normal @ inverse @ normal)
    assert multiplier > 0
    np.testing.assert_allclose(point.multiplier, multiplier, rtol=1e-9)
    np.testing.assert_allclose(point.point, free + multiplier * inverse @ normal, rtol=1e-9, atol=1e-12)
    assert feasible


def test_a_projection_ends_where_what_is_left_is_the_tolerance(x64):
    problem = example_problem(np.zeros(K), np.zeros(K))
    solver = SequentialQuadratic()
    state = solver.init(problem, key=None)
    enough = tolerance(state.theta)
    for left, feasible, status in (
        (enough, True, Status.CONVERGED),
        (np.nextafter(enough, 1.0), True, Status.RUNNING),
        (enough, False, Status.INFEASIBLE),
    ):
        changed = eqx.tree_at(
            lambda s: (s.left, s.feasible), state, (jnp.asarray(left), jnp.asarray(feasible))
        )
        assert solver.terminate(problem, changed) == status


@pytest.mark.slow
def test_a_stuck_projection_goes_on_with_the_curvature_of_where_it_is(x64):
    """Alone a search that made all of its steps is stuck; its programs count on."""
    rng = np.random.default_rng(13)
    theta, y = 2.0 * rng.normal(size=K), 30.0 * rng.normal(size=K)
    problem = example_problem(y, np.zeros(K), zeta=0.005)
    solver, seven = RefreshedCurvature(), jnp.asarray(7, jnp.int32)
    stuck = RoundState(WarmStart(jnp.asarray(theta), jnp.asarray(1.0)), Status.MAX_STEPS.array(), seven)
    assert solver.terminate(problem, stuck) == Status.RUNNING
    for status in (Status.CONVERGED, Status.NONFINITE, Status.INFEASIBLE):
        assert solver.terminate(problem, RoundState(stuck.warm, status.array(), seven)) == status
    chance = 1 / (1 + np.exp(-np.asarray(problem.x) @ theta))
    curvature = (problem.x.T * (chance * (1 - chance))) @ problem.x / N
    here = (stuck.warm, *np.linalg.eigh(curvature))
    fresh = eqx.tree_at(lambda p: (p.warm, p.eigenvalues, p.eigenvectors), problem, here)
    expected = iterate(SequentialQuadratic(), fresh, max_steps=MAX_STEPS)
    found = jax.jit(lambda *args: solver.step(*args, key=None))(problem, stuck)
    assert found.solves == 7 + expected.step
    np.testing.assert_allclose(found.warm.theta, expected.state.theta, rtol=1e-9)
    np.testing.assert_allclose(found.warm.multiplier, expected.state.multiplier, rtol=1e-7)
