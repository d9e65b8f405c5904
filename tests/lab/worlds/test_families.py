"""What each family promises in its docstring."""

import jax
import numpy as np
import pytest

from robust_rlhf_jax.lab.worlds import (
    chain_mdp,
    grid_walls,
    gridworld,
    hard_instance,
    partial_coverage_mdp,
    random_linear_mdp,
)
from robust_rlhf_jax.mdp import (
    check_linear_mdp,
    normalised_gap,
    occupancy,
    optimal_policy,
    policy_value,
    rollout,
    uniform_policy,
)


@pytest.fixture(scope="module")
def grid():
    return gridworld(jax.random.key(0))


def test_gridworld_defaults(grid):
    assert grid.features.shape == (2500, 4, 64)
    assert grid.transition_measures.shape == (18, 64, 2500)
    assert grid.theta.shape == (18, 64)
    check_linear_mdp(grid)


@pytest.mark.slow
def test_walls_are_never_entered(grid):
    walls = grid_walls(jax.random.key(0), 50).ravel()
    assert walls[25 * 50 + 25], "the parting wall stands in the middle column"
    assert 0.05 < walls.mean() < 0.2
    np.testing.assert_array_equal(np.asarray(grid.transition_measures)[:, :, walls], 0.0)
    np.testing.assert_array_equal(np.asarray(grid.initial_distribution)[walls], 0.0)
    states, _ = rollout(jax.random.key(1), grid, uniform_policy(grid), 2000)
    assert not walls[np.asarray(states)].any()
    assert np.asarray(occupancy(grid, uniform_policy(grid)))[:, walls].max() == 0.0


@pytest.mark.slow
def test_gridworld_starts_bottom_left_and_the_goal_is_worth_reaching(grid):
    rows, columns = np.divmod(np.flatnonzero(np.asarray(grid.initial_distribution)), 50)
    assert rows.min() >= 40
    assert columns.max() <= 10
    _, value = optimal_policy(grid)
    assert value > policy_value(grid, uniform_policy(grid)) + 0.5
    assert normalised_gap(grid, uniform_policy(grid)) > 0.3
    reward = np.asarray(grid.rewards())[0]
    np.testing.assert_allclose(reward[-1], 1.0, rtol=1e-6)
    np.testing.assert_allclose(reward[0], -0.5, rtol=1e-6)
    assert reward[2450].max() == 0.0, "the start pays nothing"


def test_without_slip_a_move_goes_where_it_says():
    """Away from walls and edges each action shifts the mean position its own way."""
    mdp = gridworld(jax.random.key(2), size=5, cells=3, slip=0.0, wall_density=0.0)
    walls = grid_walls(jax.random.key(2), 5, 0.0)
    moves = {0: (-1, 0), 1: (1, 0), 2: (0, -1), 3: (0, 1)}
    rows = np.einsum("sad,dt->sat", mdp.features, mdp.transition_measures[0]).reshape(5, 5, 4, 5, 5)
    position = np.stack(np.meshgrid(np.arange(5), np.arange(5), indexing="ij"))
    for action, move in moves.items():
        mean = np.einsum("ij,cij->c", rows[4, 0, action], position)
        stay = np.einsum("ij,cij->c", rows[4, 0].mean(axis=0), position)
        assert np.dot(mean - stay, move) > 0, f"action {action} moves the wrong way"
    assert rows[..., walls].max() == 0.0


def test_slip_moves_mass_to_the_other_actions():
    straight = gridworld(jax.random.key(0), size=10, slip=0.0)
    slipping = gridworld(jax.random.key(0), size=10, slip=0.3)
    by_action = np.asarray(straight.transition_measures[0]).reshape(16, 4, 100)
    expected = 0.6 * by_action + 0.1 * by_action.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(
        np.asarray(slipping.transition_measures[0]).reshape(16, 4, 100), expected, atol=1e-6
    )


@pytest.mark.parametrize(("size", "cells"), [(4, 2), (4, 4), (5, 4), (7, 3)])
def test_every_allowed_grid_is_a_linear_mdp(size, cells):
    """The smallest grids too: with as many macro-cells as states, the parting wall fills some of them."""
    try:
        mdp = gridworld(jax.random.key(1), size=size, cells=cells, horizon=2)
    except ValueError:
        assert size <= cells, "only a grid without room may be refused"
        return
    assert mdp.dim == 4 * cells**2
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(mdp)), "NaN: a macro-cell is all wall"
    check_linear_mdp(mdp)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": 3}, "size=3"),
        ({"size": 4}, "use more states a cell"),
        ({"horizon": 0}, "horizon=0"),
        ({"cells": 1}, "cells=1"),
        ({"cells": 5}, "cells=5"),
        ({"slip": 1.0}, "slip=1.0"),
        ({"slip": -0.1}, "slip=-0.1"),
        ({"wall_density": 1.0}, "wall_density=1.0"),
    ],
)
def test_gridworld_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        gridworld(jax.random.key(0), **arguments)


@pytest.mark.slow
def test_partial_coverage_behaviour_is_rare_where_it_says(partial_coverage):
    mdp, policies = partial_coverage
    assert len(policies) == 2
    for policy in policies:
        assert policy.shape == (5, 60, 4)
        np.testing.assert_allclose(np.asarray(policy)[..., 2:].sum(axis=-1), 0.004, rtol=1e-6)
        np.testing.assert_allclose(np.asarray(policy)[..., :2], 0.498, rtol=1e-6)
    phi = np.asarray(mdp.features)
    np.testing.assert_array_equal(phi[:, :2, 4:], 0.0)
    assert phi[:, 2, 4].min() >= 0.5
    assert phi[:, 3, 5].min() >= 0.5
    np.testing.assert_array_equal(phi[:, 2, 5], 0.0)
    assert np.asarray(mdp.theta)[:, 4:].max() < 0


@pytest.mark.slow
def test_partial_coverage_rare_actions_are_costly(partial_coverage):
    mdp, _ = partial_coverage
    only_rare = np.zeros((5, 60, 4), np.float32)
    only_rare[..., 3] = 1.0
    assert normalised_gap(mdp, only_rare) > normalised_gap(mdp, uniform_policy(mdp)) > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_rare": 0}, "n_rare=0"),
        ({"n_rare": 4}, "n_rare=4"),
        ({"dim": 3}, "dim=3"),
        ({"rare_probability": 0.0}, "rare_probability=0.0"),
        ({"rare_probability": 1.0}, "rare_probability=1.0"),
        ({"n_states": 0}, "n_states=0"),
        ({"horizon": 0}, "horizon=0"),
        ({"feature_concentration": 0.0}, "feature_concentration=0.0 must be positive"),
    ],
)
def test_partial_coverage_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        partial_coverage_mdp(jax.random.key(0), **arguments)


@pytest.mark.parametrize("size", [0, 2.5, "3", None])
def test_sizes_that_are_no_whole_numbers_are_named(size):
    sizes = {"n_states": 4, "n_actions": 2, "dim": 2, "horizon": 1} | {"n_states": size}
    with pytest.raises(ValueError, match=f"^n_states={size}: every size must be a whole number, 1 or more"):
        random_linear_mdp(jax.random.key(0), **sizes)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_hard_instance_hangs_on_the_rare_action(seed):
    mdp, (policy, other) = hard_instance(jax.random.key(seed), n_actions=3, horizon=6, advantage=0.25)
    check_linear_mdp(mdp)
    np.testing.assert_allclose(policy[0, 0], [0.45, 0.45, 0.1], rtol=1e-6)
    np.testing.assert_array_equal(policy, other)
    worth = np.asarray(mdp.theta)[:, -1]
    np.testing.assert_array_equal(np.abs(worth), 0.25)
    np.testing.assert_array_equal(np.asarray(mdp.theta)[:, :-1], 0.0)
    best, value = optimal_policy(mdp)
    np.testing.assert_allclose(value, 0.25 * (worth > 0).sum(), rtol=1e-6)
    np.testing.assert_allclose(policy_value(mdp, policy), 0.1 * worth.sum(), atol=1e-6)
    np.testing.assert_array_equal(np.asarray(best)[:, 0, -1], (worth > 0).astype(np.float32))


def test_hard_instance_has_both_signs_over_keys():
    signs = [np.sign(hard_instance(jax.random.key(k))[0].theta[:, -1]) for k in range(8)]
    assert len({tuple(s) for s in np.asarray(signs).tolist()}) > 3


@pytest.mark.parametrize(
    "arguments",
    [
        {"n_actions": 1},
        {"rare_probability": 0.0},
        {"rare_probability": 1.5},
        {"advantage": 0.0},
        {"advantage": 2.0},
        {"horizon": 0},
    ],
)
def test_hard_instance_refuses(arguments):
    (name, value), *_ = arguments.items()
    with pytest.raises(ValueError, match=f"{name}={value}"):
        hard_instance(jax.random.key(0), **arguments)


def test_swimming_right_is_optimal_and_drifting_is_poor():
    mdp = chain_mdp()
    best, value = optimal_policy(mdp)
    swim = np.zeros((10, 20, 2), np.float32)
    swim[..., 1] = 1.0
    reached = np.asarray(occupancy(mdp, best)).sum(axis=-1)
    early = np.argmax(best, axis=-1)[:7]
    np.testing.assert_array_equal(early[reached[:7] > 0], 1)
    np.testing.assert_allclose(policy_value(mdp, swim), value, rtol=1e-3)
    drift = 1 - swim
    np.testing.assert_allclose(policy_value(mdp, drift), 0.05 * 10, rtol=1e-5)
    assert normalised_gap(mdp, uniform_policy(mdp)) > 0.5
    assert value > 4 * policy_value(mdp, drift)


def test_a_chain_of_a_new_size_compiles_nothing(count_compilations):
    """NumPy makes it, and rounds it too."""
    with count_compilations() as count:
        mdp = chain_mdp(n_states=11, dim=6, horizon=7)
    assert count.compiled == []
    assert {leaf.dtype.name for leaf in jax.tree.leaves(mdp)} == {"float32"}


def test_chain_rewards_and_start():
    mdp = chain_mdp(n_states=9, dim=6, horizon=3, left_reward=0.2)
    reward = np.asarray(mdp.rewards())[0]
    goal = reward[-1, 1]
    assert 0 < goal <= 1 + 1e-6
    np.testing.assert_allclose(reward[0], 0.2 * goal, rtol=1e-5)
    np.testing.assert_allclose(reward[-1, 0], 0.0, atol=1e-6)
    np.testing.assert_array_equal(mdp.initial_distribution, np.eye(9)[0])
    anywhere = chain_mdp(n_states=9, dim=6, horizon=3, exploring_starts=True)
    np.testing.assert_allclose(anywhere.initial_distribution, 1 / 9, rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dim": 9}, "dim=9"),
        ({"horizon": 0}, "horizon=0"),
        ({"dim": 2}, "dim=2"),
        ({"n_actions": 1}, "n_actions=1"),
        ({"success": 0.0}, "success=0.0"),
        ({"success": 0.96}, "success=0.96"),
        ({"contrast": 0.0}, "contrast=0.0"),
        ({"contrast": 0.6}, "contrast=0.6"),
    ],
)
def test_chain_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        chain_mdp(**arguments)


@pytest.mark.parametrize("n_states", [1, 2, 3, 4, 5, 6])
def test_chain_with_few_states_is_refused_or_sound(n_states):
    """Five cells need about five states: a chain with fewer must not come back full of NaN."""
    try:
        mdp = chain_mdp(n_states=n_states, dim=10, horizon=2)
    except ValueError:
        return
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(mdp))
    check_linear_mdp(mdp)


def test_contrast_changes_the_features_but_not_the_process():
    """Swim and drift differ by a feature of length in proportion to the contrast; P stays what it was."""
    faint, strong = (chain_mdp(n_states=9, dim=6, horizon=2, contrast=c) for c in (0.1, 0.4))
    rows = [np.einsum("sad,dt->sat", m.features, m.transition_measures[0]) for m in (faint, strong)]
    np.testing.assert_allclose(rows[0], rows[1], atol=1e-5)
    gaps = [np.linalg.norm(m.features[:, 1] - m.features[:, 0], axis=-1) for m in (faint, strong)]
    np.testing.assert_allclose(gaps[1], 4 * gaps[0], rtol=1e-4)


@pytest.mark.parametrize("name", ["feature_concentration", "next_state_concentration"])
def test_a_random_world_refuses_concentrations_that_make_it_nan(name):
    for value in (0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match=f"{name}={value} must be positive"):
            random_linear_mdp(jax.random.key(0), n_states=4, n_actions=2, dim=2, horizon=1, **{name: value})
