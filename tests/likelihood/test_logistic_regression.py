"""Maximum likelihood on a ball against scikit-learn (free) and SciPy (constrained)."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.special
from sklearn.linear_model import LogisticRegression
from slow_parameters import slow

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.kernels.rounding import rounding_of
from robust_rlhf_jax.likelihood import LogisticProblem, fit_logistic
from robust_rlhf_jax.likelihood.logistic_problem import backtrack, begin
from robust_rlhf_jax.likelihood.logistic_regression import (
    KEEP,
    RENEW,
    REUSE_BELOW,
    SAMPLE,
    SAMPLED_ROWS,
    STRIDE,
    BallNewton,
    NewtonState,
    _gradient_floor,
    sample_suffices,
)

from .logistic_reference import gradient, mean_likelihood, slsqp

# The solver stops where the value no longer rises: a gain of 4 rounding errors moves the gradient by their root.
GRADIENT = {False: 1e-4, True: 1e-8}


@jax.jit
def run(x, labels, weights, radius, projector, start):
    return fit_logistic(LogisticProblem(x, labels, weights, radius, projector, start))


def fit(x, labels, weights=None, radius=100.0, projector=None, start=None):
    n, k = x.shape
    weights = np.ones(n) if weights is None else weights
    projector = np.eye(k) if projector is None else projector
    start = np.zeros(k) if start is None else start
    return run(*map(jnp.asarray, (x, labels, weights, radius, projector, start)))


def sample(n=200, k=4, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    x, theta = rng.normal(size=(n, k)), scale * rng.normal(size=k)
    labels = np.where(rng.uniform(size=n) < scipy.special.expit(x @ theta), 1.0, -1.0)
    return x, labels, rng.uniform(0.1, 1.0, n)


@pytest.mark.parametrize(("wide", "tolerance"), [slow(False, 3e-4), (True, 1e-7)])
def test_free_fit_is_that_of_scikit_learn(wide, tolerance):
    x, labels, weights = sample()
    model = LogisticRegression(C=1e12, fit_intercept=False, tol=1e-12, max_iter=10_000)
    model.fit(x, labels, sample_weight=weights)
    with jax.enable_x64(wide):
        theta, value, norm, steps, _, _, status = fit(x, labels, weights)
        assert theta.dtype == value.dtype == (jnp.float64 if wide else jnp.float32)
    np.testing.assert_allclose(theta, model.coef_[0], atol=tolerance)
    np.testing.assert_allclose(value, mean_likelihood(model.coef_[0], x, labels, weights), rtol=1e-6)
    assert norm < GRADIENT[wide]
    slope = np.linalg.norm(gradient(np.asarray(theta, float), x, labels, weights))
    np.testing.assert_allclose(norm, slope, rtol=1e-2, atol=1e-6 if not wide else 1e-14)
    assert status == Status.CONVERGED
    assert 2 <= steps <= 25


@pytest.mark.parametrize(("wide", "tolerance"), [slow(False, 1e-4), (True, 1e-6)])
@pytest.mark.parametrize("share", [0.1, 0.6, 0.95])
def test_binding_ball_against_scipy(wide, tolerance, share):
    x, labels, weights = sample(seed=1)
    free = slsqp(x, labels, weights, 1e3)
    radius = share * np.linalg.norm(free)
    expected = slsqp(x, labels, weights, radius)
    with jax.enable_x64(wide):
        theta, value, norm, _, _, _, status = fit(x, labels, weights, radius)
    np.testing.assert_allclose(theta, expected, atol=tolerance * radius)
    np.testing.assert_allclose(np.linalg.norm(theta), radius, rtol=1e-6)
    # KKT: the gradient points along θ.
    theta = np.asarray(theta, np.float64)
    slope = gradient(theta, x, labels, weights)
    assert slope @ theta / np.linalg.norm(slope) / radius > 1 - (1e-12 if wide else 1e-5)
    np.testing.assert_allclose(value, mean_likelihood(expected, x, labels, weights), rtol=1e-6)
    assert norm < GRADIENT[wide]
    assert status == Status.CONVERGED


@pytest.mark.parametrize(("wide", "tolerance"), [(False, 1e-2), (True, 1e-5)])
@pytest.mark.parametrize("radius", [3.0, 20.0])
def test_separable_data_end_on_the_sphere(wide, tolerance, radius):
    """No maximiser exists without the ball; on it there is exactly one."""
    x, _, weights = sample(seed=2)
    labels = np.sign(x @ np.array([1.0, -1.0, 0.5, 0.0]))
    expected = slsqp(x, labels, weights, radius)
    with jax.enable_x64(wide):
        theta, value, norm, _, _, _, status = fit(x, labels, weights, radius)
    np.testing.assert_allclose(np.linalg.norm(theta), radius, rtol=1e-5)
    np.testing.assert_allclose(theta, expected, atol=tolerance * radius)
    assert value >= mean_likelihood(expected, x, labels, weights) - 1e-6
    assert np.isfinite(norm)
    assert status == Status.CONVERGED


def test_far_starts_reach_the_same_optimum(x64):
    """Damping: from far out the full Newton step overshoots."""
    x, labels, weights = sample(seed=3, scale=2.0)
    expected = fit(x, labels, weights).theta
    for direction in (np.ones(4), np.array([1.0, -1.0, 1.0, -1.0])):
        theta, _, _, _, _, _, status = fit(x, labels, weights, start=40.0 * direction)
        np.testing.assert_allclose(theta, expected, atol=1e-7)
        assert status == Status.CONVERGED


# Two directions of four carry no data; programs are shared with the tests above, since shapes are.
HALF = np.diag([1.0, 1.0, 0.0, 0.0])


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("radius", [0.5, 100.0])
def test_null_directions_are_left_alone(wide, radius):
    """θ keeps none of them in any basis, and elsewhere fits as if they did not exist."""
    x, labels, weights = sample(seed=4)
    rotation = np.linalg.qr(np.random.default_rng(5).normal(size=(4, 4)))[0]
    with jax.enable_x64(wide):
        small = fit(x @ HALF, labels, weights, radius, HALF)[0]
        turned = rotation @ HALF @ rotation.T
        theta, _, _, _, _, _, status = fit(x @ HALF @ rotation.T, labels, weights, radius, turned)
    eps = np.finfo(theta.dtype).eps
    theta = np.asarray(theta, np.float64)
    np.testing.assert_allclose(theta - turned @ theta, 0.0, atol=100 * eps)
    np.testing.assert_allclose(rotation.T @ theta, small, atol=10 * GRADIENT[wide])
    np.testing.assert_array_equal(small[2:], 0.0)
    assert status == Status.CONVERGED


def test_a_start_off_the_span_leaves_no_trace(x64):
    x, labels, weights = sample(seed=6)
    far = fit(x @ HALF, labels, weights, 100.0, HALF, np.array([1.0, -1.0, 0.0, 2.5])).theta
    np.testing.assert_array_equal(far[2:], 0.0)
    np.testing.assert_allclose(far[:2], fit(x @ HALF, labels, weights, 100.0, HALF).theta[:2], atol=1e-7)


@pytest.mark.parametrize(
    ("start", "radius"),
    [
        ([0.0, 0.0, 0.0, 0.9], 1.0),  # inside, mostly along a null direction
        ([30.0, -30.0, 0.0, 0.0], 1.0),  # outside
    ],
)
def test_the_answer_is_feasible_whatever_the_start(start, radius, x64):
    x, _, weights = sample(seed=6)
    labels = np.sign(x @ np.array([1.0, -1.0, 0.0, 0.0]))
    theta = fit(x @ HALF, labels, weights, radius, HALF, np.array(start))[0]
    assert np.linalg.norm(theta) <= radius * (1 + 1e-9)


def test_step_limit_is_reported(x64):
    x, labels, weights = sample(seed=8)
    problem = LogisticProblem(*map(jnp.asarray, (x, labels, weights, 100.0, np.eye(4), np.zeros(4))))
    _, _, norm, steps, _, _, status = jax.jit(lambda p: fit_logistic(p, max_steps=1))(problem)
    assert status == Status.MAX_STEPS
    assert steps == 1
    assert norm > 1e-6


def test_nan_is_reported():
    x, labels, weights = sample()
    x[3, 1] = np.nan
    assert fit(x, labels, weights).status == Status.NONFINITE


@pytest.mark.slow
def test_the_curvature_comes_with_newtons_answer_alone(x64):
    """F = Σ w P(1 − P)xxᵀ/Σw at θ̂ or near it; the quasi-Newton solver forms none."""
    x, labels, _ = sample()
    ones, radius = jnp.ones(len(x)), jnp.asarray(100.0)
    problem = LogisticProblem(jnp.asarray(x), jnp.asarray(labels), ones, radius, None, jnp.zeros(4))
    found = jax.jit(fit_logistic)(problem)
    chance = scipy.special.expit(x @ np.asarray(found.theta))
    expected = (x.T * (chance * (1 - chance))) @ x / len(x)
    np.testing.assert_allclose(found.curvature, expected, rtol=0.05, atol=0.02 * np.trace(expected))
    assert jax.jit(partial(fit_logistic, newton_limit=1))(problem).curvature is None


def problem_of(x, labels, weights, radius=100.0, start=None, **options):
    start = np.zeros(x.shape[1]) if start is None else start
    return LogisticProblem(
        *map(jnp.asarray, (x, labels, weights, radius)), None, jnp.asarray(start), **options
    )


def at(problem, theta):
    """θ, margins, value and gradient by NumPy."""
    x, labels, weights = (np.asarray(part) for part in (problem.x, problem.labels, problem.weights))
    return (
        theta,
        labels * (x @ theta),
        mean_likelihood(theta, x, labels, weights),
        gradient(theta, x, labels, weights),
    )


def curvature(problem, theta):
    x, weights = np.asarray(problem.x), np.asarray(problem.weights)
    chance = scipy.special.expit(x @ theta)
    return (x.T * (weights * chance * (1 - chance))) @ x / weights.sum()


def test_a_limit_of_the_width_itself_is_newtons(x64):
    problem = problem_of(*sample())
    assert jax.eval_shape(partial(fit_logistic, newton_limit=4), problem).curvature.shape == (4, 4)
    assert jax.eval_shape(partial(fit_logistic, newton_limit=3), problem).curvature is None


def test_the_limit_is_given_by_name():
    with pytest.raises(TypeError, match="positional"):
        fit_logistic(problem_of(*sample()), 10, 4)


def test_stationarity_is_in_units_of_the_columns_and_within_the_span(x64):
    sizes, slope = np.array([1.0, 2.0, 5.0, 0.5]), np.array([3.0, -1.0, 2.0, 4.0])
    theta = np.array([0.6, -0.8, 0.0, 0.0])
    problem = problem_of(*sample(), radius=1.0)
    sized = dataclasses.replace(problem, column_size=jnp.asarray(sizes))
    half = dataclasses.replace(sized, projector=jnp.diag(jnp.asarray([1.0, 1.0, 0.0, 0.0])))
    for there, outward in ((0.5 * theta, 0.0), (theta, 2.6)):
        left = slope - outward * theta  # 2.6 = gᵀθ points out of the ball
        for one, expected in ((problem, left), (sized, left / sizes), (half, (left / sizes)[:2])):
            found = one.stationarity(jnp.asarray(there), jnp.asarray(slope))
            np.testing.assert_allclose(found, np.linalg.norm(expected), rtol=1e-12)


def test_a_start_whose_margins_are_known_is_taken_as_it_is(x64):
    """Else it is moved into the span and the ball, and its margins are computed."""
    x, labels, weights = sample()
    start = np.array([3.0, -4.0, 0.0, 2.0])
    problem = dataclasses.replace(problem_of(x, labels, weights, 1.0, start), projector=jnp.asarray(HALF))
    moved = np.array([0.6, -0.8, 0.0, 0.0])
    for expected, found in zip(at(problem, moved), begin(problem), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    margins = np.linspace(-1.0, 1.0, len(x))
    found = begin(dataclasses.replace(problem, start_margins=jnp.asarray(margins)))
    np.testing.assert_array_equal(found[0], start)
    np.testing.assert_array_equal(found[1], margins)
    np.testing.assert_allclose(found[2], np.average(scipy.special.log_expit(margins), weights=weights))


@jax.jit
def shorten(problem, at, move, slack):
    infinity = jnp.asarray(jnp.inf)
    bend = jnp.zeros((4, 4))
    return backtrack(problem, NewtonState(*at, infinity, bend, jnp.asarray(KEEP), infinity), move, slack)


@pytest.mark.parametrize("halvings", [0, 1, 3])
def test_a_step_is_taken_where_the_value_rises_by_its_share_of_the_slope(halvings, x64):
    """A ten-thousandth of what the slope promises, less what the value cannot resolve; longer steps go downhill."""
    problem = problem_of(*sample())
    theta, slack, scale = np.array([0.3, -0.2, 0.1, 0.4]), 1e-3, 0.5**halvings
    _, margins, _, slope = at(problem, theta)
    move = -8.0 * slope
    there = at(problem, theta + scale * move)
    promised = 10 * move / (move @ move)  # ten along the step instead of the true slope
    border = there[2] - 1e-3 * scale + slack
    for gap, taken in ((-1e-9, True), (1e-9, False)):
        here = map(jnp.asarray, (theta, margins, border + gap, promised))
        found, point = shorten(problem, tuple(here), jnp.asarray(move), slack)
        assert (found == scale) == taken
        assert found <= scale
        if taken:
            for old, new in zip(there, point, strict=True):
                np.testing.assert_allclose(new, old, rtol=1e-12)


def test_a_sample_suffices_from_so_many_rows_a_column():
    for k in (1, 3):
        enough = SAMPLED_ROWS * STRIDE * k
        assert sample_suffices(np.empty((enough, k)))
        assert not sample_suffices(np.empty((enough - 1, k)))


def test_gradients_count_as_zero_at_32_rounding_errors_of_a_row(x64):
    """Of length 1 unless its length is given; of √k columns where theirs are."""
    problem, eps = problem_of(*sample(k=3)), np.finfo(np.float64).eps
    assert _gradient_floor(problem) == 32 * eps
    assert _gradient_floor(dataclasses.replace(problem, row_size=jnp.asarray(7.0))) == 7 * 32 * eps
    sized = dataclasses.replace(problem, row_size=jnp.asarray(7.0), column_size=jnp.ones(3))
    np.testing.assert_allclose(_gradient_floor(sized), 3**0.5 * 32 * eps, rtol=1e-12)


def test_rounding_grows_with_the_value(x64):
    at_zero, at_three = (float(rounding_of(jnp.asarray(v))) for v in (0.0, -3.0))
    assert at_three == 4 * at_zero
    assert 1 < at_zero / np.finfo(np.float64).eps < 10


def test_it_ends_at_a_flat_gradient_or_a_gain_that_is_rounding(x64):
    """Each alone is enough, and exactly at its threshold."""
    problem = problem_of(*sample())
    state = BallNewton().init(problem, key=None)
    flat, still = _gradient_floor(problem), rounding_of(state.value)
    for norm, gain, done in (
        (flat, 1.0, True),
        (np.nextafter(flat, 1.0), 1.0, False),
        (1.0, still, True),
        (1.0, np.nextafter(still, 1.0), False),
        (flat, still, True),
    ):
        changed = dataclasses.replace(state, stationarity=jnp.asarray(norm), gain=jnp.asarray(gain))
        status = Status.CONVERGED if done else Status.RUNNING
        assert BallNewton().terminate(problem, changed) == status, (norm, gain)


@pytest.mark.slow
def test_a_known_curvature_is_kept_at_first(x64):
    """Without one it is taken from the rows: from all, or from a sample where that suffices."""
    known = 3.0 * jnp.eye(4)
    problem = problem_of(*sample(), known_curvature=known)
    state = BallNewton().init(problem, key=None)
    assert (int(state.upkeep), float(state.gain)) == (KEEP, np.inf)
    np.testing.assert_array_equal(state.curvature, known)
    assert BallNewton().init(problem_of(*sample()), key=None).upkeep == RENEW
    many = problem_of(*sample(SAMPLED_ROWS * STRIDE, 1))
    assert BallNewton().init(many, key=None).upkeep == SAMPLE


newton_step = jax.jit(lambda problem, state: BallNewton().step(problem, state, key=None))


def state_at(problem, theta, upkeep, bend=None, stationarity=np.inf):
    bend = np.eye(len(theta)) if bend is None else bend
    parts = (*at(problem, theta), stationarity, bend, np.int32(upkeep), 1.0)
    return NewtonState(*map(jnp.asarray, parts))


def test_a_newton_step_by_hand(x64):
    """θ + C⁻¹g where the ball is far, C renewed or kept."""
    problem, theta = problem_of(*sample()), np.array([0.1, -0.2, 0.1, 0.0])
    old = 1.5 * curvature(problem, theta)
    for upkeep, bend in ((RENEW, curvature(problem, theta)), (KEEP, old)):
        found = newton_step(problem, state_at(problem, theta, upkeep, old))
        there = theta + np.linalg.solve(bend, at(problem, theta)[3])
        for new, expected in zip(
            (found.theta, found.margins, found.value, found.gradient), at(problem, there), strict=True
        ):
            np.testing.assert_allclose(new, expected, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(found.curvature, bend, rtol=1e-12)
        gain = at(problem, there)[2] - at(problem, theta)[2]
        np.testing.assert_allclose(found.gain, gain if upkeep == RENEW else np.inf, rtol=1e-7)
        assert found.upkeep == KEEP


@pytest.mark.slow
@pytest.mark.parametrize(("share", "finite"), [(0.99, False), (1.01, True)])
def test_a_gain_with_an_old_curvature_counts_where_the_gradient_is_nearly_zero(share, finite, x64):
    """Within four times what counts as zero, set here by the length of the rows."""
    problem, theta = problem_of(*sample()), np.array([0.1, -0.2, 0.1, 0.0])
    state = state_at(problem, theta, KEEP, curvature(problem, theta))
    left = newton_step(problem, state).stationarity
    size = share * left / (4 * 32 * np.finfo(np.float64).eps)
    found = newton_step(dataclasses.replace(problem, row_size=size), state)
    assert np.isfinite(found.gain) == finite


@pytest.mark.parametrize(
    ("n", "k", "cheapest"),
    [(200, 4, RENEW), pytest.param(SAMPLED_ROWS * STRIDE, 1, SAMPLE, marks=pytest.mark.slow)],
)
def test_a_slow_step_asks_for_a_better_curvature(n, k, cheapest, x64):
    """Slow: the gradient shrank to more than its share, or the step was halved. First the cheapest, then all rows."""
    problem, theta = problem_of(*sample(n, k)), np.full(k, 0.1)
    bend = curvature(problem, theta)
    left = newton_step(problem, state_at(problem, theta, KEEP, bend)).stationarity
    for upkeep, better in ((KEEP, cheapest), (SAMPLE, RENEW), (RENEW, RENEW)):
        left = newton_step(problem, state_at(problem, theta, upkeep, bend)).stationarity
        for share, then in ((0.99, better), (1.01, KEEP)):
            before = share * left / REUSE_BELOW
            assert newton_step(problem, state_at(problem, theta, upkeep, bend, before)).upkeep == then
    halved = newton_step(problem, state_at(problem, theta, KEEP, 0.01 * bend))
    assert halved.upkeep == cheapest
    assert halved.stationarity < np.inf  # and so below any share of the infinite one before
