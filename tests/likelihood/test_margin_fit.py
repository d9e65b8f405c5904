"""Margin losses against their derivatives, and their minimisers over a ball against SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from slow_parameters import slow_where

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.kernels.rounding import rounding_of
from robust_rlhf_jax.likelihood.logistic_regression import NEWTON_LIMIT
from robust_rlhf_jax.likelihood.margin_fit import (
    MarginNewton,
    MarginProblem,
    MarginState,
    _backtrack,
    fit_margin_loss,
    margin_problem,
)
from robust_rlhf_jax.likelihood.margin_losses import ClippedLogistic, DensityPower, MarginLoss, TiltedLogistic

from .logistic_reference import slsqp

LOSSES = {
    "smoothed": lambda: TiltedLogistic(jnp.asarray(0.2)),
    "debiased": lambda: TiltedLogistic(jnp.asarray(-0.25)),
    "clipped": lambda: ClippedLogistic(jnp.asarray(-0.3)),
    "density_power": lambda: DensityPower(jnp.asarray(0.5)),
    "brier": lambda: DensityPower(jnp.asarray(1.0)),
}
names = pytest.mark.parametrize("name", LOSSES)
value_of, slope_of = jax.jit(lambda loss, m: loss.value(m)), jax.jit(lambda loss, m: loss.slope(m))
curvature_of = jax.jit(lambda loss, m: loss.curvature(m))
weight_of = jax.jit(lambda loss, m: loss.weight(m))
at = jax.jit(MarginProblem.at)
fit = jax.jit(lambda loss, x, labels, radius: fit_margin_loss(margin_problem(loss, x, labels, radius)))


def sample(seed=0, n=80, flips=0.15):
    """Rows in a plane of R³, some labels flipped."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2)) @ np.linalg.qr(rng.normal(size=(3, 3)))[0][:2]
    labels = np.where(x @ [2.0, -1.0, 1.0] + rng.logistic(size=n) > 0, 1.0, -1.0)
    return x, np.where(rng.uniform(size=n) < flips, -labels, labels)


@jax.jit
def derivatives(loss, m):
    """Of the value and of the slope, by autodiff."""
    return tuple(jax.vmap(jax.grad(part))(m) for part in (loss.value, loss.slope))


@names
def test_slope_and_curvature_are_derivatives(name, x64):
    loss, m = LOSSES[name](), jnp.asarray([-3.0, -1.0, -0.31, -0.29, 0.0, 0.4, 2.0, 5.0])
    slope, bend = derivatives(loss, m)
    np.testing.assert_allclose(slope_of(loss, m), slope, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(curvature_of(loss, m), np.abs(bend), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("part", ["value", "slope", "curvature"])
def test_a_loss_that_lacks_a_part_cannot_be_made(part):
    others = {"value", "slope", "curvature"} - {part}
    with pytest.raises(TypeError, match=part):
        type("Partial", (MarginLoss,), dict.fromkeys(others, lambda self, margins: margins))()


@pytest.mark.slow
@names
def test_uphill_no_step_is_taken(name, x64):
    """However short: the old point comes back."""
    problem = margin_problem(LOSSES[name](), *map(jnp.asarray, sample()), 5.0)
    state = MarginNewton().init(problem, key=None)
    point = _backtrack(problem, state, state.gradient)
    for old, new in zip((state.theta, state.margins, state.value, state.gradient), point, strict=True):
        np.testing.assert_array_equal(new, old)


@names
def test_far_margins_stay_finite(name):
    m = jnp.asarray([-1e4, -100.0, 100.0, 1e4], jnp.float32)
    with jax.numpy_dtype_promotion("standard"):
        loss = LOSSES[name]()
        for part in (value_of, slope_of, curvature_of):
            assert np.isfinite(part(loss, m)).all()
        if hasattr(loss, "weight"):
            weights = np.asarray(weight_of(loss, m))
            assert ((weights >= 0) & (weights <= 1)).all()


def test_losses_are_what_their_papers_say(x64):
    """Mixtures of ℓ(m) and ℓ(−m); the minimum over an offset; the density power divergence written out."""
    m, e, g = jnp.linspace(-6.0, 6.0, 25), 0.2, 0.7
    here, there, p = np.logaddexp(0, -m), np.logaddexp(0, m), 1 / (1 + np.exp(-m))
    np.testing.assert_allclose(value_of(TiltedLogistic(jnp.asarray(e)), m), (1 - e) * here + e * there)
    debiased = value_of(TiltedLogistic(jnp.asarray(-e / (1 - 2 * e))), m)
    np.testing.assert_allclose(debiased, ((1 - e) * here - e * there) / (1 - 2 * e), atol=1e-12)
    written_out = -(1 + 1 / g) * p**g + p ** (1 + g) + (1 - p) ** (1 + g) + 1 / g
    np.testing.assert_allclose(value_of(DensityPower(jnp.asarray(g)), m), written_out, atol=1e-12)
    np.testing.assert_allclose(value_of(DensityPower(jnp.asarray(1e-7)), m), here, atol=1e-5)
    clipped = ClippedLogistic(jnp.asarray(-0.4))
    rate = 1 / (1 + np.exp(-0.4))
    offsets = np.linspace(-8, 8, 16001)[:, None]
    penalised = np.logaddexp(0, -(np.asarray(m) + offsets)) + rate * np.abs(offsets)
    np.testing.assert_allclose(value_of(clipped, m), penalised.min(axis=0), atol=1e-6)
    np.testing.assert_allclose(clipped.offset(m), offsets[penalised.argmin(axis=0), 0], atol=1e-3)


@pytest.mark.parametrize("name", slow_where(("density_power", "brier").__contains__, LOSSES))
@pytest.mark.parametrize("radius", [0.5, 20.0])
def test_minimiser_equals_scipy(name, radius, x64):
    """Sequential quadratic programming in double precision, the ball binding and not."""
    loss = LOSSES[name]()
    x, labels = sample()
    found = fit(loss, jnp.asarray(x), jnp.asarray(labels), radius)

    def value(theta):
        return float(np.mean(value_of(loss, labels * (x @ theta))))

    def gradient(theta):
        return (labels * np.asarray(slope_of(loss, labels * (x @ theta)))) @ x / len(x)

    reference = scipy.optimize.minimize(
        value,
        np.zeros(3),
        jac=gradient,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda t: radius**2 - t @ t, "jac": lambda t: -2 * t},
        options={"ftol": 1e-14, "maxiter": 300},
    )
    assert found.status == Status.CONVERGED
    # Of the gradient on the ball: on its sphere only the part that leads inside counts.
    assert found.stationarity <= 1e-7
    np.testing.assert_allclose(found.value, value(found.theta), rtol=1e-12)
    assert found.value <= reference.fun + 1e-9
    # The ball binds for the smaller radius; unbounded below without it is the debiased likelihood only.
    assert np.linalg.norm(found.theta) <= radius * (1 + 1e-9)
    np.testing.assert_allclose(found.theta, reference.x, atol=2e-4)
    null = np.linalg.svd(x)[2][2]
    np.testing.assert_allclose(found.theta @ null, 0.0, atol=1e-10)


def test_plain_losses_give_maximum_likelihood(x64):
    x, labels = sample(1)
    expected = slsqp(x, labels, np.ones(len(x)), 20.0)
    for loss in (TiltedLogistic(jnp.asarray(0.0)), ClippedLogistic(jnp.asarray(-jnp.inf))):
        found = fit(loss, jnp.asarray(x), jnp.asarray(labels), 20.0)
        np.testing.assert_allclose(found.theta, expected, atol=1e-5)


@pytest.mark.slow
def test_single_precision(x64):
    x, labels = sample(2)
    for name in ("clipped", "brier"):
        wide = fit(LOSSES[name](), jnp.asarray(x), jnp.asarray(labels), 20.0)
        loss = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), LOSSES[name]())
        narrow = fit(loss, *(jnp.asarray(part, jnp.float32) for part in (x, labels, 20.0)))
        assert narrow.theta.dtype == jnp.float32
        assert narrow.status == Status.CONVERGED
        np.testing.assert_allclose(narrow.theta, wide.theta, atol=5e-3)


def test_too_many_columns_are_refused():
    with pytest.raises(ValueError, match=f"x has {NEWTON_LIMIT + 1} columns.*project x on fewer directions"):
        margin_problem(LOSSES["brier"](), jnp.zeros((2, NEWTON_LIMIT + 1)), jnp.ones(2), 1.0)


def test_as_many_columns_as_newton_takes_are_accepted():
    rows = jax.ShapeDtypeStruct((2, NEWTON_LIMIT), jnp.float32)
    problem = jax.eval_shape(lambda x: margin_problem(LOSSES["brier"](), x, jnp.ones(2), 1.0), rows)
    assert problem.start.shape == (NEWTON_LIMIT,)


def test_the_curvature_bends_at_the_clip_itself(x64):
    """ρ″ from the right."""
    c = jnp.asarray([-0.3])
    chance = 1 / (1 + np.exp(0.3))
    np.testing.assert_allclose(LOSSES["clipped"]().curvature(c), chance * (1 - chance), rtol=1e-12)


@pytest.mark.parametrize("name", ["clipped", "density_power", "brier"])
def test_weights_are_slopes_over_those_of_the_likelihood(name, x64):
    """As they are where the loss is clipped; over the share at m = 0 for a density power."""
    loss, m = LOSSES[name](), jnp.asarray([-3.0, -1.0, -0.3, 0.0, 0.4, 2.0, 5.0])
    share = np.asarray(slope_of(loss, m)) * (1 + np.exp(m)) * -1.0
    unit = 1.0 if name == "clipped" else share[3]
    np.testing.assert_allclose(weight_of(loss, m), share / unit, rtol=1e-12)


def weighted_problem(radius=50.0, loss="density_power"):
    """Weights that are neither equal nor of sum 1, columns of sizes 1, 2 and 5."""
    x, labels = sample(3)
    rng = np.random.default_rng(3)
    weights, start = rng.uniform(0.5, 3.0, len(x)), rng.normal(size=3)
    sizes = np.array([1.0, 2.0, 5.0])
    arrays = map(jnp.asarray, (x * sizes, labels, weights, radius, np.eye(3), sizes, start))
    return MarginProblem(LOSSES[loss](), *arrays)


def average_loss(problem, theta):
    """(value, gradient) by NumPy."""
    x, labels = np.asarray(problem.x), np.asarray(problem.labels)
    margins = labels * (x @ theta)
    slopes = (labels * np.asarray(slope_of(problem.loss, margins)))[:, None] * x
    parts = value_of(problem.loss, margins), slopes
    return [np.average(part, axis=0, weights=problem.weights) for part in parts]


@pytest.mark.slow
def test_value_gradient_and_curvature_are_weighted_means(x64):
    problem = weighted_problem()
    theta = np.array([0.3, -0.2, 0.1])
    value, slope = average_loss(problem, theta)
    found = at(problem, jnp.asarray(theta))
    np.testing.assert_allclose(found[1], problem.labels * (problem.x @ theta), rtol=1e-12)
    np.testing.assert_allclose(found[2], value, rtol=1e-12)
    np.testing.assert_allclose(found[3], slope, rtol=1e-12, atol=1e-15)
    bend = np.asarray(problem.weights * problem.loss.curvature(found[1]))
    expected = (problem.x.T * bend) @ problem.x / np.sum(problem.weights)
    np.testing.assert_allclose(problem.curvature(jnp.asarray(theta), found[1]), expected, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("radius", [0.3, 50.0])
def test_stationarity_is_in_units_of_the_columns_and_of_the_ball(radius, x64):
    """On the sphere without what points out of it; the last step's fall beside it."""
    problem = weighted_problem(radius, "debiased")
    state = MarginNewton().init(problem, key=None)
    assert state.fall == np.inf
    after = MarginNewton().step(problem, state, key=None)
    assert after.fall == state.value - after.value > 0
    for there in (state, after):
        theta = np.asarray(there.theta)
        residual = -average_loss(problem, theta)[1]
        if np.linalg.norm(theta) > radius * (1 - 1e-9):
            residual -= max(residual @ theta, 0.0) * theta / (theta @ theta)
        np.testing.assert_allclose(there.stationarity, np.linalg.norm(residual / [1, 2, 5]), rtol=1e-9)


terminate = jax.jit(lambda problem, state: MarginNewton().terminate(problem, state))


def state_at(problem, theta, **changes):
    known = dict(zip(("theta", "margins", "value", "gradient"), at(problem, jnp.asarray(theta)), strict=True))
    return MarginState(**known | {"stationarity": jnp.ones(()), "fall": jnp.ones(())} | changes)


def test_it_ends_at_a_flat_gradient_or_a_fall_that_is_rounding(x64):
    """32 rounding errors of √k columns of size 1, and what a mean resolves: each alone is enough."""
    problem = weighted_problem()
    flat = 32 * np.finfo(np.float64).eps * 3**0.5
    still = float(rounding_of(at(problem, problem.start)[2]))
    for stationarity, fall, done in (
        (flat, 1.0, True),
        (1.01 * flat, 1.0, False),
        (1.0, still, True),
        (1.0, 1.01 * still, False),
        (flat, still, True),
    ):
        state = state_at(
            problem, problem.start, stationarity=jnp.asarray(stationarity), fall=jnp.asarray(fall)
        )
        status = Status.CONVERGED if done else Status.RUNNING
        assert terminate(problem, state) == status, (stationarity, fall)


def test_rounding_grows_with_the_value(x64):
    at_zero, at_three = (float(rounding_of(jnp.asarray(v))) for v in (0.0, -3.0))
    assert at_three == 4 * at_zero
    assert 1 < at_zero / np.finfo(np.float64).eps < 10


shorten = jax.jit(_backtrack)


@pytest.mark.parametrize("halvings", [0, 2])
def test_a_step_is_taken_where_the_loss_falls_by_its_share_of_the_slope(halvings, x64):
    """A ten-thousandth of what the slope promises; longer steps, uphill, are halved."""
    problem = weighted_problem(loss="smoothed")
    theta = np.array([0.3, -0.2, 0.1])
    gradient = average_loss(problem, theta)[1]
    move, scale = 100.0 * gradient, 0.5**halvings
    there = theta + scale * move
    # Slope −10 instead of the true one.
    slope = -10 * gradient / (gradient @ move)
    border = average_loss(problem, there)[0] + 1e-3 * scale
    for gap, taken in ((1e-9, True), (-1e-9, False)):
        state = state_at(problem, theta, gradient=jnp.asarray(slope), value=jnp.asarray(border + gap))
        found = shorten(problem, state, jnp.asarray(move))
        assert np.allclose(found[0], there, rtol=1e-12) == taken
        assert np.linalg.norm(found[0] - theta) <= scale * np.linalg.norm(move) * (1 + 1e-12)


@pytest.mark.parametrize(("share", "taken"), [(0.7, True), (1.5, False)])
def test_a_rise_within_rounding_is_no_reason_to_halve(share, taken, x64):
    """Where the slope promises nothing."""
    problem = weighted_problem(loss="smoothed")
    theta = np.array([0.3, -0.2, 0.1])
    move = average_loss(problem, theta)[1]
    reached = at(problem, jnp.asarray(theta + move))[2]
    state = state_at(problem, theta, gradient=jnp.zeros(3), value=reached - share * rounding_of(reached))
    found = shorten(problem, state, jnp.asarray(move))
    assert np.allclose(found[0], theta + move, rtol=1e-12) == taken
