"""The primal–dual oracle: convergence, subgradients, robustness, its options, its statuses, its memory."""

import dataclasses
from types import SimpleNamespace

import chex
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from primal_dual_games import SHORT, prepare, solve

from robust_rlhf_jax import PreferenceData, Status, attacks, sample_preferences
from robust_rlhf_jax._iterate import Iteration, iterate
from robust_rlhf_jax.lab.worlds import random_linear_mdp
from robust_rlhf_jax.mdp import (
    SoftmaxMixture,
    expected_features,
    normalised_gap,
    occupancy,
    optimal_policy,
    policy_value,
)
from robust_rlhf_jax.oracles import Oracle, PrimalDual, WarmOracle
from robust_rlhf_jax.oracles.primal_dual.oracle import (
    CAUTION,
)
from robust_rlhf_jax.oracles.primal_dual.updates import DescentAscent


@pytest.fixture(scope="module")
def large():
    mdp = jax.jit(lambda k: random_linear_mdp(k, n_states=60, n_actions=4, dim=6, horizon=5))(
        jax.random.key(0)
    )
    return mdp, sample_preferences(jax.random.key(1), mdp, 20_000)


@pytest.mark.slow
def test_converges_on_clean_data_and_gives_the_subgradient(large):
    mdp, data = large
    prepared = prepare(PrimalDual(), data, jnp.float32(0.0))
    found = solve(PrimalDual(), prepared, mdp.theta)
    policy, best = optimal_policy(mdp)
    features = expected_features(mdp, policy)
    assert found.status == Status.CONVERGED
    assert isinstance(found.policy, SoftmaxMixture)
    assert normalised_gap(mdp, found.policy) <= 0.005
    assert normalised_gap(mdp, found.details["average_policy"]) <= 0.005
    assert np.linalg.norm(found.subgradient - features) <= 0.15 * np.linalg.norm(features)
    np.testing.assert_allclose(found.value, best, rtol=0.05)
    # V★ is convex: v̂ supports it everywhere, up to its own error.
    error = np.linalg.norm(found.subgradient - features)
    for theta in np.random.default_rng(0).normal(size=(20, *mdp.theta.shape)).astype(np.float32):
        above = optimal_policy(mdp, theta)[1] - best - np.sum(found.subgradient * (theta - mdp.theta))
        assert above >= -error * np.linalg.norm(theta - mdp.theta)
    published = solve(PrimalDual(optimistic=False, averaging=0.0), prepared, mdp.theta)
    assert published.details["flow_residual"] > 5 * found.details["flow_residual"]


@pytest.mark.slow
@pytest.mark.parametrize("robust_means", ["residual", "spectral"])
def test_corrupted_transitions_mislead_plain_means_only(robust_means, large):
    mdp, data = large
    corrupted = jax.jit(attacks.corrupt_transitions)(jax.random.key(5), data, 0.1, mdp)
    oracle = PrimalDual(robust_means=robust_means)
    gaps = [
        normalised_gap(mdp, solve(oracle, prepare(oracle, corrupted, jnp.float32(e)), mdp.theta).policy)
        for e in (0.0, 0.1)
    ]
    assert gaps[0] > 0.01
    assert gaps[1] <= 0.005


def test_a_shorter_oracle_is_more_cautious():
    """And renews its weights about as often."""
    oracle = PrimalDual(steps=1000, refresh=40, policy_share=5.0)
    short = oracle.shortened(100)
    assert (short.steps, short.refresh) == (100, 20)
    np.testing.assert_allclose(short.policy_share, 5.0 * CAUTION)
    either = oracle.shortened(100, 30)
    assert (either.steps, either.refresh) == (100, 10)


@pytest.mark.slow
def test_protocol(world, count_compilations):
    """Two data sets, any θ and any ε by one program; a NaN lane leaves the others as they are."""
    mdp, data = world
    assert isinstance(SHORT, Oracle)
    assert isinstance(SHORT, WarmOracle)
    other = sample_preferences(jax.random.key(1), mdp, 2000)
    zero, some = np.float32(0.0), np.float32(0.1)
    prepared = prepare(SHORT, data, zero)
    thetas = jnp.asarray(np.random.default_rng(0).normal(size=(3, 3, 4)), jnp.float32)
    rows = list(thetas)
    found = [solve(SHORT, prepared, theta) for theta in rows]
    with count_compilations() as count:
        fresh = solve(SHORT, prepare(SHORT, other, some), rows[0])
        again = solve(SHORT, prepared, rows[0])
    assert count.compiled == []
    np.testing.assert_array_equal(again.subgradient, found[0].subgradient)
    assert not np.array_equal(fresh.subgradient, found[0].subgradient)
    corrupted = thetas.at[1, 0, 0].set(jnp.nan)
    batch = eqx.filter_jit(jax.vmap(SHORT.solve, in_axes=(None, 0)))(prepared, corrupted)
    assert batch.status[1] == Status.NONFINITE
    assert np.isnan(batch.value[1])
    for i in (0, 2):
        np.testing.assert_allclose(batch.subgradient[i], found[i].subgradient, atol=1e-4)
        assert batch.status[i] == found[i].status
    ten = solve(SHORT, prepared, 10 * rows[0])
    np.testing.assert_allclose(ten.value, 10 * found[0].value, rtol=1e-3)
    np.testing.assert_allclose(ten.subgradient, found[0].subgradient, atol=1e-4)


@pytest.mark.slow
def test_the_coordinates_do_not_matter(world, rotate_features):
    """Rotated features: the same policy and value, since the whitened game is the same up to rotation."""
    mdp, data = world
    turned = rotate_features(mdp)
    rotation = np.linalg.lstsq(mdp.features.reshape(-1, 4), turned.features.reshape(-1, 4), rcond=None)[0]
    rotated = dataclasses.replace(
        data, features=data.features @ jnp.asarray(rotation), state_features=turned.features
    )
    ours = solve(SHORT, prepare(SHORT, data, jnp.float32(0.0)), mdp.theta)
    theirs = solve(SHORT, prepare(SHORT, rotated, jnp.float32(0.0)), turned.theta)
    np.testing.assert_allclose(theirs.value, ours.value, rtol=1e-3)
    np.testing.assert_allclose(theirs.details["average_policy"], ours.details["average_policy"], atol=1e-2)


@pytest.mark.slow
def test_mixture_is_evaluated_exactly(world):
    """Against its members one by one: value, occupancy, weights that sum to one."""
    mdp, data = world
    mixture = solve(SHORT, prepare(SHORT, data, jnp.float32(0.0)), mdp.theta).policy
    np.testing.assert_allclose(np.sum(mixture.weights), 1.0, rtol=1e-5)
    assert mixture.logits.shape == (40, mdp.horizon, mdp.dim)
    members = [mixture.member(logits) for logits in mixture.logits]
    values = [policy_value(mdp, member) for member in members]
    np.testing.assert_allclose(policy_value(mdp, mixture), np.dot(mixture.weights, values), rtol=1e-4)
    flows = np.stack([occupancy(mdp, member) for member in members])
    expected = np.tensordot(mixture.weights, flows, axes=1)
    np.testing.assert_allclose(occupancy(mdp, mixture), expected, atol=1e-5)


@pytest.mark.slow
def test_a_resumed_game_is_the_uninterrupted_one(world):
    mdp, data = world
    prepared = prepare(SHORT, data, jnp.float32(0.05))
    problem, _ = SHORT._problem(prepared, mdp.theta, SHORT.start(prepared))
    solver, key = DescentAscent(4, 10, True, 0, "residual", 8), jax.random.key(0)
    whole: Iteration = iterate(solver, problem, key=key, max_steps=4)
    half = iterate(solver, problem, key=key, max_steps=2)
    resumed = iterate(solver, problem, key=key, max_steps=4, resume=half)
    for a, b in zip(jax.tree.leaves(whole), jax.tree.leaves(resumed), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_a_game_told_its_length_is_the_shorter_oracles(world):
    mdp, data = world
    long, short = PrimalDual(steps=200, refresh=25), PrimalDual(steps=50, refresh=25)
    prepared = prepare(long, data, jnp.float32(0.0))
    told, told_left = jax.jit(lambda t: long.solve_from(prepared, mdp.theta, long.start(prepared), t))(50)
    alone, left = jax.jit(lambda: short.solve_from(prepared, mdp.theta, short.start(prepared)))()
    np.testing.assert_allclose(told.value, alone.value, rtol=1e-5)
    chex.assert_trees_all_close(told_left, left, rtol=1e-4, atol=1e-5)
    weights = told.policy.weights
    np.testing.assert_allclose(weights[:50], alone.policy.weights, rtol=1e-5)
    assert not np.any(weights[50:])


@pytest.mark.slow
def test_a_warm_start_saves_iterations(large):
    """From a neighbour's saddle point a tenth of the iterations loses a fifth of what it loses from nothing."""
    mdp, data = large
    oracle, full = PrimalDual(steps=100, refresh=50), PrimalDual()
    prepared = prepare(oracle, data, jnp.float32(0.0))
    solve_from = eqx.filter_jit(lambda o, theta, warm: o.solve_from(prepared, theta, warm))
    warm = solve_from(full, mdp.theta, full.start(prepared))[1]
    near = mdp.theta + 0.05 * jax.random.normal(jax.random.key(0), mdp.theta.shape)
    best = optimal_policy(mdp, near)[1]
    losses = [
        best - policy_value(mdp, solve_from(oracle, near, start)[0].policy, near)
        for start in (oracle.start(prepared), warm)
    ]
    assert losses[1] <= 0.2 * losses[0]


@pytest.mark.slow
def test_every_status_is_reachable(world):
    mdp, data = world
    theta = mdp.theta

    def status(oracle, data=data, epsilon=0.0, theta=theta):
        return solve(oracle, prepare(oracle, data, jnp.float32(epsilon)), theta).status

    assert status(PrimalDual(tolerance=0.2)) == Status.CONVERGED
    assert status(PrimalDual(steps=2, refresh=1)) == Status.MAX_STEPS
    assert status(PrimalDual(coverage=0.01)) == Status.INFEASIBLE, "no flow within so small a ball"
    assert status(SHORT, theta=theta.at[0, 0].set(jnp.inf)) == Status.NONFINITE
    # Features with tails like no clean ones', whatever the game then does.
    size = jnp.exp(3 * jax.random.normal(jax.random.key(4), (data.n_pairs, 2, 1, 1)))
    wild = dataclasses.replace(data, features=data.features * size)
    lenient = dataclasses.replace(SHORT, tolerance=1e9)
    assert status(lenient, wild, 0.1) == Status.FILTER_REMOVED_TOO_MUCH


@pytest.mark.slow
def test_sample_splitting_gives_every_iteration_its_own_samples(world):
    """2HT groups: 4,000 trajectories, H = 3 and T = 20 make groups of 33; too many groups are refused."""
    mdp, data = world
    oracle = PrimalDual(steps=20, refresh=20, sample_splitting=True, optimistic=False, whiten=False)
    prepared = prepare(oracle, data, jnp.float32(0.05))
    assert sorted(np.asarray(prepared.order).tolist()) == list(range(4000))
    found = solve(oracle, prepared, mdp.theta)
    assert np.isfinite(found.value)
    reused = solve(dataclasses.replace(oracle, sample_splitting=False), prepared, mdp.theta)
    assert not np.allclose(found.subgradient, reused.subgradient, atol=1e-6)
    with pytest.raises(ValueError, match=r"4000 trajectories cannot give 2·H·T = 6000 groups"):
        PrimalDual(steps=1000, sample_splitting=True).prepare(data, 0.05, key=jax.random.key(0))


@pytest.mark.slow
def test_reward_features_of_their_own(world):
    """Rewards on half of the features' coordinates: the same game as with zeros in the other half of θ."""
    mdp, data = world
    narrow = dataclasses.replace(
        data, reward_table=data.state_features[..., :2], reward_features=data.features[..., :2]
    )
    theta = mdp.theta.at[:, 2:].set(0.0)
    wide = solve(SHORT, prepare(SHORT, data, jnp.float32(0.0)), theta)
    found = solve(SHORT, prepare(SHORT, narrow, jnp.float32(0.0)), theta[:, :2])
    np.testing.assert_allclose(found.subgradient, wide.subgradient[:, :2], atol=1e-4)
    np.testing.assert_allclose(found.value, wide.value, rtol=1e-3)


@pytest.mark.slow
def test_memory_stays_far_below_an_array_per_sample_and_action():
    """At N = 10⁵, H = 10, A = 4, d = 32 (shapes only): temporaries of `solve` beside [2N, H, A, d]."""
    n, horizon, n_actions, dim, n_states = 100_000, 10, 4, 32, 100
    shape = jax.ShapeDtypeStruct
    data = PreferenceData(
        shape((n_states, n_actions, dim), jnp.float32),
        shape((n, 2, horizon + 1), jnp.int32),
        shape((n, 2, horizon), jnp.int32),
        shape((n, 2, horizon, dim), jnp.float32),
        shape((n,), jnp.float32),
    )
    forbidden = 2 * n * horizon * n_actions * dim * 4
    oracle = PrimalDual(steps=100, refresh=50)
    epsilon, key = shape((), jnp.float32), jax.eval_shape(lambda: jax.random.key(0))
    prepared = jax.eval_shape(lambda d, e, k: oracle.prepare(d, e, key=k), data, epsilon, key)
    compiled = jax.jit(oracle.solve).lower(prepared, shape((horizon, dim), jnp.float32)).compile()
    assert compiled.memory_analysis().temp_size_in_bytes <= forbidden / 4


@pytest.mark.parametrize(
    ("residual", "length", "status"),
    [
        (0.125, 0.0, Status.CONVERGED),
        (0.125, 2.0, Status.CONVERGED),
        (0.126, 0.98, Status.INFEASIBLE),
        (0.126, 1.0, Status.INFEASIBLE),
        (0.126, 0.97, Status.MAX_STEPS),
    ],
)
def test_status_says_whether_there_is_a_flow_in_the_ball(residual, length, status):
    """A residual of at most the tolerance is one; else β at the edge of its ball, of radius 1, says there is none."""
    beta = jnp.zeros((3, 4)).at[1, 2].set(length)
    state = SimpleNamespace(means=SimpleNamespace(at=jnp.stack([jnp.full((3, 4), 5.0), beta])))
    problem = SimpleNamespace(radius_beta=jnp.float32(1.0))
    assert (
        dataclasses.replace(SHORT, tolerance=0.125)._status(problem, state, jnp.float32(residual)) == status
    )


@pytest.mark.slow
def test_a_game_that_is_lost_reports_its_last_whole_round(world):
    """After one round of two: the first round's gap and residual in the reward's own unit, and no value."""
    mdp, data = world
    game = prepare(SHORT, data, jnp.float32(0.0))
    theta = 7.0 * mdp.theta
    problem, scale = SHORT._problem(game, theta, SHORT.start(game))
    half = iterate(DescentAscent(2, 20, True, 0, "residual", 8), problem, max_steps=1)
    lost = SHORT._result(problem, dataclasses.replace(half, status=Status.NONFINITE.array()), theta, scale)
    assert lost.status == Status.NONFINITE
    assert np.isnan(lost.value)
    unfinished = SHORT._result(problem, half, theta, scale)
    assert unfinished.status == Status.MAX_STEPS
    state = half.state
    expected = np.einsum("hdp,hd->hp", game.reward_second, state.means.at[1])
    np.testing.assert_allclose(unfinished.subgradient, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(unfinished.value, np.sum(expected * theta), rtol=1e-4)
    for found in (lost, unfinished):
        details = found.details
        np.testing.assert_allclose(details["gaps"], [scale * state.gaps[0], np.inf], rtol=1e-6)
        np.testing.assert_array_equal(details["residuals"], [state.residuals[0], np.inf])
        assert details["duality_gap"] == details["gaps"][0]
        assert details["flow_residual"] == details["residuals"][0]
        np.testing.assert_allclose(np.sum(found.policy.weights[:20]), 1.0, rtol=1e-5)
        mean = np.einsum("t,thd->hd", found.policy.weights, state.logits)
        chances = np.exp(np.einsum("sad,hd->hsa", game.table, mean))
        chances /= chances.sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(details["average_policy"], chances, rtol=1e-3, atol=1e-5)


def test_pooled_samples_are_split_over_the_steps_of_the_plan(world):
    """3 steps of 4,000 trajectories are 12,000 samples, for 2·5·T groups."""
    _, data = world
    pooled = dataclasses.replace(data, stationary=True, planning_horizon=5)
    groups = lambda steps: PrimalDual(steps=steps, refresh=1, sample_splitting=True)  # noqa: E731
    shape = jax.eval_shape(lambda d: groups(1200).prepare(d, 0.0, key=jax.random.key(0)), pooled)
    assert shape.order.shape == (12_000,)
    with pytest.raises(ValueError, match=r"12000 trajectories cannot give 2·H·T = 12010 groups"):
        groups(1201).prepare(pooled, 0.0, key=jax.random.key(0))
