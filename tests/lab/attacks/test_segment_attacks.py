"""Every adversary on segments that are shorter than the episodes of the world it knows."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from delivery_segments import grid, segments
from slow_parameters import slow_but_few

from robust_rlhf_jax import changed_pairs, off_table, sample_segments
from robust_rlhf_jax.lab.attacks import (
    ATTACKS,
    adaptive,
    adaptive_on_table,
    corrupt_transitions_on_table,
    goal_haters,
    push_features,
    push_on_table,
)
from robust_rlhf_jax.lab.attacks._corrupt_transitions import least_covered_directions
from robust_rlhf_jax.lab.attacks.listed import conduct_of
from robust_rlhf_jax.lab.attacks.pool import ROLLOUTS, trajectory_pool
from robust_rlhf_jax.mdp import optimal_state_values

SHORT = {
    "adaptive": partial(adaptive, steps=2),
    "adaptive_on_table": partial(adaptive_on_table, steps=2),
}


def transitions():
    """P(s'|s,a) [S, A, S], in float64."""
    return np.asarray(grid().features, np.float64) @ np.asarray(grid().transition_measures[0], np.float64)


def possible(states, actions):
    """Whether every step of each trajectory can happen."""
    return (transitions()[states[..., :-1], actions, states[..., 1:]] > 1e-6).all(axis=-1)


# The attacks on a filtered fit search like those on a plain one: they are left out here.
@pytest.mark.parametrize(
    "name",
    slow_but_few(
        [name for name in ATTACKS if not name.startswith("adaptive_filtered")],
        slow=lambda name: name.startswith("adaptive"),
    ),
)
def test_budget_shapes_plan_and_table_are_kept(name):
    attack = SHORT.get(name, ATTACKS[name])
    corrupted = jax.jit(attack)(jax.random.key(2), segments(300), jnp.float32(0.1), grid())
    off, changed = np.asarray(off_table(corrupted)), np.asarray(changed_pairs(segments(300), corrupted))
    assert off.any() == conduct_of(ATTACKS[name]).off_table
    assert not (off & ~changed).any()
    if name.endswith("on_table"):
        assert possible(np.asarray(corrupted.states), np.asarray(corrupted.actions)).all()
    assert jax.tree.structure(corrupted) == jax.tree.structure(segments(300))
    for old, new in zip(jax.tree.leaves(segments(300)), jax.tree.leaves(corrupted), strict=True):
        assert (old.shape, old.dtype) == (new.shape, new.dtype)
        assert np.isfinite(np.asarray(new, np.float64)).all()
    assert corrupted.planning_horizon == 10
    np.testing.assert_array_equal(corrupted.planning_start, segments(300).planning_start)
    assert 0 < changed.sum() <= 30


def test_push_features_speaks_against_theta():
    corrupted = jax.jit(push_features)(jax.random.key(2), segments(300), 0.1, grid())
    changed = np.asarray(changed_pairs(segments(300), corrupted))
    x = np.asarray(corrupted.differences())[changed]
    theta = np.asarray(grid().theta[0])
    np.testing.assert_allclose(x, np.broadcast_to(-8 * theta / np.linalg.norm(theta), x.shape), atol=1e-4)


@pytest.mark.slow
def test_pooled_data_have_one_least_covered_direction():
    phi = np.asarray(segments(300).features, np.float64).reshape(-1, grid().dim)
    (direction,) = np.asarray(least_covered_directions(segments(300)))
    rarest = np.argmin(np.where(phi.sum(axis=0) > 0, phi.sum(axis=0), np.inf))
    np.testing.assert_allclose(phi.sum(axis=0)[np.abs(direction) > 0.5], phi.sum(axis=0)[rarest])


@pytest.mark.slow
def test_the_pool_holds_segments_from_where_the_data_start():
    """Not from where plans do: two states, the second three times as often, neither the plan's."""
    start = jnp.zeros(grid().n_states).at[jnp.asarray([2, 5])].set(jnp.asarray([0.25, 0.75]))
    assert grid().initial_distribution @ start == 0
    data = sample_segments(jax.random.key(3), grid(), 400, 4, start=start)
    pool = trajectory_pool(jax.random.key(4), data, grid())
    assert pool.states.shape == (800 + 3 * ROLLOUTS, 5)
    states, actions = np.asarray(pool.states), np.asarray(pool.actions)
    assert possible(states, actions).all()
    z = np.asarray(grid().reward_features, np.float64)[states[:, :-1], actions].sum(axis=1)
    np.testing.assert_allclose(pool.z, z, atol=1e-5)
    played = states[800:, 0]
    assert set(played) == {2, 5}
    assert np.mean(played == 5) == pytest.approx(0.75, abs=0.07)
    uniform, best, worst = (z[800:] @ np.asarray(grid().theta[0], np.float64)).reshape(3, ROLLOUTS)
    assert worst.mean() < uniform.mean() < best.mean()


@pytest.mark.slow
def test_pushed_segments_are_among_the_worst_and_the_best():
    corrupted = jax.jit(push_on_table)(jax.random.key(2), segments(300), 0.1, grid())
    changed = np.asarray(changed_pairs(segments(300), corrupted))
    margins, clean = (
        np.asarray(d.differences()) @ np.asarray(grid().theta[0]) for d in (corrupted, segments(300))
    )
    assert margins[changed].max() < np.quantile(clean, 0.05)
    np.testing.assert_array_equal(np.asarray(corrupted.labels)[changed], 1.0)


@pytest.mark.slow
def test_corrupted_steps_lead_to_the_worst_state_in_the_mean_over_the_plan():
    corrupted = corrupt_transitions_on_table(jax.random.key(2), segments(300), 0.1, grid())
    changed = np.asarray(changed_pairs(segments(300), corrupted))
    states, actions = np.asarray(corrupted.states)[changed], np.asarray(corrupted.actions)[changed]
    values = np.asarray(optimal_state_values(grid()), np.float64)[1:].mean(axis=0)
    can = transitions()[states[..., :-1], actions] > 1e-6
    least = np.where(can, values, np.inf).min(axis=-1)
    np.testing.assert_allclose(values[states[..., 1:]], least, atol=1e-6)


@pytest.mark.slow
def test_haters_turn_segments_that_touch_the_goal():
    data = sample_segments(jax.random.key(5), grid(), 2_000, 4, temperature=0.18)
    corrupted = jax.jit(goal_haters)(jax.random.key(2), data, 0.3, grid())
    changed = np.asarray(changed_pairs(data, corrupted))
    assert changed.sum() > 20
    assert (np.asarray(data.differences())[changed, 0] != 0).all()
