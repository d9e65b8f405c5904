"""`maximise` against SciPy: weights, prior rows, the ball; and what it says when it could not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.special
from hypothesis import given
from hypothesis import strategies as st

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.rewards import newton

maximise = jax.jit(newton.maximise, static_argnames="radius")
m, r = 120, 4


def problem(seed, spread=1.0):
    """(rows, labels, weights, start) with 2r prior rows at the end."""
    rng = np.random.default_rng(seed)
    z = np.concatenate([rng.normal(size=(m - 2 * r, r)), np.eye(r), np.eye(r)])
    labels = np.where(
        rng.uniform(size=m) < scipy.special.expit(z @ rng.normal(scale=spread, size=r)), 1.0, -1.0
    )
    labels[-2 * r :] = np.repeat([1.0, -1.0], r)
    weights = rng.uniform(size=m) * (rng.uniform(size=m) < 0.9)
    weights[-2 * r :] = 0.02
    return z, labels, weights, rng.normal(size=r)


def value(t, z, labels, weights):
    return np.average(scipy.special.log_expit(labels * (z @ t)), weights=weights)


def reference(z, labels, weights, radius=None):
    """In float64: Newton with a trust region, or sequential quadratic programming where a ball binds."""

    def slope(t):
        return -(weights * labels * scipy.special.expit(-labels * (z @ t))) @ z / weights.sum()

    def bend(t):
        chance = scipy.special.expit(z @ t)
        return (z.T * (weights * chance * (1 - chance))) @ z / weights.sum()

    loss = lambda t: -value(t, z, labels, weights)  # noqa: E731
    start = np.zeros(z.shape[1])
    if radius is None:
        options = {"gtol": 1e-12}
        return scipy.optimize.minimize(
            loss, start, jac=slope, hess=bend, method="trust-exact", options=options
        ).x
    ball = {"type": "ineq", "fun": lambda t: radius**2 - t @ t, "jac": lambda t: -2 * t}
    options = {"ftol": 1e-15, "maxiter": 500}
    return scipy.optimize.minimize(
        loss, start, jac=slope, method="SLSQP", constraints=ball, options=options
    ).x


@pytest.mark.parametrize(("wide", "tolerance"), [(False, 2e-3), (True, 1e-6)])
@pytest.mark.parametrize("spread", [0.0, 1.0, 4.0])
def test_weighted_with_a_prior_equals_scipy(wide, tolerance, spread):
    with jax.enable_x64(wide):
        for seed in range(5):
            z, labels, weights, start = problem(seed, spread)
            found = maximise(*map(jnp.asarray, (z, labels, weights, start)), radius=30.0)
            assert found.t.dtype == (jnp.float64 if wide else jnp.float32)
            expected = reference(z, labels, weights)
            np.testing.assert_allclose(found.t, expected, rtol=tolerance, atol=tolerance)
            np.testing.assert_allclose(found.value, value(expected, z, labels, weights), rtol=1e-5)
            assert found.status == Status.CONVERGED


@pytest.mark.parametrize("prior", [0.02, 1.0])
def test_a_prior_is_that_many_wins_and_losses_along_every_axis(prior, x64):
    z, labels, weights, start = problem(0)
    weights[-2 * r :] = prior
    some = [part[: -2 * r] for part in (z, labels, weights)]
    found = maximise(*map(jnp.asarray, (*some, start)), radius=30.0, prior=prior)
    expected = reference(z, labels, weights)
    np.testing.assert_allclose(found.t, expected, rtol=1e-6)
    np.testing.assert_allclose(found.value, value(expected, z, labels, weights), rtol=1e-9)
    chance = scipy.special.expit(z @ expected)
    curvature = (z.T * (weights * chance * (1 - chance))) @ z / weights.sum()
    # From the optimum, since the factor is that of the last step.
    factor = maximise(*map(jnp.asarray, (*some, expected)), radius=30.0, prior=prior).factor
    np.testing.assert_allclose(factor @ factor.T, curvature, rtol=1e-6)


def test_the_factor_of_a_similar_problem_serves_as_long_as_the_gradient_falls_fast(x64):
    """Kept where its steps converge, replaced by the problem's own where they do not; the optimum is the same."""
    z, labels, weights, start = problem(0)
    own = maximise(*map(jnp.asarray, (z, labels, weights, start)), radius=30.0)
    for factor, kept in ((1.02 * own.factor, True), (6.0 * own.factor, False), (0.1 * own.factor, False)):
        arguments = map(jnp.asarray, (z, labels, weights, own.t + 0.01))
        found = maximise(*arguments, radius=30.0, factor=factor)
        assert np.array_equal(found.factor, factor) == kept
        np.testing.assert_allclose(found.t, own.t, atol=1e-6)
        assert found.status == Status.CONVERGED


def test_a_ball_that_binds(x64):
    """Steps are projected on the ball: the end is in it, no worse than the start, and near the best point of it."""
    for seed in range(5):
        z, labels, weights, start = problem(seed, 4.0)
        found = maximise(*map(jnp.asarray, (z, labels, weights, start)), radius=1.0)
        assert np.linalg.norm(found.t) <= 1 + 1e-12
        best = value(reference(z, labels, weights, 1.0), z, labels, weights)
        first = value(start / max(1.0, np.linalg.norm(start)), z, labels, weights)
        assert first - 1e-12 <= found.value <= best + 1e-9
        assert best - found.value < 0.05


def test_a_ball_smaller_than_one_is_filled(x64):
    """One axis, three of four labels won: the best point of the ball is its edge."""
    z, labels = np.ones((40, 1)), np.where(np.arange(40) % 4, 1.0, -1.0)
    found = maximise(*map(jnp.asarray, (z, labels, np.ones(40), np.zeros(1))), radius=0.3)
    np.testing.assert_allclose(found.t, 0.3, rtol=1e-12)


def test_an_axis_that_no_row_shows_has_a_curvature_of_rounding_size(x64):
    z, labels, weights, start = problem(0)
    z, start = 100.0 * z, 0.01 * start
    z[:, 0], start[0] = 0.0, 0.0
    found = maximise(*map(jnp.asarray, (z, labels, weights, start)), radius=30.0)
    curvature = np.asarray(found.factor @ found.factor.T)
    rounding = np.finfo(float).eps * np.trace(curvature)
    assert rounding < curvature[0, 0] < 100 * rounding
    assert found.t[0] == 0.0
    assert found.status == Status.CONVERGED


@pytest.fixture
def events(monkeypatch):
    """("look" or "curvature", t) in the order in which `maximise` computes them, as long as nothing is compiled."""
    seen = []

    def margins_of(t, *data):
        seen.append(np.array(t))
        return kept["margins_of"](t, *data)

    def named(kind, function):
        def call(*arguments):
            seen[-1] = (kind, seen[-1])
            return function(*arguments)

        return call

    kept = {name: getattr(newton, name) for name in ("margins_of", "weighted_sum", "weighted_gram")}
    monkeypatch.setattr(newton, "margins_of", margins_of)
    monkeypatch.setattr(newton, "weighted_sum", named("look", kept["weighted_sum"]))
    monkeypatch.setattr(newton, "weighted_gram", named("curvature", kept["weighted_gram"]))
    with jax.disable_jit():
        yield seen


def follow(events, z, labels, weights, radius, factor=None):
    """Assert that every look is where the rule puts it; (the best point, the steps' lengths, their decrements)."""
    share = weights / weights.sum()
    slope = lambda t: (share * labels * scipy.special.expit(-labels * (z @ t))) @ z  # noqa: E731
    (_, best), *rest = events
    bend, stale, own = (None, True, True) if factor is None else (factor @ factor.T, False, False)
    scale, scales, decrements = 1.0, [], []
    for kind, t in rest:
        if kind == "curvature":
            assert stale
            np.testing.assert_array_equal(t, best)
            chance = scipy.special.expit(z @ best)
            bend, stale, own = (z.T * (share * chance * (1 - chance))) @ z, False, True
            continue
        assert not stale
        move = np.linalg.solve(bend, slope(best))
        decrements.append(slope(best) @ move)
        step = best + scale * move
        step *= min(1.0, radius / np.linalg.norm(step))
        np.testing.assert_allclose(t, step, rtol=1e-5, atol=1e-7)
        scales.append(scale)
        if value(t, z, labels, weights) >= value(best, z, labels, weights) - 1e-15:
            stale = np.linalg.norm(slope(t)) > newton.REUSE_BELOW * np.linalg.norm(slope(best))
            best, scale = t, 1.0
        elif own:
            scale *= 0.5
        else:
            stale = True
    return best, scales, decrements


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_steps_are_newtons_by_a_curvature_that_is_kept_while_the_gradient_falls_fast(seed, events, x64):
    data = problem(seed)
    found = newton.maximise(*map(jnp.asarray, data), 30.0)
    best, _, decrements = follow(events, *data[:3], 30.0)
    np.testing.assert_array_equal(events[0][1], data[3])
    np.testing.assert_array_equal(found.t, best)
    # The end is where the decrement is what rounding hides of the value, and not before.
    rounding = np.finfo(float).eps * (1.0 - found.value)
    assert decrements[-1] < rounding
    assert min(decrements[:-1]) > 0.01 * rounding
    kinds = [kind for kind, _ in events]
    assert 1 < kinds.count("curvature") < kinds.count("look") - 1


@pytest.mark.slow
def test_a_step_that_lowers_the_value_is_halved(events, x64):
    """From where the curvature is next to nothing Newton's step goes to the other edge of the ball."""
    z, labels, weights = np.ones((40, 1)), np.where(np.arange(40) % 4, 1.0, -1.0), np.ones(40)
    found = newton.maximise(*map(jnp.asarray, (z, labels, weights, np.full(1, 8.0))), 30.0)
    best, scales, _ = follow(events, z, labels, weights, 30.0)
    assert min(scales) < 1.0 == scales[-1]
    np.testing.assert_allclose(best, np.log(3.0), rtol=1e-7)
    np.testing.assert_array_equal(found.t, best)
    assert found.status == Status.CONVERGED


@pytest.mark.slow
def test_halving_ends_below_a_thousandth(events, x64):
    """On the edge of the ball no step along Newton's direction raises the value."""
    rng = np.random.default_rng(1)
    columns = rng.normal(size=(2, 2)) * [[3.0], [0.3]]
    z, luck = rng.normal(size=(m, 2)) @ columns, rng.uniform(size=m)
    labels = np.where(luck < scipy.special.expit(5.0 * z @ rng.normal(size=2)), 1.0, -1.0)
    found = newton.maximise(*map(jnp.asarray, (z, labels, np.ones(m), np.zeros(2))), 0.5)
    _, scales, _ = follow(events, z, labels, np.ones(m), 0.5)
    assert scales[-1] < 1e-3 <= scales[-2]
    assert found.status == Status.CONVERGED


@pytest.mark.slow
@pytest.mark.parametrize("times", [0.1, 1.02, 6.0])
def test_a_bad_step_by_the_curvature_of_another_problem_asks_for_its_own(times, events, x64):
    z, labels, weights, start = problem(0)
    own = maximise(*map(jnp.asarray, (z, labels, weights, start)), radius=30.0)
    events.clear()
    factor = times * np.asarray(own.factor)
    newton.maximise(*map(jnp.asarray, (z, labels, weights, own.t + 0.1)), 30.0, factor=jnp.asarray(factor))
    _, scales, _ = follow(events, z, labels, weights, 30.0, factor)
    assert events[1][0] == "look"
    assert set(scales) == {1.0}
    assert any(kind == "curvature" for kind, _ in events) == (times != 1.02)


@pytest.mark.slow
def test_the_step_limit_is_counted_and_said(events, monkeypatch, x64):
    monkeypatch.setattr(newton, "MAX_STEPS", 3)
    data = problem(0, 4.0)
    found = newton.maximise(*map(jnp.asarray, data), 30.0)
    looks = [t for kind, t in events if kind == "look"]
    assert len(looks) == 3
    assert found.status == Status.MAX_STEPS
    np.testing.assert_array_equal(found.t, max(looks, key=lambda t: value(t, *data[:3])))


@given(st.integers(0, 2**16), st.floats(0.0, 30.0))
def test_the_start_does_not_matter(seed, far):
    z, labels, weights, start = problem(seed)
    start = far * start / np.linalg.norm(start)
    one = maximise(*map(jnp.asarray, (z, labels, weights, 0 * start)), radius=30.0)
    other = maximise(*map(jnp.asarray, (z, labels, weights, start)), radius=30.0)
    np.testing.assert_allclose(other.t, one.t, atol=5e-3)
    np.testing.assert_allclose(other.value, one.value, atol=1e-6)


def test_the_scale_of_the_weights_does_not_matter(x64):
    z, labels, weights, start = problem(0)
    one = maximise(*map(jnp.asarray, (z, labels, weights, start)), radius=30.0)
    other = maximise(*map(jnp.asarray, (z, labels, 1e3 * weights, start)), radius=30.0)
    np.testing.assert_allclose(other.t, one.t, rtol=1e-10)


def test_no_weight_at_all_is_said():
    z, labels, weights, start = problem(0)
    found = maximise(*map(jnp.asarray, (z, labels, 0 * weights, start)), radius=30.0)
    assert found.status == Status.NONFINITE


def test_nan_is_said_and_batches_keep_their_lanes():
    lanes = [problem(seed) for seed in range(4)]
    batch = [jnp.asarray(np.stack(part), jnp.float32) for part in zip(*lanes, strict=True)]
    many = jax.jit(jax.vmap(lambda *a: newton.maximise(*a, 30.0)))
    clean = many(*batch)
    batch[0] = batch[0].at[1, 3, 2].set(jnp.nan)
    found = many(*batch)
    assert found.status[1] == Status.NONFINITE
    for i in (0, 2, 3):
        np.testing.assert_array_equal(found.t[i], clean.t[i])
        alone = maximise(*(part[i] for part in batch), radius=30.0)
        np.testing.assert_allclose(found.t[i], alone.t, rtol=1e-3, atol=1e-4)
        assert found.status[i] == alone.status == Status.CONVERGED


@pytest.mark.slow
def test_eager_equals_jit():
    arguments = [jnp.asarray(part, jnp.float32) for part in problem(0)]
    with jax.disable_jit():
        eager = newton.maximise(*arguments, 30.0)
    found = maximise(*arguments, radius=30.0)
    np.testing.assert_allclose(eager.t, found.t, rtol=1e-4, atol=1e-5)
    assert eager.status == found.status
