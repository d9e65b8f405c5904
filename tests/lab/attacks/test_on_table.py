"""Attacks that write trajectories and not features: nothing that they plant differs from the table, and it harms."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from slow_parameters import slow, slow_but_few

from robust_rlhf_jax import changed_pairs, sample_preferences
from robust_rlhf_jax.algorithms import standard
from robust_rlhf_jax.lab.attacks import (
    ATTACKS,
    adaptive_filtered_on_table,
    adaptive_on_table,
    corrupt_transitions_on_table,
    flip_random,
    goal_haters,
    leverage_on_table,
    push_on_table,
    scale_on_table,
)
from robust_rlhf_jax.mdp import LinearMDP, normalised_gap, optimal_policy, optimal_state_values
from robust_rlhf_jax.preferences import PreferenceData, off_table
from robust_rlhf_jax.rewards.registry import REWARD_ESTIMATORS

N, EPSILON = 200, 0.1
ON_TABLE = [name for name in ATTACKS if name.endswith("on_table")]
SHORT = {
    "adaptive_on_table": partial(adaptive_on_table, steps=2),
    "adaptive_filtered_on_table": partial(adaptive_filtered_on_table, steps=2),
}
# Compiled carelessly: at this size code is compiled for longer than it runs.
quick_jit = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


@pytest.fixture(scope="module")
def world(make_mdp):
    mdp = make_mdp()
    return mdp, sample_preferences(jax.random.key(0), mdp, N)


@pytest.fixture(scope="module")
def split_world(make_mdp):
    """One θ for all steps, on reward features of their own; the last is sparse and decides."""
    rng = np.random.default_rng(4)
    base = make_mdp()
    table = rng.uniform(-0.5, 0.5, size=(6, 3, 3))
    table[..., 2] = 0.0
    table[0, 0, 2] = 1.0
    theta = jnp.broadcast_to(jnp.asarray([0.3, -0.3, 1.5], jnp.float32), (3, 3))
    mdp = LinearMDP(
        base.features,
        base.transition_measures,
        theta,
        base.initial_distribution,
        jnp.asarray(table, jnp.float32),
    )
    data = dataclasses.replace(sample_preferences(jax.random.key(0), mdp, N), stationary=True)
    return mdp, data


def corrupted(attack, world, epsilon=EPSILON):
    mdp, data = world
    other = quick_jit(attack)(jax.random.key(1), data, epsilon, mdp)
    return other, np.asarray(changed_pairs(data, other))


def reachable(mdp, data: PreferenceData, rows):
    """Whether every recorded step of these pairs can happen, and every start."""
    states, actions = np.asarray(data.states)[rows], np.asarray(data.actions)[rows]
    phi, measures = np.asarray(mdp.features, np.float64), np.asarray(mdp.transition_measures, np.float64)
    ok = np.asarray(mdp.initial_distribution)[states[..., 0]] > 0
    for h in range(mdp.horizon):
        chance = np.einsum(
            "nid,dni->ni", phi[states[..., h], actions[..., h]], measures[h][:, states[..., h + 1]]
        )
        ok &= chance > 1e-7
    return ok.all(axis=1)


@pytest.mark.parametrize(
    "name",
    slow_but_few((*ON_TABLE, "goal_haters"), 1, slow=lambda name: name.startswith("adaptive")),
)
@pytest.mark.parametrize("own", [slow(False), True])
def test_the_table_contradicts_none(name, own, world, split_world):
    """Neither kind of features, in either world; each step can happen, and the budget is kept."""
    mdp, data = split_world if own else world
    other, bad = corrupted(SHORT.get(name, ATTACKS[name]), (mdp, data))
    assert 1 <= bad.sum() <= N * EPSILON
    assert not off_table(other).any()
    assert reachable(mdp, other, bad).all()
    assert other.stationary == own
    assert (other.reward_features is None) == (not own)
    for field in ("state_features", "reward_table"):
        if getattr(data, field) is not None:
            np.testing.assert_array_equal(getattr(other, field), getattr(data, field))


@pytest.mark.slow
def test_pushed_pairs_are_many_and_contradict_theta(world):
    mdp, data = world
    other, bad = corrupted(push_on_table, world, 0.45)
    x = np.asarray(other.differences(), np.float64)[bad]
    margins = x @ np.asarray(mdp.theta, np.float64).ravel()
    clean = np.asarray(data.differences(), np.float64) @ np.asarray(mdp.theta, np.float64).ravel()
    assert margins.max() < np.quantile(clean, 0.05)
    np.testing.assert_array_equal(np.asarray(other.labels)[bad], 1.0)
    told = np.concatenate([np.asarray(a)[bad].reshape(90, -1) for a in (other.states, other.actions)], axis=1)
    assert len(np.unique(told, axis=0)) > 60
    one, rows = corrupted(partial(push_on_table, variety=1), world)
    assert len(np.unique(np.asarray(one.differences())[rows], axis=0)) == 1


@pytest.mark.slow
def test_leverage_lies_farther_out_than_any_honest_pair(world):
    mdp, data = world
    other, bad = corrupted(leverage_on_table, world)
    x = np.asarray(data.differences(), np.float64)
    values, vectors = np.linalg.eigh(x.T @ x / N)
    least = vectors[:, values > 1e-5 * values[-1]][:, 0]
    planted = np.asarray(other.differences(), np.float64)[bad]
    assert abs(planted @ least).min() > np.quantile(abs(x @ least), 0.95)
    assert (np.asarray(other.labels)[bad] * (planted @ np.asarray(mdp.theta, np.float64).ravel()) <= 0).all()


@pytest.mark.slow
def test_scaled_pairs_point_where_their_own_did(world):
    mdp, data = world
    other, bad = corrupted(scale_on_table, world)
    before, after = (np.asarray(d.differences(), np.float64)[bad] for d in (data, other))
    longer = np.sum(before * after, axis=1) / np.sum(before**2, axis=1)
    assert longer.min() > 0.8
    assert np.median(longer) > 1.2
    assert (np.asarray(other.labels)[bad] * (after @ np.asarray(mdp.theta, np.float64).ravel()) <= 0).all()


def test_corrupted_steps_lead_to_the_worst_reachable_state(world, split_world):
    for mdp, data in (world, split_world):
        other, bad = corrupted(corrupt_transitions_on_table, (mdp, data))
        values = np.asarray(optimal_state_values(mdp), np.float64)
        states, actions = np.asarray(other.states)[bad], np.asarray(other.actions)[bad]
        for h in range(mdp.horizon):
            phi = np.asarray(mdp.features, np.float64)[states[..., h], actions[..., h]]
            can = phi @ np.asarray(mdp.transition_measures[h], np.float64) > 1e-6
            least = np.where(can, values[h + 1], np.inf).min(axis=-1)
            np.testing.assert_allclose(values[h + 1][states[..., h + 1]], least, atol=1e-6)
        np.testing.assert_array_equal(states[..., 0], np.asarray(data.states)[bad][..., 0])


def test_haters_speak_of_the_sparse_goal_alone(split_world):
    _, data = split_world
    touched = (np.asarray(data.reward_features)[..., 2].sum(axis=2) @ [-1.0, 1.0]) != 0
    assert 10 < touched.sum() < N / 2
    _, bad = corrupted(goal_haters, split_world, 0.45)
    assert bad.sum() > 5
    assert not (bad & ~touched).any()


@pytest.mark.slow
def test_haters_agree_with_the_opposite_reward(make_mdp):
    """o ~ σ(m) became −o, drawn from σ(−m), m = θ★ᵀx: of the labels that changed, P(o=+1) = σ(−2m)."""
    mdp = make_mdp()
    data = sample_preferences(jax.random.key(0), mdp, 20_000)
    other, bad = corrupted(goal_haters, (mdp, data), 0.45)
    margins = np.asarray(data.differences(), np.float64) @ np.asarray(mdp.theta, np.float64).ravel()
    agreement = np.mean(np.asarray(other.labels)[bad] * np.sign(margins[bad]))
    assert agreement == pytest.approx(-np.mean(np.tanh(abs(margins[bad]))), abs=4 / np.sqrt(bad.sum()))
    assert 2000 < bad.sum() < 9000


@pytest.fixture(scope="module")
def large(make_mdp):
    mdp = make_mdp(seed=2, n_states=12)
    return mdp, sample_preferences(jax.random.key(0), mdp, 1000)


@pytest.mark.slow
def test_planted_trajectories_harm_more_than_random_flips(large):
    mdp, _ = large
    gap = lambda attack: float(  # noqa: E731
        normalised_gap(mdp, standard(jax.random.key(2), corrupted(attack, large)[0], EPSILON).policy)
    )
    assert gap(push_on_table) > gap(flip_random) + 0.1


@pytest.mark.slow
def test_the_search_harms_its_victim_more_than_its_start(large):
    mdp, data = large
    searched, start = (corrupted(attack, large)[0] for attack in (adaptive_on_table, push_on_table))
    plain = REWARD_ESTIMATORS["maximum_likelihood"]

    @quick_jit
    def gap(told):
        fit = plain(told.differences(), told.labels, jnp.float32(EPSILON), radius=data.theta_dim**0.5)
        return normalised_gap(mdp, optimal_policy(mdp, data.per_step(fit.theta))[0])

    gaps = {name: float(gap(told)) for name, told in (("searched", searched), ("start", start))}
    assert gaps["searched"] > gaps["start"] + 0.05, gaps


@pytest.mark.slow
@pytest.mark.parametrize("name", ["push_on_table", "corrupt_transitions_on_table"])
def test_eager_equals_jitted(name, world):
    mdp, data = world
    eager = ATTACKS[name](jax.random.key(1), data, EPSILON, mdp)
    jitted, _ = corrupted(ATTACKS[name], world)
    for a, b in zip(jax.tree.leaves(eager), jax.tree.leaves(jitted), strict=True):
        np.testing.assert_array_equal(a, b)
