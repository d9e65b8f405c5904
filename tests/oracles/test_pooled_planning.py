"""Oracles on segments that are shorter than the plan: one model of all transitions for every step."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from primal_dual_games import SHORT, prepare

from robust_rlhf_jax import Status, sample_segments
from robust_rlhf_jax.lab.worlds import delivery_grid, random_linear_mdp
from robust_rlhf_jax.mdp import normalised_gap, optimal_policy
from robust_rlhf_jax.oracles import LSVI, RLSVI, ExactOracle, PrimalDual
from robust_rlhf_jax.oracles.primal_dual.data import SampleWeights, game_moments
from robust_rlhf_jax.oracles.transitions import fresh_folds, initial_state_weights, transitions_per_step

ORACLES = {
    "exact": lambda mdp: ExactOracle(mdp),
    "lsvi": lambda mdp: LSVI(),
    "rlsvi": lambda mdp: RLSVI(),
    "rlsvi_fresh": lambda mdp: RLSVI(fresh_data=True),
}


@pytest.fixture(scope="module")
def world():
    mdp = delivery_grid(jax.random.key(0))
    return mdp, sample_segments(jax.random.key(1), mdp, 2_800, 7, temperature=0.18)


@pytest.fixture(scope="module")
def small():
    """Five steps of a world whose dynamics and θ are the same at each, seen two at a time."""
    mdp = random_linear_mdp(jax.random.key(3), n_states=8, n_actions=3, dim=4, horizon=5)
    same = lambda leaf: jnp.broadcast_to(leaf[:1], leaf.shape)  # noqa: E731
    mdp = dataclasses.replace(mdp, transition_measures=same(mdp.transition_measures), theta=same(mdp.theta))
    return mdp, sample_segments(jax.random.key(1), mdp, 1_500, 2)


@eqx.filter_jit
def answer(oracle, data, epsilon, theta):
    return oracle.solve(oracle.prepare(data, epsilon, key=jax.random.key(2)), theta)


@pytest.mark.slow
@pytest.mark.parametrize("name", ORACLES)
def test_long_plans_from_short_segments(name, world):
    mdp, data = world
    best = optimal_policy(mdp)[1]
    for epsilon in (0.0, 0.1):
        found = answer(ORACLES[name](mdp), data, jnp.float32(epsilon), mdp.theta)
        assert found.policy.shape == (20, 32, 4)
        assert normalised_gap(mdp, found.policy) < 0.05
        np.testing.assert_allclose(found.value, best, rtol=0.05)


@pytest.mark.slow
def test_pooled_transitions_are_one_sample_of_both_steps(small):
    _, data = small
    phi, following = transitions_per_step(data)
    assert phi.shape == (1, 6000, 4)
    for step in range(2):
        rows = slice(3000 * step, 3000 * (step + 1))
        np.testing.assert_array_equal(phi[0, rows], data.features[:, :, step].reshape(-1, 4))
        np.testing.assert_array_equal(following[0, rows], data.states[:, :, step + 1].reshape(-1))


@pytest.mark.slow
def test_fresh_folds_of_pooled_data_hold_whole_pairs(small):
    """Features are the pair's number and the step: a pair's four transitions stay together, with their s'."""
    _, data = small
    marks = 2 * np.arange(1500.0)[:, None, None] + np.arange(2.0)
    marks = jnp.broadcast_to(jnp.asarray(marks, jnp.float32)[..., None], data.features.shape)
    phi, following = fresh_folds(jax.random.key(0), dataclasses.replace(data, features=marks))
    assert phi.shape == (5, 1200, 4)
    seen, states = np.asarray(phi[..., 0]).astype(int), np.asarray(data.states)
    for fold, arrived in zip(seen, np.asarray(following), strict=True):
        pairs, steps = np.divmod(fold, 2)
        assert (np.bincount(pairs, minlength=1500)[np.unique(pairs)] == 4).all()
        assert (states[pairs, :, steps + 1] == arrived[:, None]).any(axis=1).all()
    assert len(np.unique(seen // 2)) == 1500


@pytest.mark.slow
def test_a_pooled_game_plays_every_step_on_one_sample(small):
    """Moments in NumPy from all transitions (s, φ, s'), of which the plan's step h is as good as any other."""
    _, data = small
    game = prepare(SHORT, data, jnp.float32(0.0))
    phi, before, after = np.asarray(game.phi[0]), *np.asarray(game.states)
    assert game.horizon == 5
    assert game.phi.shape == game.reward_phi.shape == (1, 6000, 4)
    assert sorted(np.asarray(game.order).tolist()) == list(range(6000))
    np.testing.assert_array_equal(before, np.moveaxis(np.asarray(data.states)[..., :-1], 2, 0).reshape(-1))
    np.testing.assert_array_equal(after, np.moveaxis(np.asarray(data.states)[..., 1:], 2, 0).reshape(-1))
    np.testing.assert_allclose(game.start, initial_state_weights(data))
    ascent, arrival, flow = np.random.default_rng(0).uniform(size=(3, 5, 6000)).astype(np.float32)
    found = jax.jit(game_moments)(game, SampleWeights(ascent, arrival, flow))
    landed = np.eye(8)[after].T
    for h in range(5):
        up, down, came = (part[h] / part[h].sum() for part in (ascent, flow, arrival))
        np.testing.assert_allclose(found.second[h], (phi.T * up) @ phi, rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(found.flow_second[h], (phi.T * down) @ phi, rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(found.landing[h], landed @ (phi * up[:, None]), rtol=1e-3, atol=1e-5)
        expected = landed @ (phi * came[:, None]) if h else np.zeros((8, 4))
        np.testing.assert_allclose(found.arriving[h], expected, rtol=1e-3, atol=1e-5)
    np.testing.assert_array_equal(found.initial, game.start)


@pytest.mark.slow
def test_lsvi_counts_transitions(small):
    """With one-hot features least squares is the frequency of s' after (s, a), over both steps alike."""
    mdp, data = small
    n_states, n_actions = 8, 3
    table = jnp.eye(n_states * n_actions).reshape(n_states, n_actions, -1)
    onehot = dataclasses.replace(
        data,
        state_features=table,
        features=table[data.states[..., :-1], data.actions],
        reward_table=data.state_features,
        reward_features=data.features,
    )
    counts = np.zeros((n_states, n_actions, n_states))
    before, after = np.asarray(data.states[..., :-1]), np.asarray(data.states[..., 1:])
    np.add.at(counts, (before, np.asarray(data.actions), after), 1)
    chances = counts / counts.sum(axis=-1, keepdims=True)
    value = np.zeros(n_states)
    for reward in np.asarray(mdp.rewards(), np.float64):
        value = (reward + chances @ value).max(axis=1)
    found = answer(LSVI(), onehot, jnp.float32(0.0), mdp.theta)
    np.testing.assert_allclose(found.value, np.asarray(mdp.initial_distribution) @ value, rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("means", ["residual", "spectral"])
@pytest.mark.parametrize("epsilon", [0.0, 0.05])
def test_primal_dual_finds_the_plan(means, epsilon, small):
    mdp, data = small
    oracle = PrimalDual(robust_means=means)
    found = answer(oracle, data, jnp.float32(epsilon), mdp.theta)
    assert found.subgradient.shape == (5, 4)
    assert normalised_gap(mdp, found.policy) < 0.02
    np.testing.assert_allclose(found.value, optimal_policy(mdp)[1], rtol=0.05)


@pytest.mark.slow
def test_primal_dual_splits_pooled_samples(small):
    mdp, data = small
    oracle = PrimalDual(steps=20, refresh=10, sample_splitting=True, optimistic=False, whiten=False)
    found = answer(oracle, data, jnp.float32(0.0), mdp.theta)
    assert np.isfinite(found.value)
    assert found.status != Status.NONFINITE
    with pytest.raises(ValueError, match="6000 trajectories cannot give"):
        PrimalDual(sample_splitting=True).prepare(data, jnp.float32(0.0), key=jax.random.key(0))


@pytest.mark.slow
def test_a_plan_starts_where_the_data_say(small):
    mdp, data = small
    elsewhere = dataclasses.replace(data, planning_start=jnp.eye(8)[3])
    values = lambda o: answer(o, elsewhere, jnp.float32(0.0), mdp.theta).value  # noqa: E731
    exact = optimal_policy(dataclasses.replace(mdp, initial_distribution=jnp.eye(8)[3]))[1]
    for oracle in (LSVI(), RLSVI()):
        np.testing.assert_allclose(values(oracle), exact, rtol=0.05)
    known = RLSVI(initial=mdp.initial_distribution)
    np.testing.assert_allclose(
        values(known), answer(RLSVI(), data, jnp.float32(0.0), mdp.theta).value, rtol=1e-5
    )
