"""The pessimistic median: its box against NumPy, its projection against SciPy, its plan against brute force."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from rated_labels import sample

from robust_rlhf_jax import sample_preferences
from robust_rlhf_jax.algorithms.pessimism import resolve_reference
from robust_rlhf_jax.lab.pessimistic_median import (
    Box,
    PessimisticMedianConfig,
    median_box,
    pessimistic_median,
)
from robust_rlhf_jax.lab.worlds import normalised_gap, random_linear_mdp
from robust_rlhf_jax.oracles import ExactOracle
from robust_rlhf_jax.raters.rivals.median_of_raters import fits_of_raters

BOUND = 3.0


@pytest.mark.slow
def test_the_box_is_that_of_ellipsoids_in_numpy(x64):
    """Each end is the median over raters of the farthest point of their ellipsoids along a coordinate."""
    x, labels, who = sample(k=3)
    rows = labels[:, None] * x
    given = (jnp.asarray(rows), jnp.asarray(who), 6, jnp.asarray(BOUND))
    box = median_box(*given)[0]
    axes = np.linalg.eigh(rows.T @ rows / len(rows))[1]
    np.testing.assert_allclose(np.abs(axes.T @ np.asarray(box.axes)), np.eye(rows.shape[1]), atol=1e-8)
    rows = rows @ np.asarray(box.axes)
    fits = np.asarray(fits_of_raters(jnp.asarray(rows), *given[1:])[0])
    # The quantile of the package is that of Wilson and Hilferty.
    gamma2, half = scipy.stats.chi2.ppf(0.9, 3), []
    for k in range(6):
        mine = rows[who == k]
        p = 1 / (1 + np.exp(-mine @ fits[k]))
        known = (mine * (p * (1 - p))[:, None]).T @ mine + gamma2 / BOUND**2 * np.eye(3)
        half.append(np.sqrt(gamma2 * np.diag(np.linalg.inv(known))))
    np.testing.assert_allclose(box.low, np.median(fits - half, axis=0), atol=5e-3)
    np.testing.assert_allclose(box.high, np.median(fits + half, axis=0), atol=5e-3)
    np.testing.assert_allclose(box.centre, box.axes @ np.median(fits, axis=0), atol=1e-6)
    assert box.contains(box.centre)


@pytest.mark.slow
def test_every_median_of_possible_rewards_lies_in_the_box(x64):
    x, labels, who = sample(1)
    rows = labels[:, None] * x
    given = (jnp.asarray(rows), jnp.asarray(who), 6, jnp.asarray(BOUND))
    box = median_box(*given)[0]
    axes = np.linalg.eigh(rows.T @ rows / len(rows))[1]
    np.testing.assert_allclose(np.abs(axes.T @ np.asarray(box.axes)), np.eye(rows.shape[1]), atol=1e-8)
    rows = rows @ np.asarray(box.axes)
    fits = np.asarray(fits_of_raters(jnp.asarray(rows), *given[1:])[0])
    rng, gamma2 = np.random.default_rng(0), scipy.stats.chi2.ppf(0.9, 2)
    for _ in range(200):
        points = []
        for k in range(6):
            mine = rows[who == k]
            p = 1 / (1 + np.exp(-mine @ fits[k]))
            known = (mine * (p * (1 - p))[:, None]).T @ mine + gamma2 / BOUND**2 * np.eye(2)
            way = rng.normal(size=2)
            points.append(fits[k] + way * np.sqrt(gamma2 / (way @ known @ way)))
        middle = np.median(points, axis=0)
        assert ((middle >= box.low - 1e-9) & (middle <= box.high + 1e-9)).all()


@pytest.mark.slow
def test_the_median_of_raters_at_the_bound_is_possible(x64):
    """Each of three raters tells of two directions and reaches the bound: their median, (1, 1, 1)/√2, lies beyond."""
    size = np.diag([1.0, 1.05, 1.1])
    rows = np.tile(size[[0, 1, 0, 2, 1, 2]], (2000, 1))
    who = np.tile([0, 0, 1, 1, 2, 2], 2000).astype(np.int32)
    box = median_box(jnp.asarray(rows), jnp.asarray(who), 3, jnp.asarray(1.0))[0]
    assert np.linalg.norm(box.centre) > np.linalg.norm(box.low) > 1
    assert box.contains(box.centre)
    assert box.contains(box.project(jnp.zeros(3)).theta)


@pytest.mark.parametrize("y", [[5.0, 5.0], [-4.0, 0.2], [0.1, 0.2], [0.3, -9.0]])
def test_the_projection_is_scipys(y, x64):
    low, high, radius = np.array([-1.0, -0.5]), np.array([1.0, 3.0]), 2.0
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    box = Box(jnp.zeros(2), jnp.asarray(low), jnp.asarray(high), jnp.asarray(turn), jnp.asarray(radius))
    found = box.project(jnp.asarray(y))
    expected = scipy.optimize.minimize(
        lambda t: np.sum((t - y) ** 2),
        np.zeros(2),
        method="SLSQP",
        constraints=[
            {"type": "ineq", "fun": lambda t: radius**2 - t @ t},
            {"type": "ineq", "fun": lambda t: np.concatenate([turn.T @ t - low, high - turn.T @ t])},
        ],
        options={"ftol": 1e-14},
    )
    np.testing.assert_allclose(found.theta, expected.x, atol=1e-6)
    assert box.contains(found.theta)


@pytest.fixture(scope="module")
def rated():
    """(a decision among three actions in six states, its data, raters: the last of five always says the opposite)."""
    mdp = random_linear_mdp(jax.random.key(3), n_states=6, n_actions=3, dim=3, horizon=1)
    data = sample_preferences(jax.random.key(1), mdp, 10_000)
    who = np.arange(10_000) % 5
    return mdp, dataclasses.replace(data, labels=data.labels * np.where(who == 4, -1, 1)), who


def planned(mdp, data, who):
    return pessimistic_median(jax.random.key(0), data, who, oracle=ExactOracle(mdp))


@pytest.mark.slow
def test_the_objective_is_the_worst_case_of_the_best_policy_by_brute_force(rated):
    """min over a grid of the box of Σ_s ρ(s) max_a θ·φ(s, a) − θ·E_ref[φ]."""
    mdp, data, who = rated
    found = planned(mdp, data, who)
    rows = data.labels[:, None] * data.differences()
    box, _ = median_box(rows, jnp.asarray(who), 5, jnp.float32(3**0.5))
    np.testing.assert_allclose(found.diagnostics["width"], box.high - box.low, rtol=1e-4)
    assert box.contains(found.theta.reshape(-1))
    reference = np.asarray(resolve_reference(None, data, jnp.float32(0.0)))
    # Features on a simplex: one axis is shown by nobody.
    assert box.low[0] == box.high[0] == 0
    ranges = [np.linspace(box.low[j], box.high[j], 101 if j else 1) for j in range(3)]
    grid = np.stack(np.meshgrid(*ranges), axis=-1).reshape(-1, 3) @ np.asarray(box.axes).T
    grid = grid[np.linalg.norm(grid, axis=1) <= 6**0.5]
    best = np.max(np.asarray(mdp.features) @ grid.T, axis=1)  # [S, points]
    worst = np.min(np.asarray(mdp.initial_distribution) @ best - grid @ reference)
    assert float(found.diagnostics["objective"]) == pytest.approx(worst, abs=0.02)


@pytest.mark.slow
def test_what_one_rater_says_moves_it_little(rated):
    """Of five raters the last may say what they like: the plan is nearly the best."""
    mdp, data, who = rated
    honest = dataclasses.replace(data, labels=data.labels * np.where(who == 4, -1, 1))
    for given in (data, honest):
        assert float(normalised_gap(mdp, planned(mdp, given, who).policy)) < 0.2


@pytest.mark.slow
def test_bad_input_is_one_sentence(rated):
    _, data, who = rated
    with pytest.raises(ValueError, match="nobody says who labelled the pairs"):
        pessimistic_median(jax.random.key(0), data)
    with pytest.raises(
        ValueError, match=r"raters has shape \(3,\): give one rater for each of the 10000 pairs"
    ):
        pessimistic_median(jax.random.key(0), data, who[:3])
    with pytest.raises(ValueError, match=r"radius=-1\.0 must be positive"):
        pessimistic_median(jax.random.key(0), data, who, config=PessimisticMedianConfig(radius=-1.0))
