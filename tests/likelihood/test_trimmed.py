"""Algorithm 2: monotone, invariant, honest about what it found, against brute force."""

import itertools
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.special
from slow_parameters import slow

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.likelihood import trimmed_mle
from robust_rlhf_jax.likelihood.trimmed import (
    Alternation,
    default_tolerance,
)

from .trimmed_fits import ZEROS, fit, fit_from, likelihoods, numpy_newton, problem_of, sample


@pytest.mark.slow
@pytest.mark.parametrize(("wide", "tolerance"), [(False, 1e-4), (True, 1e-9)])
def test_without_corruption_it_is_maximum_likelihood(wide, tolerance):
    x, labels, _ = sample()
    expected = numpy_newton(x, labels, 4.0)
    with jax.enable_x64(wide):
        found = fit(x, labels, 0.0)
        assert found.theta.dtype == found.objective.dtype == (jnp.float64 if wide else jnp.float32)
    np.testing.assert_allclose(found.theta, expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(found.weights, 1.0)
    np.testing.assert_allclose(found.objective, likelihoods(expected, x, labels).mean(), rtol=1e-6)
    assert found.status == Status.CONVERGED
    assert found.rank == 4
    assert found.gradient_norm < (1e-9 if wide else 1e-5)
    assert 1 <= found.rounds <= 3


@pytest.mark.slow
def test_the_objective_never_falls(x64):
    """Round by round: neither the new θ on the old pairs nor the new pairs under the new θ lower it."""
    x, labels, _ = sample(share=0.15, seed=1)
    for theta in (np.zeros(4), np.random.default_rng(2).normal(size=4)):
        margins = labels * (x @ theta)
        kept = (np.argsort(np.argsort(-margins)) < 160).astype(float)
        if not theta.any():
            kept = np.full(200, 0.8)  # all likelihoods tie: every pair counts in part
        objectives = [kept @ likelihoods(theta, x, labels) / kept.sum()]
        for _ in range(12):
            found = fit_from(np.stack([theta, theta]), x, labels, 0.2, max_rounds=1)
            theta = np.asarray(found.theta)
            halfway = kept @ likelihoods(theta, x, labels) / kept.sum()
            assert halfway >= objectives[-1] - 1e-14
            assert found.objective >= halfway - 1e-14
            kept = np.asarray(found.weights)
            objectives.append(float(found.objective))
        assert objectives[2] > objectives[1] + 1e-3, "the first rounds must have something to gain"
        assert objectives[-1] - objectives[-2] < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("change", ["permute", "rotate", "swap"])
def test_invariances(change, x64):
    """Order of the rows, basis of the features, and which trajectory comes first carry no information."""
    x, labels, _ = sample(share=0.1, seed=3)
    plain = fit(x, labels, 0.15)
    rng = np.random.default_rng(4)
    order, back = np.arange(len(x)), np.eye(4)
    if change == "permute":
        order = rng.permutation(len(x))
    elif change == "rotate":
        back = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    flips = rng.choice([-1.0, 1.0], len(x)) if change == "swap" else np.ones(len(x))
    other = fit((flips[:, None] * x)[order] @ back, (flips * labels)[order], 0.15)
    np.testing.assert_allclose(back @ other.theta, plain.theta, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(other.weights, plain.weights[order], atol=1e-9)
    np.testing.assert_allclose(other.objective, plain.objective, rtol=1e-10)


def constrained(x, labels, radius):
    """Maximum likelihood in the ball by sequential quadratic programming."""
    return scipy.optimize.minimize(
        lambda t: -likelihoods(t, x, labels).mean(),
        np.zeros(x.shape[1]),
        jac=lambda t: -(labels * scipy.special.expit(-labels * (x @ t))) @ x / len(x),
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda t: radius**2 - t @ t, "jac": lambda t: -2 * t},
        options={"ftol": 1e-14},
    ).x


@pytest.mark.slow
def test_against_all_subsets(x64):
    """n = 9, seven kept: never above the best of all 36 subsets, and stationary for its own."""
    radius, kept = 1.5, 7
    subsets = [np.array(s) for s in itertools.combinations(range(9), kept)]
    for seed in range(4):
        x, labels, _ = sample(n=9, k=2, seed=seed)
        fits = [constrained(x[s], labels[s], radius) for s in subsets]
        values = [likelihoods(t, x[s], labels[s]).mean() for t, s in zip(fits, subsets, strict=True)]
        found = fit_from(np.zeros((2, 2)), x, labels, 2 / 9, radius)
        assert found.objective <= max(values) + 1e-9
        mine = likelihoods(found.theta, x, labels)
        np.testing.assert_allclose(found.objective, np.sort(mine)[-kept:].mean(), rtol=1e-10)
        np.testing.assert_allclose(np.asarray(found.weights) @ mine / kept, found.objective, rtol=1e-10)
        np.testing.assert_allclose(np.sort(found.weights), [0, 0] + 7 * [1], atol=1e-9)
        # No other θ in the ball does better on the same subset.
        same = [v for v, s in zip(values, subsets, strict=True) if np.all(found.weights[s] > 0.5)]
        np.testing.assert_allclose(found.objective, same[0], atol=1e-8)
        # Started at the optimum of the best subset it stays there.
        top = np.stack([fits[int(np.argmax(values))]] * 2)
        assert np.linalg.norm(top[0]) <= radius * (1 + 1e-6)
        top *= min(1.0, radius / np.linalg.norm(top[0]))
        again = fit_from(top, x, labels, 2 / 9, radius)
        np.testing.assert_allclose(again.objective, max(values), rtol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.37])
def test_weights_are_capacities(epsilon, x64):
    x, labels, _ = sample(seed=7)
    capacity = np.random.default_rng(8).uniform(0, 1, len(x))
    capacity[::5] = 0.0
    found = fit(x, labels, epsilon, weights=capacity)
    kept = np.asarray(found.weights)
    assert (kept >= 0).all()
    assert (kept <= capacity + 1e-12).all()
    np.testing.assert_allclose(kept.sum(), (1 - epsilon) * capacity.sum(), rtol=1e-10)
    # Only a row at the threshold is kept in part, and all above it in full.
    margins = labels * (x @ np.asarray(found.theta))
    partial = (kept > 1e-9) & (kept < capacity - 1e-9)
    assert partial.sum() <= 1
    above = margins > margins[kept > 1e-9].min() + 1e-9
    np.testing.assert_allclose(kept[above], capacity[above])
    # What has no weight is not there.
    other, absent = x.copy(), capacity == 0
    other[absent] *= -3.0
    np.testing.assert_allclose(
        fit(other, labels, epsilon, weights=capacity).theta, found.theta, rtol=1e-7, atol=1e-9
    )


def test_trimming_forgets_wrong_labels(x64):
    """Most confident pairs with flipped labels are trimmed, and θ̂ comes closer to θ★ than the plain fit."""
    believed = []
    for seed in range(5):
        x, labels, truth = sample(seed=seed)
        flipped = np.argsort(-labels * (x @ truth))[:10]
        labels[flipped] *= -1
        plain, robust = fit(x, labels, 0.0), fit(x, labels, 0.05)
        assert np.linalg.norm(robust.theta - truth) < np.linalg.norm(plain.theta - truth)
        believed.append(np.mean(robust.weights[flipped]))
    assert np.mean(believed) < 0.5


@pytest.mark.slow
def test_null_directions_stay_at_zero():
    """Differences of distributions: every block sums to zero, so θ̂ must too."""
    rng = np.random.default_rng(10)
    x = rng.dirichlet(np.ones(4), 200) - rng.dirichlet(np.ones(4), 200)
    labels = np.where(rng.uniform(size=200) < scipy.special.expit(x @ np.arange(4.0)), 1.0, -1.0)
    found = fit(x.astype(np.float32), labels, 0.1, radius=10.0)
    assert found.rank == 3
    assert abs(np.sum(found.theta)) < 1e-5
    assert found.status == Status.CONVERGED
    x[0, 0] = np.nan
    assert fit(x.astype(np.float32), labels, 0.1).status == Status.NONFINITE


@pytest.mark.slow
def test_round_limit_and_tolerance_are_respected(x64):
    x, labels, _ = sample(share=0.15, seed=11)
    cut = fit_from(ZEROS, x, labels, 0.15, max_rounds=1)
    assert cut.status == Status.MAX_STEPS
    assert cut.rounds == 1
    loose, tight = (fit_from(ZEROS, x, labels, 0.15, tolerance=t) for t in (0.15**2, None))
    assert loose.status == tight.status == Status.CONVERGED
    assert loose.rounds < tight.rounds
    assert tight.newton_steps >= tight.rounds
    assert tight.gradient_norm < 1e-8
    assert 0 < default_tolerance(jnp.float64) < default_tolerance(jnp.float32) < 1e-4


def separating_program(x, labels):
    """max Σ o_n x_nᵀv over o_n x_nᵀv ≥ 0, ‖v‖∞ ≤ 1: above 0 exactly if some direction has no best length."""
    won = labels[:, None] * x
    bounds = [(-1, 1)] * x.shape[1]
    return -scipy.optimize.linprog(-won.sum(axis=0), -won, np.zeros(len(x)), bounds=bounds).fun


@pytest.mark.parametrize("wide", [slow(False), True])
@pytest.mark.parametrize("radius", [2.0, 100.0])
def test_separable_labels_are_said_to_be(wide, radius):
    """Against HiGHS: labels without noise, with it, and with a column that decides each pair which shows it."""
    with jax.enable_x64(wide):
        for seed in range(3):
            x, noisy, truth = sample(seed=seed)
            rare = x.copy()
            rare[:, 3] = np.where(np.arange(200) < 20, noisy * np.abs(x[:, 3]), 0.0)
            cases = {"none": (x, noisy), "all": (x, np.sign(x @ truth)), "one column": (rare, noisy)}
            for name, (rows, labels) in cases.items():
                found = fit(rows, labels, 0.0, radius)
                separable = separating_program(rows, labels) > 1e-6
                assert separable == (name != "none")
                # A small ball gives θ its length, and θ̂ there does not separate the labels yet.
                if radius > 10 or not separable:
                    assert found.status == (Status.SEPARABLE if separable else Status.CONVERGED), (seed, name)
            assert np.linalg.norm(found.theta) <= radius * (1 + 1e-5)


@pytest.mark.slow
def test_trimming_may_leave_separable_pairs(x64):
    """Twenty flipped labels of 200: a fit without ε keeps what contradicts, one with ε = .1 trims exactly that."""
    x, _, truth = sample(seed=12)
    labels = np.sign(x @ truth)
    labels[np.argsort(-np.abs(x @ truth))[:20]] *= -1
    assert fit(x, labels, 0.0).status == Status.CONVERGED
    found = fit(x, labels, 0.1, 100.0)
    assert found.status == Status.SEPARABLE
    assert separating_program(x[found.weights > 0.5], labels[found.weights > 0.5]) > 1e-6
    # Wide: labels far from any doubt, by L-BFGS.
    clear = x + 0.1 * np.sign(x @ truth)[:, None] * truth
    assert fit(clear, np.sign(x @ truth), 0.0, 100.0, newton_limit=2).status == Status.SEPARABLE


@pytest.mark.slow
def test_pairs_that_say_nothing_separate_nothing():
    assert fit(np.zeros((6, 2), np.float32), np.ones(6), 0.0).status == Status.CONVERGED
    x = np.zeros((6, 2), np.float32)
    x[0] = 1.0
    assert fit(x, np.ones(6), 0.0).status == Status.SEPARABLE


@pytest.mark.slow
def test_one_far_cell_can_be_worth_keeping(x64):
    """One cell of 300 rows at 10⁶, against its label: the objective prefers the fit with that column's sign turned.

    Trimming the row costs one of the 15 places that ordinary contradictions fill; keeping it costs nothing once θ_j
    has its sign. Without the row, from θ̂ of the clean data and eight other starts, the same number of kept pairs
    reaches less.
    """
    rng = np.random.default_rng(24)
    n, kept = 300, 285
    x, truth = rng.normal(size=(n, 3)), rng.normal(size=3)
    labels = np.where(rng.uniform(size=n) < scipy.special.expit(x @ truth), 1.0, -1.0)
    clean = np.asarray(fit_from(np.zeros((1, 3)), x, labels, 0.05, 30.0).theta)
    x[0, 1] = -np.sign(clean[1]) * labels[0] * 1e6
    found = fit(x, labels, 0.05, 30.0, starts=jnp.asarray(clean[None]))
    at_clean = np.sort(likelihoods(clean, x, labels))[-kept:].mean()
    without = fit_from(
        clean[None], x[1:], labels[1:], 1 - kept / (n - 1), 30.0, n_random_starts=8, key=jax.random.key(0)
    )
    assert found.weights[0] == 1.0
    assert clean[1] < -0.15 < 0.1 < found.theta[1]
    assert found.objective > at_clean + 0.003
    assert found.objective > without.objective


GOOD = np.ones((5, 2), np.float32), np.ones(5, np.float32)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": np.ones(5, np.float32)}, r"shape \[n, k\]"),
        ({"x": np.ones((5, 2, 2), np.float32)}, r"shape \[n, k\]"),
        ({"x": np.ones((5, 2), int)}, "floating-point"),
        ({"labels": np.ones(4)}, r"labels has shape \(4,\)"),
        ({"labels": np.ones((5, 1))}, "labels has shape"),
        ({"weights": np.ones(4)}, r"weights has shape \(4,\)"),
        ({"weights": np.ones(6)}, r"weights has shape \(6,\)"),
        ({"starts": np.ones(2)}, r"\[m, k\] with k = 2"),
        ({"starts": np.ones((1, 1))}, r"\[m, k\] with k = 2"),
        ({"starts": np.ones((1, 1, 2))}, r"\[m, k\] with k = 2"),
        ({"starts": np.ones((1, 3))}, r"\[m, k\] with k = 2"),
        ({"radius": 0.0}, "must be positive"),
        ({"radius": -1.0}, "must be positive"),
        ({"radius": float("nan")}, "must be positive"),
        ({"epsilon": 0.5}, r"outside \[0, 0\.5\)"),
        ({"n_random_starts": 2}, "needs a key"),
        ({"n_random_starts": -1}, "n_random_starts=-1 must be a whole number"),
        ({"x": np.ones((0, 2), np.float32), "labels": np.ones(0)}, r"x has shape \(0, 2\)"),
        ({"weights": [1.0, 1.0, 1.0, 1.0, 1.5]}, r"weights must lie in \[0, 1\]"),
        ({"weights": [1.0, 1.0, 1.0, 1.0, -0.5]}, r"weights must lie in \[0, 1\]"),
        ({"weights": [1.0, 1.0, 1.0, 1.0, np.nan]}, r"weights must lie in \[0, 1\]"),
        ({"weights": np.zeros(5)}, "not all be 0"),
        ({"weights": [1.0] * 4}, r"weights has shape \(4,\)"),
    ],
)
def test_bad_arguments_are_named(change, message):
    arguments = {"x": GOOD[0], "labels": GOOD[1], "epsilon": 0.1, "radius": 1.0} | change
    x, labels, epsilon = (arguments.pop(name) for name in ("x", "labels", "epsilon"))
    with pytest.raises(ValueError, match=message):
        trimmed_mle(x, labels, epsilon, **arguments)


@pytest.mark.slow
def test_lists_are_weights_and_starts_too():
    x, labels = [[1.0, 0.5], [0.5, -1.0], [1.0, 1.0]], [1, -1, -1]
    found = trimmed_mle(x, labels, 0.0, radius=1.0, weights=[1, 0, 1], starts=[[0, 0]])
    arrays = {"weights": np.float32([1, 0, 1]), "starts": np.float32([[0, 0]])}
    same = trimmed_mle(np.float32(x), np.float32(labels), 0.0, radius=1.0, **arrays)
    np.testing.assert_array_equal(found.theta, same.theta)


def test_options_are_given_by_name():
    with pytest.raises(TypeError, match="positional"):
        trimmed_mle(*GOOD, 0.1, 1.0)


@pytest.mark.slow
def test_the_first_model_is_the_curvature_where_no_pair_is_likelier(x64):
    """At θ = 0: a quarter of the second moment, every pair kept in the same part, −log 2 each."""
    x, labels, _ = sample()
    capacity = np.random.default_rng(3).uniform(0.2, 1.0, 200)
    state = Alternation().init(problem_of(x, labels, capacity, 0.1), key=None)
    np.testing.assert_allclose(state.curvature, (x.T * capacity) @ x / capacity.sum() / 4, rtol=1e-12)
    np.testing.assert_allclose(state.weights, 0.9 * capacity, rtol=1e-12)
    np.testing.assert_allclose(state.objective, -np.log(2), rtol=1e-12)
    assert (float(state.gain), int(state.newton_steps)) == (np.inf, 0)


def test_the_alternation_ends_at_a_gain_of_the_tolerance(x64):
    problem = SimpleNamespace(tolerance=jnp.asarray(1e-3))
    for gain, status in ((1e-3, Status.CONVERGED), (np.nextafter(1e-3, 1.0), Status.RUNNING)):
        assert Alternation().terminate(problem, SimpleNamespace(gain=jnp.asarray(gain))) == status


@pytest.mark.slow
def test_a_limit_of_the_width_itself_is_newtons(x64):
    x, labels, _ = sample(share=0.15)

    def shapes(**options):
        return jax.eval_shape(lambda x: trimmed_mle(x, jnp.asarray(labels), 0.1, radius=4.0, **options), x)

    assert shapes(newton_limit=4) == shapes()


def test_a_direction_of_pairs_without_weight_counts_in_the_rank(x64):
    x, labels, _ = sample()
    x[20:, 3] = 0.0
    capacity = np.where(np.arange(200) < 20, 0.0, 1.0)
    assert fit(x, labels, 0.0, weights=capacity).rank == 4


@pytest.mark.slow
def test_a_traced_ball_binds(x64):
    """Of a radius below 1, at ε = 0, in units of which the largest entries are 64 and the ball is 1/64 as large."""
    x, labels, _ = sample()
    run = jax.jit(lambda x, epsilon, radius: fit(x, labels, epsilon, radius).theta)
    for unit in (1.0, 64.0):
        found = run(x * unit, 0.0, 0.5 / unit)
        np.testing.assert_allclose(np.asarray(found) * unit, constrained(x, labels, 0.5), atol=1e-6)
