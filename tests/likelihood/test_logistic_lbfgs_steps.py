"""One step of a limited-memory fit: its model, its memory, its end."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.special
from slow_parameters import slow

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.kernels.ball import newton_point
from robust_rlhf_jax.likelihood import LogisticProblem, logistic_lbfgs
from robust_rlhf_jax.likelihood.logistic_lbfgs import MEMORY, PATIENCE, bfgs_matrix, orthonormal_rows
from robust_rlhf_jax.moments.span import row_span

from .limited_memory_fits import PRECISIONS, problem_of, sample, separable


@pytest.mark.parametrize("wide", PRECISIONS)
def test_basis_is_orthonormal_and_spans_the_rows(wide):
    rng = np.random.default_rng(8)
    rows = rng.normal(size=(9, 6)) * np.logspace(0, -9, 9)[:, None]  # three too many, of all sizes
    rows[2], rows[4] = 0.0, 3.0 * rows[0] - rows[1]
    with jax.enable_x64(wide):
        basis = jax.jit(orthonormal_rows)(jnp.asarray(rows))
    basis = np.asarray(basis, np.float64)
    kept = np.linalg.norm(basis, axis=1) > 0.5
    np.testing.assert_array_equal(kept, [True, True, False, True, False, True, True, True, False])
    tolerance = 1e-14 if wide else 2e-6
    np.testing.assert_allclose(basis @ basis.T, np.diag(kept.astype(float)), atol=tolerance)
    left = np.linalg.norm(rows - rows @ basis.T @ basis, axis=1)
    assert (left <= tolerance * np.linalg.norm(rows, axis=1)).all()


def test_matrix_meets_the_secant_equation_and_is_positive(x64):
    """By = s for the newest pair, and B is that of the inverse recursion of Liu & Nocedal (1989)."""
    rng = np.random.default_rng(9)
    root, scale = rng.normal(size=(5, 5)), 1.7
    moves = rng.normal(size=(3, 5))
    changes = moves @ root @ root.T
    moves[0], changes[0] = 0.0, 0.0  # an empty place
    b = np.asarray(bfgs_matrix(jnp.asarray(moves), jnp.asarray(changes), jnp.asarray(scale)))
    np.testing.assert_allclose(b @ moves[-1], changes[-1], rtol=1e-10)
    assert np.linalg.eigvalsh(b)[0] > 0
    inverse = np.eye(5) / scale
    for s, y in zip(moves[1:], changes[1:], strict=True):
        v = np.eye(5) - np.outer(y, s) / (s @ y)
        inverse = v.T @ inverse @ v + np.outer(s, s) / (s @ y)
    np.testing.assert_allclose(np.linalg.inv(b), inverse, rtol=1e-9, atol=1e-12)


def test_a_pair_that_curves_upwards_does_not_touch_the_matrix(x64):
    moves = np.random.default_rng(9).normal(size=(2, 5))
    changes = np.stack([-moves[0], 2.0 * moves[1]])
    b = [
        bfgs_matrix(jnp.asarray(m), jnp.asarray(c), 1.7)
        for m, c in ((moves, changes), (moves[1:], changes[1:]))
    ]
    np.testing.assert_array_equal(*b)


@pytest.mark.parametrize("wide", [slow(False), True])
@pytest.mark.parametrize("shape", [(80, 6), (20, 50)])
def test_span_of_the_rows_from_either_gram(wide, shape):
    n, k = shape
    rng = np.random.default_rng(10)
    x = rng.normal(size=(n, 4)) @ rng.normal(size=(4, k))
    weights, points = rng.uniform(0.1, 1.0, n), rng.normal(size=(3, k))
    with jax.enable_x64(wide):
        span = jax.jit(row_span)(jnp.asarray(x), jnp.asarray(weights))
        projected, lengths = span.project(jnp.asarray(points)), span.lengths(jnp.asarray(x))
    moment = (x.T * weights) @ x / weights.sum()
    inverse = np.linalg.pinv(moment, rcond=1e-9, hermitian=True)
    assert span.rank == 4
    tolerance = 1e-9 if wide else 1e-3
    np.testing.assert_allclose(projected, points @ np.linalg.pinv(x) @ x, atol=tolerance)
    np.testing.assert_allclose(lengths, np.sqrt(np.sum(x @ inverse * x, axis=1)), rtol=tolerance)


def test_downhill_no_step_is_taken(x64):
    """However short: the old point comes back, with a length of 0."""
    problem = problem_of(*sample())
    state = logistic_lbfgs.BallLBFGS().init(problem, key=None)
    scale, point = logistic_lbfgs.backtrack(problem, state, -state.gradient, 0.0)
    assert scale == 0
    for old, new in zip((state.theta, state.margins, state.value, state.gradient), point, strict=True):
        np.testing.assert_array_equal(new, old)


@pytest.mark.slow
@pytest.mark.parametrize(("scale", "kept"), [(0.0, False), (0.5, True)])
def test_a_step_that_failed_empties_the_memory(scale, kept, x64):
    """A step that moved too little to measure leaves it as it was."""
    problem = problem_of(*sample()[:3])
    solver = logistic_lbfgs.BallLBFGS()
    state = solver.init(problem, key=None)
    state = solver.step(problem, state, key=None)
    assert np.any(state.moves != 0)
    here = (state.theta, state.margins, state.value, state.gradient)
    moves, changes, sigma = logistic_lbfgs._remember(problem, state, here, jnp.asarray(scale))
    np.testing.assert_array_equal(moves, state.moves * kept)
    np.testing.assert_array_equal(changes, state.changes * kept)
    assert sigma == state.scale


@pytest.mark.parametrize(("share", "taken"), [(0.98, False), (1.02, True)])
def test_a_pair_is_remembered_where_its_curvature_is_resolved(share, taken, x64):
    """Beyond four roundings of the gradient along the step: it comes last, the oldest goes, and σ = yᵀy/sᵀy."""
    problem = problem_of(*sample())
    memory = jnp.asarray(np.random.default_rng(1).normal(size=(2, MEMORY, 4)))
    state = logistic_lbfgs.BallLBFGS().init(problem, key=None)
    state = dataclasses.replace(state, moves=memory[0], changes=memory[1], scale=jnp.asarray(0.7))
    curvature = share * 4 * logistic_lbfgs._gradient_rounding(problem, state.margins)
    move, change = np.array([0.0, 2.0, 0.0, 0.0]), np.array([0.3, curvature, 0.0, 0.0])
    # A gradient of zero leaves the change as it is, to the last digit.
    state = dataclasses.replace(state, gradient=jnp.zeros(4))
    there = (state.theta + move, state.margins, state.value, -jnp.asarray(change))
    moves, changes, sigma = logistic_lbfgs._remember(problem, state, there, jnp.ones(()))
    for found, old, new in ((moves, memory[0], move), (changes, memory[1], change)):
        np.testing.assert_allclose(found, np.vstack([old[1:], new]) if taken else old, rtol=1e-12)
    np.testing.assert_allclose(sigma, change @ change / (2 * curvature) if taken else 0.7, rtol=1e-12)


@pytest.mark.slow
def test_a_pair_whose_change_underflows_is_not_remembered():
    """In float32 a change of 10⁻²³ has the square 0, and σ would be 0."""
    problem = problem_of(*(part.astype(np.float32) for part in separable()))
    state = logistic_lbfgs.BallLBFGS().init(problem, key=None)
    change = jnp.asarray([1e-23, 0.0, 0.0, 0.0])
    state = dataclasses.replace(
        state, gradient=jnp.zeros(4), margins=jnp.full(200, 80.0), scale=jnp.asarray(0.7)
    )
    there = (state.theta + jnp.asarray([1.0, 0.0, 0.0, 0.0]), state.margins, state.value, -change)
    moves, _, sigma = logistic_lbfgs._remember(problem, state, there, jnp.ones(()))
    np.testing.assert_array_equal(moves, 0.0)
    assert sigma == state.scale


def test_rounding_errors_are_those_of_the_weighted_sums(x64):
    """One of the gradient's, Σwσ(−m)‖x‖/Σw; four of the value's, Σw(|m|σ(−m) − log σ(m))/Σw."""
    problem, eps = problem_of(*sample()), np.finfo(np.float64).eps
    margins = np.random.default_rng(2).normal(size=200) * 3.0
    missed = scipy.special.expit(-margins)
    of_gradient = eps * float(problem.row_size) * np.average(missed, weights=problem.weights)
    terms = np.abs(margins) * missed - scipy.special.log_expit(margins)
    of_value = 4 * eps * np.average(terms, weights=problem.weights)
    arguments = problem, jnp.asarray(margins)
    np.testing.assert_allclose(logistic_lbfgs._gradient_rounding(*arguments), of_gradient, rtol=1e-12)
    np.testing.assert_allclose(logistic_lbfgs._value_rounding(*arguments), of_value, rtol=1e-12)


def test_the_first_curvature_bounds_that_along_the_gradient(x64):
    """A quarter of the weighted mean of (xᵀĝ)², 1 without a gradient."""
    problem, slope = problem_of(*sample()), np.array([3.0, -1.0, 2.0, 0.5])
    along = (np.asarray(problem.x) @ slope / np.linalg.norm(slope)) ** 2
    found = logistic_lbfgs._steepest_curvature(problem, jnp.asarray(slope))
    np.testing.assert_allclose(found, np.average(along, weights=problem.weights) / 4, rtol=1e-12)
    assert logistic_lbfgs._steepest_curvature(problem, jnp.zeros(4)) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("theta", "slope", "radius", "expected"),
    [
        ([0.6, 0.0], [2.0, 0.0], 1.0, 0.4 / 0.9 * 2.0),  # a step of 0.3 + 0.6 is cut to 0.4
        ([0.6, 0.0], [2.0, 0.0], 0.8, 0.2 / 0.8 * 2.0),  # a step of 0.8 is cut to 0.2
        ([0.6, 0.0], [0.0, 1e-20], 9.0, 1e-20),
        ([0.6, 0.0], [0.0, 3.0], np.inf, 3.0),
        ([0.6, 0.0], [0.0, 0.0], 1.0, 0.0),
    ],
)
def test_far_stationarity_is_that_of_a_long_step(theta, slope, radius, expected, x64):
    """As long as one over the rows' length, 0.3, and ‖θ‖ together, within the radius."""
    problem = problem_of(np.ones((1, 2)), np.ones(1), np.ones(1), radius, np.array(theta))
    problem = dataclasses.replace(problem, row_size=jnp.asarray(1 / 0.3))
    state = logistic_lbfgs.BallLBFGS().init(problem, key=None)
    state = dataclasses.replace(state, theta=jnp.asarray(theta), gradient=jnp.asarray(slope))
    np.testing.assert_allclose(logistic_lbfgs._far_stationarity(problem, state), expected, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "saturated"),
    [
        ({}, True),
        ({"margins": [0.5, 0.0]}, False),
        ({"margins": [0.5, -0.5]}, False),
        ({"margins": [0.5, -0.5], "weights": [1.0, 1e-3]}, False),
        ({"margins": [0.5, -0.5], "weights": [1.0, 0.0]}, True),
        ({"gradient": [0.0, 1e-10]}, False),
        ({"gradient": [0.0, 1e-30]}, True),  # its square is 0
        ({"theta": [0.0, 0.0]}, False),
        ({"theta": [9.98, 0.0]}, True),
        ({"theta": [9.995, 0.0]}, False),  # on the sphere, nearly
        ({"radius": np.inf}, False),
    ],
)
def test_saturated_is_who_explains_all_pairs_inside_the_ball(change, saturated):
    of = {
        "theta": [0.5, 0.0],
        "margins": [0.5, 0.5],
        "gradient": [0.0, 0.0],
        "weights": [1.0, 1.0],
        "radius": 10.0,
    }
    of = {name: jnp.asarray(value, jnp.float32) for name, value in (of | change).items()}
    problem = LogisticProblem(
        jnp.ones((2, 2)), jnp.ones(2), of.pop("weights"), of.pop("radius"), None, jnp.zeros(2)
    )
    state = dataclasses.replace(logistic_lbfgs.BallLBFGS().init(problem, key=None), **of)
    assert logistic_lbfgs._is_saturated(problem, state) == saturated


@pytest.mark.parametrize(
    ("share", "idle", "done"),
    [
        (0.98, 0, True),
        (1.02, 0, False),
        (1.02, PATIENCE - 1, False),
        (1.02, PATIENCE, True),
        (1.02, PATIENCE + 1, True),
        (0.98, PATIENCE, True),
        # Saturated: θ is on its way along the ray.
        (0.0, 0, False),
        (0.0, PATIENCE, False),
        (0.0, 2 * PATIENCE - 1, False),
        (0.0, 2 * PATIENCE, True),
        (0.0, 2 * PATIENCE + 1, True),
    ],
)
def test_it_ends_at_a_flat_gradient_or_without_gains(share, idle, done, x64):
    """Flat: 32 rounding errors of the gradient. A ray is followed twice as long without gains."""
    problem = problem_of(*sample())
    state = logistic_lbfgs.BallLBFGS().init(problem, key=None)
    margins = jnp.full(200, 2.0).at[0].set(2.0 if share == 0 else -2.0)
    flat = 32 * logistic_lbfgs._gradient_rounding(problem, margins)
    slope = share * flat * jnp.asarray([0.0, 1.0, 0.0, 0.0])
    state = dataclasses.replace(
        state, theta=jnp.ones(4), margins=margins, gradient=slope, idle=jnp.asarray(idle, jnp.int32)
    )
    status = Status.CONVERGED if done else Status.RUNNING
    assert logistic_lbfgs.BallLBFGS().terminate(problem, state) == status


lbfgs_step = jax.jit(lambda problem, state: logistic_lbfgs.BallLBFGS().step(problem, state, key=None))


@pytest.mark.slow
@pytest.mark.parametrize(("gaps", "risen"), [(0.5, False), (2.0, True)])
def test_only_a_measurable_rise_moves_the_mark(gaps, risen, x64):
    """Else the steps without one are counted."""
    problem = problem_of(*sample())
    state = dataclasses.replace(
        logistic_lbfgs.BallLBFGS().init(problem, key=None), idle=jnp.asarray(3, jnp.int32)
    )
    reached = lbfgs_step(problem, state).value
    mark = reached - gaps * logistic_lbfgs._value_rounding(problem, state.margins)
    after = lbfgs_step(problem, dataclasses.replace(state, mark=mark))
    assert (float(after.mark), int(after.idle)) == ((float(reached), 0) if risen else (float(mark), 4))


def test_a_saturated_step_goes_straight_to_the_sphere(x64):
    data = x, labels, _ = separable()
    direction = np.linspace(1, -0.6, 4)
    problem = problem_of(*data, radius=1e6, start=1e5 * direction)
    near = np.abs(x @ direction) > 0.05  # of these every likelihood is 1
    problem = dataclasses.replace(problem, weights=jnp.asarray(near.astype(float)))
    state = logistic_lbfgs.BallLBFGS().init(problem, key=None)
    assert jnp.dot(state.gradient, state.gradient) == 0
    after = lbfgs_step(problem, state)
    np.testing.assert_allclose(after.theta, 1e6 * direction / np.linalg.norm(direction), rtol=1e-12)
    assert (labels * (x @ after.theta) > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("radius", [0.5, 1e3])
def test_a_move_maximises_the_model_of_all_parameters(radius, x64):
    """With a full memory, in forty dimensions, beside the model written out in all of them."""
    rng = np.random.default_rng(3)
    root, theta, slope = rng.normal(size=(40, 40)), 0.01 * rng.normal(size=40), rng.normal(size=40)
    moves = rng.normal(size=(MEMORY, 40))
    changes = moves @ (root @ root.T) / 40
    problem = problem_of(*sample(1000, 40, 3), radius=radius)
    state = logistic_lbfgs.BallLBFGS().init(problem, key=None)
    theta, slope, moves, changes, scale = map(jnp.asarray, (theta, slope, moves, changes, 0.7))
    state = dataclasses.replace(state, theta=theta, gradient=slope, moves=moves, changes=changes, scale=scale)
    target = newton_point(theta, slope, bfgs_matrix(moves, changes, scale), jnp.asarray(radius))
    np.testing.assert_allclose(logistic_lbfgs._move(problem, state), target - theta, rtol=1e-7, atol=1e-9)


def test_rows_that_nearly_depend_are_orthogonal_to_the_last_digit(x64):
    """A single pass leaves 10⁻¹⁰, the rounding of what is left of the second row."""
    rows = np.random.default_rng(4).normal(size=(3, 6))
    rows[1] = rows[0] + 1e-6 * rows[1]
    basis = np.asarray(orthonormal_rows(jnp.asarray(rows)))
    np.testing.assert_allclose(basis @ basis.T, np.eye(3), atol=1e-15)


def test_a_pair_of_little_curvature_counts_as_well(x64):
    moves = np.array([[1e-4, 2e-4, 0.0]])
    changes = np.array([[3e-4, 0.0, 1e-4]])
    b = np.asarray(bfgs_matrix(jnp.asarray(moves), jnp.asarray(changes), jnp.asarray(1.7)))
    np.testing.assert_allclose(b @ moves[0], changes[0], rtol=1e-12, atol=1e-18)
