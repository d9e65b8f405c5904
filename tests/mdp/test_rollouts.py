"""Sampled trajectories follow the exact distribution and never do what has probability zero."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.mdp import (
    LinearMDP,
    check_linear_mdp,
    occupancy,
    optimal_policy,
    rollout,
    rollouts,
    uniform_policy,
)


def assert_frequencies(counts, n, chances):
    """Counts of n independent trials within 5 standard errors of the exact chances, cell by cell."""
    chances = np.asarray(chances, np.float64)
    error = 5 * np.sqrt(n * chances * (1 - chances))
    off = np.abs(counts - n * chances)
    assert (off <= error + 1e-3).all(), (
        f"worst cell is {np.max(off / np.maximum(error, 1e-9)):.2f} × 5 s.e. off"
    )


def count_pairs(states, actions, mdp):
    counts = np.zeros((mdp.horizon, mdp.n_states, mdp.n_actions))
    for h in range(mdp.horizon):
        np.add.at(counts[h], (np.asarray(states[:, h]), np.asarray(actions[:, h])), 1)
    return counts


@pytest.mark.slow
def test_empirical_occupancy_is_the_exact_one(small_mdp, random_policy):
    policy, n = random_policy(small_mdp), 40_000
    states, actions = rollout(jax.random.key(1), small_mdp, policy, n)
    assert states.shape == (n, 4)
    assert actions.shape == (n, 3)
    assert states.dtype == actions.dtype == jnp.int32
    assert_frequencies(count_pairs(states, actions, small_mdp), n, occupancy(small_mdp, policy))


def test_steps_depend_on_each_other_as_the_model_says(small_mdp, random_policy):
    """Joint chances of (s_1, a_1, s_2, a_2): marginals alone would miss shared random numbers."""
    policy, n = random_policy(small_mdp, 3), 40_000
    states, actions = (np.asarray(x) for x in rollout(jax.random.key(2), small_mdp, policy, n))
    counts = np.zeros((6, 3, 6, 3))
    np.add.at(counts, (states[:, 0], actions[:, 0], states[:, 1], actions[:, 1]), 1)
    transitions = np.einsum("sad,dt->sat", small_mdp.features, small_mdp.transition_measures[0])
    chances = np.einsum("sa,sat,tb->satb", occupancy(small_mdp, policy)[0], transitions, policy[1])
    expected = n * chances
    large = expected > 5
    statistic = np.sum((counts - expected)[large] ** 2 / expected[large])
    cells = large.sum()
    assert cells > 100
    assert abs(statistic - cells) < 5 * np.sqrt(2 * cells)


def test_last_state_follows_the_last_transition(small_mdp, random_policy):
    policy, n = random_policy(small_mdp), 40_000
    states, _ = rollout(jax.random.key(4), small_mdp, policy, n)
    reached = np.einsum(
        "sa,sad,dt->t",
        occupancy(small_mdp, policy)[-1],
        small_mdp.features,
        small_mdp.transition_measures[-1],
    )
    assert_frequencies(np.bincount(states[:, -1], minlength=6), n, reached)


def test_signed_features_give_the_same_trajectories(small_mdp64, rotate_features, random_policy):
    rotated, policy, key = rotate_features(small_mdp64), random_policy(small_mdp64), jax.random.key(5)
    assert np.min(rotated.transition_measures) < -0.01
    for ours, theirs in zip(
        rollout(key, rotated, policy, 5000), rollout(key, small_mdp64, policy, 5000), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_signed_features_in_float32_have_the_exact_occupancy(small_mdp, rotate_features, random_policy):
    rotated, policy, n = rotate_features(small_mdp), random_policy(small_mdp), 40_000
    states, actions = rollout(jax.random.key(6), rotated, policy, n)
    assert_frequencies(count_pairs(states, actions, small_mdp), n, occupancy(small_mdp, policy))


@pytest.mark.slow
def test_any_number_of_blocks(small_mdp, random_policy, monkeypatch):
    """4,899 are 49 blocks of 100 less one: nothing is missing and no block repeats another."""
    monkeypatch.setattr(rollouts, "BLOCK", 100)
    states, actions = rollout(jax.random.key(8), small_mdp, random_policy(small_mdp), 4_899)
    assert states.shape == (4_899, 4)
    assert actions.shape == (4_899, 3)
    first, second = np.asarray(states[:100]), np.asarray(states[100:200])
    assert (first != second).any()
    chances = occupancy(small_mdp, random_policy(small_mdp))
    assert_frequencies(count_pairs(states, actions, small_mdp), 4_899, chances)


@pytest.mark.slow
def test_more_than_one_true_block(make_mdp):
    mdp = make_mdp(n_states=2, n_actions=2, dim=2)
    n = rollouts.BLOCK + 1
    states, actions = rollout(jax.random.key(1), mdp, uniform_policy(mdp), n)
    assert states.shape == (n, 4)
    assert_frequencies(count_pairs(states, actions, mdp), n, occupancy(mdp, uniform_policy(mdp)))


def test_deterministic_policy_is_followed(small_mdp):
    policy, _ = optimal_policy(small_mdp)
    states, actions = (np.asarray(x) for x in rollout(jax.random.key(0), small_mdp, policy, 40_000))
    chosen = np.argmax(policy, axis=-1)
    np.testing.assert_array_equal(actions, chosen[np.arange(3), states[:, :3]])


def test_same_key_same_trajectories_other_key_others(small_mdp):
    policy = uniform_policy(small_mdp)
    first, again = (rollout(jax.random.key(9), small_mdp, policy, 40_000) for _ in range(2))
    other = rollout(jax.random.key(10), small_mdp, policy, 40_000)
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])
    assert (np.asarray(first[0]) != np.asarray(other[0])).any()


@pytest.mark.slow
@pytest.mark.parametrize("n_states", [1, 9])
def test_states_stay_in_range_when_rows_sum_to_slightly_less_than_one(n_states):
    """Rounding, or any MDP that `check_linear_mdp` lets pass, may leave the last CDF entry below the draw."""
    even = (1 - 9e-5) / n_states
    mdp = LinearMDP(
        jnp.ones((n_states, 2, 1)),
        jnp.full((4, 1, n_states), even),
        jnp.zeros((4, 1)),
        jnp.full(n_states, even),
    )
    check_linear_mdp(mdp)
    states, actions = rollout(jax.random.key(1), mdp, uniform_policy(mdp) * (1 - 9e-5), 60_000)
    assert np.min(states) >= 0
    assert np.max(states) < n_states, f"{np.sum(np.asarray(states) >= n_states)} states are out of range"
    assert np.min(actions) >= 0
    assert np.max(actions) < 2


def one_way_world(n_states=4):
    """Every transition leads to state 1, whatever the action; it starts there too."""
    row = jnp.zeros(n_states).at[1].set(1.0)
    phi = jnp.ones((n_states, 2, 1))
    return LinearMDP(phi, jnp.broadcast_to(row, (1, 1, n_states)), jnp.zeros((1, 1)), row)


@pytest.mark.parametrize("draw", [0.0, 1 - 2**-23], ids=["lowest", "highest"])
def test_impossible_events_never_happen_at_the_ends_of_the_uniform(draw, monkeypatch):
    """A float32 uniform is exactly 0 once in 8 million draws: state 0 and action 0 must not profit."""
    monkeypatch.setattr(
        jax.random, "uniform", lambda key, shape=(), dtype=float, **_: jnp.full(shape, draw, dtype)
    )
    mdp, n = one_way_world(), 17
    policy = jnp.broadcast_to(jnp.array([0.0, 1.0]), (1, 4, 2))
    states, actions = rollouts._rollout_block(jax.random.key(0), mdp, policy, n)
    np.testing.assert_array_equal(states, 1)
    np.testing.assert_array_equal(actions, 1)


@pytest.mark.parametrize("n", [0, -3])
def test_no_trajectories_is_an_error(small_mdp, n):
    with pytest.raises(ValueError, match=f"n={n} trajectories"):
        rollout(jax.random.key(0), small_mdp, uniform_policy(small_mdp), n)


def test_new_data_of_the_same_shape_compile_nothing(small_mdp, random_policy, count_compilations):
    other = dataclasses.replace(small_mdp, theta=-small_mdp.theta)
    policy, keys = random_policy(small_mdp, 7), [jax.random.key(0), jax.random.key(1)]
    rollout(keys[0], small_mdp, uniform_policy(small_mdp), 40_000)
    with count_compilations() as count:
        rollout(keys[1], other, policy, 40_000)
    assert count.compiled == count.traced == []


@pytest.mark.slow
def test_rare_actions_come_up_as_often_as_stated(partial_coverage):
    mdp, (policy, _) = partial_coverage
    n = 50_000
    _, actions = rollout(jax.random.key(1), mdp, policy, n)
    counts = np.array([(np.asarray(actions) == a).sum() for a in range(4)])
    assert_frequencies(counts, n * mdp.horizon, np.array([0.498, 0.498, 0.002, 0.002]))
