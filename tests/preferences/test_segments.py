"""Pairs of short segments that speak for long plans: how they are drawn, kept and checked."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from robust_rlhf_jax.lab.worlds import delivery_grid, random_linear_mdp
from robust_rlhf_jax.preferences import (
    check_preferences,
    load,
    preference_probabilities,
    random_split,
    sample_segments,
    save,
)

MDP = delivery_grid(jax.random.key(0))
SHARP = 0.18


@pytest.fixture(scope="module")
def data():
    return sample_segments(jax.random.key(1), MDP, 8_000, 7, temperature=SHARP)


@pytest.mark.slow
def test_shapes_and_horizons(data):
    check_preferences(data)
    assert (data.horizon, data.plan_steps, data.theta_dim, data.stationary) == (7, 20, 6, True)
    assert data.differences().shape == (8_000, 6)
    theta = jnp.arange(6.0)
    assert data.per_step(theta).shape == (20, 6)
    assert data.per_compared_step(theta).shape == (7, 6)
    np.testing.assert_allclose(data.flat(MDP.theta), MDP.theta[0], rtol=1e-5)
    np.testing.assert_array_equal(data.planning_start, MDP.initial_distribution)
    assert len(np.unique(data.states[..., 0])) == MDP.n_states


@pytest.mark.slow
def test_labels_follow_the_sum_of_rewards(data):
    returns = np.einsum("njhp,p->nj", np.asarray(data.reward_features, np.float64), MDP.theta[0])
    chance = 1 / (1 + np.exp(-(returns[:, 1] - returns[:, 0]) / SHARP))
    np.testing.assert_allclose(preference_probabilities(data, MDP.theta, SHARP), chance, atol=1e-4)
    won = np.asarray(data.labels) == 1
    assert abs(won.mean() - chance.mean()) < 4 * np.sqrt((chance * (1 - chance)).sum()) / 8_000


@pytest.mark.slow
def test_few_pairs_show_the_goal_and_labels_can_be_learnt(data):
    shown = np.asarray(data.reward_features)[..., 0].sum(axis=(1, 2)) > 0
    assert 0.05 < shown.mean() < 0.12
    x, o = np.asarray(data.differences(), np.float64), np.asarray(data.labels, np.float64)
    loss = lambda w: np.logaddexp(0, -o[:5_600] * (x[:5_600] @ w)).mean()  # noqa: E731
    w = minimize(loss, np.zeros(6)).x
    assert 0.74 < (np.sign(x[5_600:] @ w) == o[5_600:]).mean() < 0.82


@pytest.mark.slow
def test_every_way_to_rebuild_keeps_the_plan(data, tmp_path):
    few = data.take(jnp.arange(10))
    kept = [few, *random_split(jax.random.key(0), data, 3)]
    for suffix in (".npz", ".parquet"):
        save(tmp_path / f"pairs{suffix}", few)
        again = load(tmp_path / f"pairs{suffix}")
        for one, other in zip(jax.tree.leaves(few), jax.tree.leaves(again), strict=True):
            np.testing.assert_array_equal(one, other)
        kept.append(again)
    for other in kept:
        assert (other.planning_horizon, other.stationary) == (20, True)
        np.testing.assert_array_equal(other.planning_start, data.planning_start)


BAD = {
    "no theta for all steps": ({"stationary": False}, "stationary=True"),
    "no steps": ({"planning_horizon": 0}, "planning_horizon=0"),
    "start alone": ({"planning_horizon": None}, "without planning_horizon"),
    "no distribution": ({"planning_start": jnp.ones(MDP.n_states)}, "not a distribution"),
    "start of another size": ({"planning_start": jnp.ones(3)}, "planning_start has shape"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_plans_are_refused(case, data):
    changes, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        check_preferences(dataclasses.replace(data, **changes))


@pytest.mark.slow
def test_bad_segments_are_refused():
    key = jax.random.key(0)
    with pytest.raises(ValueError, match="length=0"):
        sample_segments(key, MDP, 10, 0)
    with pytest.raises(ValueError, match=r"needs .H, S, A. = .3, 32, 4."):
        sample_segments(key, MDP, 10, 3, behaviour=(jnp.ones((20, 32, 4)) / 4,) * 2)
    changing = random_linear_mdp(key, n_states=4, n_actions=2, dim=3, horizon=3)
    with pytest.raises(ValueError, match="theta changes from step to step"):
        sample_segments(key, changing, 10, 2)
