"""The primal–dual oracle: convergence, subgradients, robustness, its options, its statuses, its memory."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax import PreferenceData, Status, attacks, sample_preferences
from robust_rlhf_jax._iterate import Iteration, iterate
from robust_rlhf_jax.kernels.primal_dual import PolicyTables, descent_gradient, lagrangian, policy_tables
from robust_rlhf_jax.oracles import Oracle, PrimalDual, WarmOracle, theory_steps
from robust_rlhf_jax.oracles.primal_dual.data import (
    clip_residuals,
    filter_gradients,
    game_moments,
    split_gradients,
    starting_weights,
)
from robust_rlhf_jax.oracles.primal_dual.updates import DescentAscent, SaddlePoint, convergence
from robust_rlhf_jax.worlds import (
    SoftmaxMixture,
    expected_features,
    normalised_gap,
    occupancy,
    optimal_policy,
    policy_value,
    random_linear_mdp,
)

prepare = eqx.filter_jit(lambda oracle, data, epsilon: oracle.prepare(data, epsilon, key=jax.random.key(0)))
solve = eqx.filter_jit(lambda oracle, prepared, theta: oracle.solve(prepared, theta))
SHORT = PrimalDual(steps=40, refresh=20)


@pytest.fixture(scope="module")
def world(make_mdp):
    mdp = make_mdp()
    return mdp, sample_preferences(jax.random.key(0), mdp, 2000)


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


def test_steps_to_where_nobody_else_goes_count_less_whatever_the_reward(world):
    """Twenty samples of 4000 say that they came to a state of great value; rewards are linear and leave no residual."""
    mdp, data = world
    game = prepare(SHORT, data, jnp.float32(0.1))
    states = jnp.where(game.states == 5, 0, game.states).at[1:, :20].set(5)
    game = eqx.tree_at(lambda g: g.states, game, states)
    value = jnp.zeros((3, 6)).at[:, 5].set(100.0)
    tables = PolicyTables(
        jnp.full((3, 6, 3), 1 / 3), value, jnp.mean(game.table, axis=1)[None].repeat(3, axis=0)
    )
    plain, other = (jax.jit(clip_residuals)(game, factor * mdp.theta, tables) for factor in (0.0, 50.0))
    share = np.asarray(plain.ascent / game.base)
    assert share[:2, :20].max() < 0.2
    assert share[:2, 20:].mean() > 0.9
    np.testing.assert_array_equal(share[2], 1.0)  # nothing follows the last step
    np.testing.assert_allclose(other.ascent, plain.ascent, atol=2e-3)
    np.testing.assert_array_equal(plain.flow, plain.ascent)
    np.testing.assert_array_equal(plain.arrival[1:], plain.ascent[:-1])


def test_a_flow_counts_only_where_both_of_its_steps_are_sound(world):
    """Samples whose second step the covariates' filter took: their third step's flow is gone, its ascent is not."""
    mdp, data = world
    game = prepare(SHORT, data, jnp.float32(0.0))
    game = eqx.tree_at(lambda g: g.base, game, game.base.at[1, :10].set(0.0))
    w, beta = jnp.asarray(np.random.default_rng(0).normal(size=(2, 3, 4)), jnp.float32)
    found = jax.jit(filter_gradients, static_argnums=6)(
        game, starting_weights(game), mdp.theta, w, beta, policy_tables(game.table, w, w), 2
    )
    np.testing.assert_array_equal(found.ascent, game.base)
    expected = np.asarray(game.base).copy()
    expected[2, :10] = 0.0
    np.testing.assert_array_equal(found.flow, expected)
    np.testing.assert_array_equal(found.arrival, expected)


def test_gradients_of_a_group_are_means_over_its_samples(world):
    """φ(r + v(s') − wᵀφ), and what flows in at s less φφᵀβ, sample by sample in NumPy; 1 flows in at the first step."""
    mdp, data = world
    size, step = 40, 2
    game = prepare(SHORT, data, jnp.float32(0.0))
    rng = np.random.default_rng(0)
    w, beta = rng.normal(size=(2, 3, 4))
    value, feature = rng.normal(size=(3, 6)), rng.normal(size=(3, 6, 4))
    tables = PolicyTables(jnp.full((3, 6, 3), 1 / 3), jnp.asarray(value), jnp.asarray(feature))
    down, up = jax.jit(lambda *a: split_gradients(game, step, size, *a, tables))(
        mdp.theta, jnp.asarray(w, jnp.float32), jnp.asarray(beta, jnp.float32)
    )
    phi, states, order = (np.asarray(part) for part in (game.phi, game.states, game.order))
    reward = np.einsum("hnp,hp->hn", game.reward_phi, mdp.theta)
    groups = order[: size * 18].reshape(3, 3, 2, size)[step]
    for h in range(3):
        n = groups[h, 0]
        following = value[h + 1][states[h + 1, n]] if h < 2 else 0.0
        expected = np.mean(phi[h, n] * (reward[h, n] + following - phi[h, n] @ w[h])[:, None], axis=0)
        np.testing.assert_allclose(up[h], expected, rtol=1e-3, atol=1e-4)
        n = groups[h, 1]
        carried = phi[h - 1, n] @ beta[h - 1] if h else np.ones(size)
        rows = feature[h][states[h, n]] * carried[:, None] - phi[h, n] * (phi[h, n] @ beta[h])[:, None]
        np.testing.assert_allclose(down[h], np.mean(rows, axis=0), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("averaging", [0.0, 3.0])
def test_a_mixture_weighs_its_members_as_the_average_does(world, averaging):
    """Iterate t joins the mean of those before it with the share (p + 1)/(t + p)."""
    mdp, data = world
    oracle = dataclasses.replace(SHORT, averaging=averaging)
    found = solve(oracle, prepare(oracle, data, jnp.float32(0.0)), mdp.theta)
    expected = np.zeros(40)
    for t in range(1, 41):
        share = (averaging + 1) / (t + averaging)
        expected *= 1 - share
        expected[t - 1] += share
    np.testing.assert_allclose(found.policy.weights, expected, rtol=1e-3, atol=1e-6)


def test_a_shorter_oracle_is_ten_times_as_cautious():
    """And renews its weights about as often."""
    short = PrimalDual(steps=1000, refresh=40, policy_share=5.0).shortened(100)
    assert (short.steps, short.refresh) == (100, 20)
    np.testing.assert_allclose(short.policy_share, 0.5)


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


def test_an_unbounded_player_that_diverges_says_so_and_stays_alone(world):
    mdp, data = world
    prepared = prepare(SHORT, data, jnp.float32(0.0))

    def lane(step_size):
        return PrimalDual(steps=400, refresh=20, coverage=jnp.inf, step_size=step_size).solve(
            prepared, mdp.theta
        )

    found = jax.jit(jax.vmap(lane))(jnp.asarray([0.1, 1e30]))
    alone = jax.jit(lane)(jnp.float32(0.1))
    assert found.status[1] == Status.NONFINITE
    assert found.status[0] == alone.status != Status.NONFINITE
    np.testing.assert_allclose(found.subgradient[0], alone.subgradient, atol=1e-4)


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


BAD = {
    "steps": ({"steps": 0}, "steps=0"),
    "refresh": ({"steps": 100, "refresh": 30}, "multiple of refresh"),
    "filter steps": ({"filter_steps": -1}, "filter_steps=-1"),
    "means": ({"robust_means": "magic"}, "robust_means='magic'"),
    "step size": ({"step_size": 0.0}, "step_size=0.0 must be positive"),
    "step name": ({"step_size": "magic"}, "step_size='magic' is unknown"),
    "occupancy step": ({"step_size": 0.1, "occupancy_step": 0.0}, "occupancy_step=0.0 must be positive"),
    "occupancy step alone": ({"occupancy_step": 0.1}, "occupancy_step=0.1 needs a number as step_size"),
    "policy share": ({"policy_share": 0.0}, "policy_share=0.0 must be positive"),
    "policy step": ({"policy_step": -1.0}, "policy_step=-1.0"),
    "coverage": ({"coverage": 0.0}, "coverage=0.0"),
    "tolerance": ({"tolerance": -1.0}, "tolerance=-1.0"),
    "averaging": ({"averaging": -1.0}, "averaging=-1.0"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_settings_are_named_in_one_sentence(case):
    settings, message = BAD[case]
    with pytest.raises(ValueError, match=message) as error:
        PrimalDual(**settings)
    assert str(error.value).endswith(".")


def test_theory_steps():
    """H/(ν√(dT)), ν/(d^{3/2}√(2(H²+1)T)), √(2 log A/(dT))/H."""
    found = theory_steps(5, 4, 3, 100, 2.0)
    np.testing.assert_allclose(
        found, (5 / 40, 2 / (8 * np.sqrt(5200)), np.sqrt(2 * np.log(3) / 400) / 5), rtol=1e-6
    )


@pytest.mark.parametrize("optimistic", [False, True])
def test_each_player_has_its_own_step(world, optimistic):
    """From the first point z⁰ = 0, whose gradients are known: w¹ = −η_w∇w L, β¹ = η_β∇β L."""
    mdp, data = world
    oracle = PrimalDual(
        steps=2, refresh=1, optimistic=optimistic, step_size=0.03, occupancy_step=0.2, coverage=1e6
    )
    prepared = prepare(oracle, data, jnp.float32(0.0))
    problem, _ = oracle._problem(prepared, mdp.theta, oracle.start(prepared))
    solver = DescentAscent(2, 1, optimistic, 0, "residual", 8)
    state = iterate(solver, problem, key=jax.random.key(0), max_steps=1).state
    slope = np.asarray(state.before.slope)
    np.testing.assert_allclose(state.now.at[0], -0.03 * slope[0], rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(state.now.at[1], -0.2 * slope[1], rtol=1e-5, atol=1e-8)
    assert np.abs(slope[1]).max() > 0.01


def test_players_stay_in_their_balls(world):
    """‖w_h‖ ≤ 2H√d and ‖β‖ ≤ √coverage, where steps that are far too long end."""
    mdp, data = world
    oracle = PrimalDual(steps=4, refresh=1, step_size=1e6, coverage=9.0)
    prepared = prepare(oracle, data, jnp.float32(0.0))
    problem, _ = oracle._problem(prepared, mdp.theta, oracle.start(prepared))
    solver = DescentAscent(4, 1, True, 0, "residual", 8)
    w, beta = iterate(solver, problem, key=jax.random.key(0), max_steps=4).state.now.at
    np.testing.assert_allclose(np.linalg.norm(w, axis=1), 2 * mdp.horizon * mdp.dim**0.5, rtol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(beta), 3.0, rtol=1e-5)


def test_the_gap_that_is_reported_is_that_of_the_last_round(world):
    mdp, data = world
    found = solve(SHORT, prepare(SHORT, data, jnp.float32(0.0)), mdp.theta).details
    assert found["gaps"].shape == found["residuals"].shape == (2,)
    assert found["duality_gap"] == found["gaps"][-1] < found["gaps"][0]
    assert found["flow_residual"] == found["residuals"][-1] < found["residuals"][0]


@pytest.mark.slow
def test_the_gap_is_between_what_either_player_could_reach(world):
    """L where β and π answer w, less L where w answers them, and no other answer in the balls is better."""
    mdp, data = world
    game = prepare(SHORT, data, jnp.float32(0.0))
    problem, _ = dataclasses.replace(SHORT, coverage=4.0)._problem(game, mdp.theta, SHORT.start(game))
    moments, rng = game_moments(game, starting_weights(game)), np.random.default_rng(0)
    w, beta, logits = (jnp.asarray(part, jnp.float32) for part in rng.normal(size=(3, 3, 4)))
    slope = descent_gradient(moments, beta, policy_tables(game.table, logits, w).feature)
    means = SaddlePoint(jnp.stack([w, beta]), jnp.stack([slope, jnp.zeros_like(slope)]))
    gap, residual = convergence(problem, moments, means)
    np.testing.assert_allclose(residual, np.linalg.norm(slope), rtol=1e-5)

    def value(beta, logits, w):
        return float(lagrangian(moments, problem.theta, beta, logits, w, game.table))

    def toward(direction, length, axis):
        return direction * length / jnp.linalg.norm(direction, axis=axis, keepdims=axis is not None)

    greedy = 1e4 * w
    rising = jax.grad(lagrangian, argnums=2)(moments, problem.theta, beta, greedy, w, game.table)
    upper = value(toward(rising, 2.0, None), greedy, w)
    lower = value(beta, logits, -toward(slope, 2 * 3 * 4**0.5, 1))
    np.testing.assert_allclose(gap, upper - lower, rtol=1e-4)
    for _ in range(20):
        others = (jnp.asarray(part, jnp.float32) for part in rng.normal(size=(3, 3, 4)))
        b, policy, v = others
        assert value(toward(b, 2.0, None), policy, w) <= upper + 1e-3
        assert value(beta, logits, toward(v, 12.0, 1)) >= lower - 1e-3


def test_no_rounds_of_the_filter_leave_plain_means(world):
    """At ε = 0, where nothing is to be clipped either."""
    mdp, data = world
    oracle = dataclasses.replace(SHORT, robust_means="spectral", filter_steps=0)
    prepared = prepare(SHORT, data, jnp.float32(0.0))
    plain, found = (solve(o, prepared, mdp.theta) for o in (SHORT, oracle))
    np.testing.assert_allclose(found.subgradient, plain.subgradient, atol=1e-4)


def test_theory_is_short_for_the_steps_of_the_analysis(world):
    mdp, data = world
    base = PrimalDual(steps=40, refresh=20, optimistic=False, whiten=False, averaging=0.0, coverage=48.0)
    prepared = prepare(base, data, jnp.float32(0.0))
    step, occupancy, policy = theory_steps(3, 4, 3, 40, 48.0)
    given = dataclasses.replace(base, step_size=step, occupancy_step=occupancy, policy_step=policy)
    a, b = (solve(o, prepared, mdp.theta) for o in (dataclasses.replace(base, step_size="theory"), given))
    np.testing.assert_allclose(a.subgradient, b.subgradient, rtol=1e-5)
    np.testing.assert_allclose(a.policy.logits, b.policy.logits, rtol=1e-4, atol=1e-7)
    same = solve(dataclasses.replace(base, step_size=step, policy_step=policy), prepared, mdp.theta)
    assert not np.allclose(same.subgradient, b.subgradient, rtol=1e-2)


@pytest.mark.parametrize(
    ("oracle", "spelled_out"),
    [
        (SHORT, lambda mdp: {"coverage": 16.0 * mdp.horizon * mdp.dim}),
        (
            dataclasses.replace(SHORT, optimistic=False, averaging=0.0),
            lambda mdp: {"step_size": 0.05, "occupancy_step": 0.05, "policy_step": 5.0},
        ),
    ],
    ids=["coverage", "published steps"],
)
def test_defaults_are_what_the_documentation_says(world, oracle, spelled_out):
    mdp, data = world
    prepared = prepare(oracle, data, jnp.float32(0.0))
    usual = solve(oracle, prepared, mdp.theta)
    asked = solve(dataclasses.replace(oracle, **spelled_out(mdp)), prepared, mdp.theta)
    np.testing.assert_allclose(asked.value, usual.value, rtol=1e-6)
    np.testing.assert_allclose(asked.subgradient, usual.subgradient, rtol=1e-4, atol=1e-6)
