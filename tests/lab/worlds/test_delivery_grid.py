"""The delivery grid against its own map, walked in plain Python, and what its goal is worth."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.lab.worlds import DELIVERY_FEATURES, delivery_grid, delivery_map
from robust_rlhf_jax.mdp import check_linear_mdp, normalised_gap, occupancy, optimal_policy, uniform_policy

KEY = jax.random.key(0)
MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))
GOAL, OBSTACLE = 0, 7


@pytest.fixture(scope="module")
def world():
    return delivery_grid(KEY), delivery_map(KEY)


def test_it_is_a_small_sparse_linear_mdp(world):
    mdp, kinds = world
    assert (mdp.horizon, mdp.n_states, mdp.n_actions, mdp.dim) == (20, (kinds != OBSTACLE).sum(), 4, 32)
    check_linear_mdp(mdp)
    assert mdp.theta.shape == (20, 6) == (20, len(DELIVERY_FEATURES))
    np.testing.assert_array_equal(mdp.theta, np.broadcast_to(mdp.theta[0], (20, 6)))
    shown = np.asarray(mdp.reward_features)
    assert shown.sum(axis=-1).max() == 1
    assert (shown.mean(axis=(0, 1)) < 0.3).all()
    assert (shown.max(axis=(0, 1)) == 1).all()
    assert mdp.initial_distribution[np.cumsum(kinds.ravel() != OBSTACLE).reshape(6, 6)[-1, 0] - 1] == 1


def test_moves_and_rewards_are_those_of_the_map():
    mdp, kinds = delivery_grid(KEY, slip=0.0), delivery_map(KEY)
    cells = [tuple(cell) for cell in np.argwhere(kinds != OBSTACLE)]
    chances = np.einsum("sad,dn->san", mdp.features, mdp.transition_measures[0])
    for s, (i, j) in enumerate(cells):
        for a, (down, right) in enumerate(MOVES):
            to = (i + down, j + right)
            at_goal, free = kinds[i, j] == GOAL, to in cells
            end = to if free and not at_goal else (i, j)
            np.testing.assert_array_equal(chances[s, a], np.eye(len(cells))[cells.index(end)])
            shown = kinds[to] if free else 5
            wanted = np.zeros(6) if at_goal or shown == 6 else np.eye(6)[shown]
            np.testing.assert_array_equal(mdp.reward_features[s, a], wanted)


def test_the_goal_is_never_left_and_pays_once(world):
    mdp, kinds = world
    goal = np.cumsum(kinds.ravel() != OBSTACLE).reshape(6, 6)[0, -1] - 1
    chances = np.einsum("ad,dn->an", mdp.features[goal], mdp.transition_measures[0])
    np.testing.assert_array_equal(chances, np.broadcast_to(np.eye(mdp.n_states)[goal], (4, mdp.n_states)))
    np.testing.assert_array_equal(mdp.reward_features[goal], 0)
    reached = jnp.einsum("hsa,sa->", occupancy(mdp, uniform_policy(mdp)), mdp.reward_features[..., 0])
    assert 0 < reached < 0.1


@pytest.mark.parametrize("seed", range(4))
def test_a_plan_without_the_goal_is_clearly_worse(seed):
    mdp = delivery_grid(jax.random.key(seed))
    check_linear_mdp(mdp)
    blind = optimal_policy(mdp, mdp.theta.at[:, 0].set(0.0))[0]
    assert normalised_gap(mdp, optimal_policy(mdp)[0]) < 1e-5
    assert 0.3 < normalised_gap(mdp, blind) < 0.45


def test_keys_draw_maps_of_one_size():
    maps = [delivery_map(jax.random.key(seed)) for seed in range(5)]
    assert len({m.tobytes() for m in maps}) == 5
    np.testing.assert_array_equal(*[np.bincount(m.ravel())[[0, 1, 2, 7]] for m in maps[:2]])
    np.testing.assert_array_equal(maps[0], delivery_map(jax.random.key(0)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 3}, "size=3"),
        ({"horizon": 11}, "horizon=11"),
        ({"slip": 1.0}, "slip=1.0"),
        ({"goal": 3.0}, "goal=3.0"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        delivery_grid(KEY, **options)
