"""Projections on sets of plausible rewards against SciPy, and what makes them projections."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from slow_parameters import slow

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.likelihood import calibrated_zeta, confidence_set, ellipsoid
from robust_rlhf_jax.likelihood.confidence import theory_zeta
from robust_rlhf_jax.likelihood.projection import tolerance

from .example_sets import EPS, K, N, example_set, fitted_set, sample
from .logistic_reference import mean_likelihood

project = jax.jit(lambda allowed, y: allowed.project(y))


project_warm = jax.jit(lambda allowed, y, warm: allowed.project(y, warm))


contains = jax.jit(lambda allowed, theta: allowed.contains(theta))


def slsqp(y, start, x, labels, floor, radius):
    def likelihood(t):
        return -np.mean(np.logaddexp(0, -labels * (x @ t))) - floor

    def slope(t):
        return (labels / (1 + np.exp(labels * (x @ t)))) @ x / len(labels)

    bounds = [
        {"type": "ineq", "fun": likelihood, "jac": slope},
        {"type": "ineq", "fun": lambda t: radius**2 - t @ t, "jac": lambda t: -2 * t},
    ]
    options = {"ftol": 1e-15, "maxiter": 1000}
    return scipy.optimize.minimize(
        lambda t: 0.5 * np.sum((t - y) ** 2), start, jac=lambda t: t - y, method="SLSQP",
        constraints=bounds, options=options,
    ).x  # fmt: skip


@pytest.mark.parametrize("radius", [0.8, slow(5.0)])
@pytest.mark.parametrize("zeta", [0.003, slow(0.02), 0.2])
@pytest.mark.parametrize("distance", [0.3, 3.0, 30.0])
def test_projection_is_that_of_scipy(radius, zeta, distance, x64):
    x, labels, rng = sample(int(1000 * zeta + distance))
    allowed = fitted_set(x, labels, zeta, radius)
    y = np.asarray(allowed.centre) + distance * rng.normal(size=K)
    found = project(allowed, jnp.asarray(y))
    assert found.status == Status.CONVERGED
    assert contains(allowed, found.theta)
    expected = slsqp(y, np.asarray(allowed.centre), x, labels, float(allowed.floor), radius)
    np.testing.assert_allclose(found.theta, expected, atol=1e-5)


@pytest.mark.slow
@given(st.integers(0, 2**16), st.sampled_from([0.005, 0.05]), st.floats(0.1, 10.0))
def test_projection_is_idempotent_and_does_not_expand(seed, zeta, distance):
    with jax.enable_x64(True):
        allowed = example_set(zeta)
        points = distance * np.random.default_rng(seed).normal(size=(2, K))
        a, b = (project(allowed, jnp.asarray(p)).theta for p in points)
        np.testing.assert_allclose(project(allowed, a).theta, a, atol=1e-6)
        assert np.linalg.norm(a - b) <= np.linalg.norm(points[0] - points[1]) * (1 + 1e-6)


@pytest.mark.slow
def test_warm_starts_save_solves(x64):
    """Along a descent three quadratic programs a projection are enough, and the point is that of a cold start."""
    x, labels, rng = sample(5)
    allowed = fitted_set(x, labels, 0.02, 3.0)
    warm, solves = project(allowed, allowed.centre).warm, 0
    direction = rng.normal(size=K)
    for _ in range(30):
        y = warm.theta - 0.02 * jnp.asarray(direction)
        found = project_warm(allowed, y, warm)
        np.testing.assert_allclose(found.theta, project(allowed, y).theta, atol=1e-6)
        warm, solves = found.warm, solves + int(found.solves)
    assert solves <= 3 * 30


@pytest.mark.slow
def test_an_empty_set_and_a_nan_lane_leave_the_others_alone(x64):
    x, labels, rng = sample(7)
    allowed = fitted_set(x, labels, 0.02, 3.0)
    empty = eqx.tree_at(lambda s: s.floor, allowed, allowed.floor + 0.5)
    y = jnp.asarray(3.0 * rng.normal(size=(3, K))).at[1].set(jnp.nan)
    assert project(empty, y[0]).status == Status.INFEASIBLE
    batch = jax.jit(jax.vmap(allowed.project))(y)
    assert batch.status[1] == Status.NONFINITE
    for i in (0, 2):
        np.testing.assert_allclose(batch.theta[i], project(allowed, y[i]).theta, atol=1e-7)


@pytest.mark.slow
def test_single_precision(x64):
    x, labels, rng = sample(9)
    y = 2.0 * rng.normal(size=K)
    expected = project(fitted_set(x, labels, 0.02, 3.0), jnp.asarray(y)).theta
    with jax.enable_x64(False):
        found = project(fitted_set(x, labels, 0.02, 3.0), jnp.asarray(y))
        assert found.theta.dtype == jnp.float32
        assert found.status == Status.CONVERGED
    np.testing.assert_allclose(found.theta, expected, atol=3e-3)


@pytest.mark.parametrize("radius", [0.8, 5.0])
def test_ellipsoid_is_that_of_scipy(radius, x64):
    rng = np.random.default_rng(0)
    root = rng.normal(size=(K, K))
    sigma, centre = root @ root.T, rng.normal(size=K)
    centre *= 0.5 / np.linalg.norm(centre)
    allowed = ellipsoid(jnp.asarray(sigma), jnp.asarray(centre), 0.7, radius)
    y = 3.0 * rng.normal(size=K)
    bounds = [
        {"type": "ineq", "fun": lambda t: 0.49 - (t - centre) @ sigma @ (t - centre)},
        {"type": "ineq", "fun": lambda t: radius**2 - t @ t},
    ]
    expected = scipy.optimize.minimize(
        lambda t: 0.5 * np.sum((t - y) ** 2), centre, method="SLSQP", constraints=bounds,
        options={"ftol": 1e-14, "maxiter": 500},
    ).x  # fmt: skip
    found = project(allowed, jnp.asarray(y))
    np.testing.assert_allclose(found.theta, expected, atol=1e-5)
    assert contains(allowed, found.theta)


@pytest.mark.parametrize("degrees", [3, 10, 25, 100])
def test_the_calibrated_width_is_wilks_and_what_corruption_adds(degrees):
    expected = scipy.stats.chi2.ppf(0.9, degrees) / 2000 + 0.002
    zeta = calibrated_zeta(0.1, jnp.asarray(degrees), 1000)
    np.testing.assert_allclose(zeta, expected, rtol=0.01)


@pytest.mark.parametrize(
    ("zeta", "radius", "message"),
    [
        (-0.1, 1.0, "zeta"),
        (np.nan, 1.0, "zeta"),
        (0.1, 0.0, "radius"),
        (0.1, -1.0, "radius"),
        (0.1, np.nan, "radius"),
    ],
)
def test_bad_settings(zeta, radius, message):
    x, labels, _ = sample(0)
    with pytest.raises(ValueError, match=message):
        confidence_set(jnp.asarray(x), jnp.asarray(labels), jnp.zeros(K), zeta, radius=radius)


def test_theory_zeta_is_what_the_paper_prints():
    """6εH√d + (2d/N)log(HN/δ), each term by itself."""
    np.testing.assert_allclose(theory_zeta(0.1, 5, 9, 10**9), 6 * 0.1 * 5 * 3, rtol=1e-5)
    np.testing.assert_allclose(
        theory_zeta(0.0, 5, 9, 200, miss=0.05), 2 * 9 / 200 * np.log(5 * 200 / 0.05), rtol=1e-6
    )


def test_options_are_given_by_name():
    x, labels, _ = sample(0)
    with pytest.raises(TypeError, match="positional"):
        confidence_set(jnp.asarray(x), jnp.asarray(labels), jnp.zeros(K), 0.1, 1.0)
    with pytest.raises(TypeError, match="positional"):
        calibrated_zeta(0.1, jnp.asarray(3), 1000, 0.05)


def test_a_set_holds_its_definition(x64):
    """Floor ℓ(θ̂) − ζ and the curvature there, weighted, against NumPy; under jit as well."""
    x, labels, rng = sample(11)
    weights, centre = rng.uniform(0.1, 1.0, N), 0.3 * rng.normal(size=K)

    def build(zeta, radius):
        data = map(jnp.asarray, (x, labels, centre))
        return confidence_set(*data, zeta, radius=radius, weights=jnp.asarray(weights))

    chance = 1 / (1 + np.exp(-x @ centre))
    curvature = (x.T * (weights * chance * (1 - chance))) @ x / weights.sum()
    for allowed in (build(0.04, 1.3), jax.jit(build)(0.04, 1.3)):
        floor = mean_likelihood(centre, x, labels, weights) - 0.04
        np.testing.assert_allclose(allowed.floor, floor, rtol=1e-12)
        assert (float(allowed.zeta), float(allowed.radius)) == (0.04, 1.3)
        turn = np.asarray(allowed.eigenvectors)
        np.testing.assert_allclose(turn * allowed.eigenvalues @ turn.T, curvature, atol=1e-12)


def test_no_eigenvalue_is_negative(x64):
    """Of matrices of rank two, whose null directions rounding leaves on either side of 0."""
    for seed in range(4):
        x, labels, rng = sample(seed)
        x = x[:, :2] @ rng.normal(size=(2, K))
        allowed = confidence_set(jnp.asarray(x), jnp.asarray(labels), jnp.zeros(K), 0.1, radius=1.0)
        assert (allowed.eigenvalues >= 0).all()
        assert (ellipsoid(jnp.asarray(x.T @ x), jnp.zeros(K), 1.0, 1.0).eigenvalues >= 0).all()


def test_a_set_without_slack_is_its_centre(x64):
    """ζ = 0 is allowed, and the centre meets its floor with equality: nothing to solve."""
    x, labels, _ = sample(1)
    allowed = fitted_set(x, labels, 0.0, 5.0)
    found = project(allowed, allowed.centre)
    np.testing.assert_array_equal(found.theta, allowed.centre)
    assert (int(found.solves), float(found.multiplier), int(found.status)) == (0, 0.0, Status.CONVERGED)


@pytest.mark.slow
@pytest.mark.parametrize(("excess", "inside"), [(25, True), (30, False)])
def test_membership_forgives_what_a_mean_cannot_resolve(excess, inside, x64):
    """θ = 0 between two contradicting pairs, where ℓ = −log 2 is flat: 16 rounding errors of 1 + log 2, 27.1 eps."""
    allowed = confidence_set(jnp.ones((2, 1)), jnp.asarray([1.0, -1.0]), jnp.zeros(1), 0.0, radius=2.0)
    allowed = eqx.tree_at(lambda s: s.floor, allowed, allowed.floor + excess * EPS)
    assert contains(allowed, jnp.zeros(1)) == inside


@pytest.mark.parametrize(("share", "inside"), [(0.99, True), (1.01, False)])
def test_membership_forgives_the_tolerance_of_a_projection(share, inside, x64):
    theta = jnp.asarray([0.5])
    allowed = confidence_set(jnp.ones((2, 1)), jnp.ones(2), theta, 0.0, radius=2.0)
    fall = share * tolerance(theta) / (1 + np.exp(0.5))  # the slope of log σ at ½
    allowed = eqx.tree_at(lambda s: s.floor, allowed, allowed.floor + fall)
    assert contains(allowed, theta) == inside


@pytest.mark.parametrize(("excess", "inside"), [(14, True), (20, False)])
def test_membership_ends_at_the_sphere(excess, inside, x64):
    """Up to 16 rounding errors."""
    allowed = confidence_set(jnp.zeros((2, 1)), jnp.ones(2), jnp.zeros(1), 0.0, radius=2.0)
    assert contains(allowed, jnp.asarray([2.0 * (1 + excess * EPS)])) == inside


@pytest.mark.parametrize(("excess", "inside"), [(1.4e-8, True), (1.6e-8, False)])
def test_membership_of_an_ellipsoid_ends_at_its_surface(excess, inside, x64):
    """Up to √eps = 1.5·10⁻⁸, on either side of the centre and on the sphere of the ball."""
    centre = jnp.asarray([0.3, 0.0])
    allowed = ellipsoid(jnp.diag(jnp.asarray([4.0, 1.0])), centre, 0.6, 2.0)
    for sign in (1, -1):
        assert contains(allowed, centre + jnp.asarray([sign * 0.3 * (1 + excess), 0.0])) == inside
    wide = ellipsoid(jnp.diag(jnp.asarray([4.0, 1.0])), centre, 60.0, 0.7)
    assert contains(wide, jnp.asarray([-0.7 * (1 + excess), 0.0])) == inside


def test_a_point_of_the_ellipsoid_is_its_own_projection(x64):
    allowed = ellipsoid(jnp.diag(jnp.asarray([4.0, 1.0])), jnp.asarray([0.3, 0.0]), 0.6, 2.0)
    y = jnp.asarray([0.5, -0.3])
    found = project(allowed, y)
    np.testing.assert_allclose(found.theta, y, rtol=1e-15)
    assert (float(found.multiplier), int(found.solves), int(found.status)) == (0.0, 1, Status.CONVERGED)


def test_multiplier_of_the_ellipsoid_balances_the_pull(x64):
    """y − θ = λΣ(θ − θ̂) where the ball is far."""
    rng = np.random.default_rng(0)
    root, centre, y = rng.normal(size=(K, K)), 0.1 * rng.normal(size=K), 3.0 * rng.normal(size=K)
    sigma = root @ root.T
    found = project(ellipsoid(jnp.asarray(sigma), jnp.asarray(centre), 0.7, 5.0), jnp.asarray(y))
    pull = np.asarray(found.multiplier) * sigma @ (np.asarray(found.theta) - centre)
    np.testing.assert_allclose(pull, y - np.asarray(found.theta), rtol=1e-7)


def test_nan_in_an_ellipsoid_is_reported(x64):
    allowed = ellipsoid(jnp.eye(2), jnp.zeros(2), 0.5, 1.0)
    assert project(allowed, jnp.asarray([jnp.nan, 0.0])).status == Status.NONFINITE


@pytest.mark.parametrize("labels", [[0.0, 1.0], [True, False]])
def test_labels_are_signs(labels):
    """One of 0 would say nothing, and count."""
    with pytest.raises(ValueError, match=r"every label must be \+1 or -1"):
        confidence_set(jnp.eye(2), jnp.array(labels), jnp.zeros(2), 0.1, radius=1.0)


def test_frames_and_lists_are_arrays():
    pandas = pytest.importorskip("pandas")
    x, labels = np.random.default_rng(0).normal(size=(40, 2)), np.tile([1, -1], 20)
    expected = confidence_set(jnp.asarray(x), jnp.asarray(labels), jnp.zeros(2), 0.1, radius=2.0)
    found = confidence_set(pandas.DataFrame(x), pandas.Series(labels), [0.0, 0.0], 0.1, radius=2.0)
    assert eqx.tree_equal(found, expected)


def test_differences_in_another_order_than_labels_are_refused():
    pandas = pytest.importorskip("pandas")
    x, labels = pandas.DataFrame(np.ones((4, 2))), pandas.Series([1, -1, 1, -1])
    with pytest.raises(ValueError, match="order"):
        confidence_set(x[::-1], labels, np.zeros(2), 0.1, radius=2.0)
