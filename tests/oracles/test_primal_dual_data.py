"""What the primal–dual oracle makes of the data: which steps count, and group means of gradients."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from primal_dual_games import SHORT, prepare, solve

from robust_rlhf_jax.kernels.primal_dual import PolicyTables, policy_tables
from robust_rlhf_jax.kernels.regression import huber_regression, huber_weights
from robust_rlhf_jax.moments.mean import refilter_mean
from robust_rlhf_jax.moments.regression import covariate_weights
from robust_rlhf_jax.oracles.primal_dual.data import (
    FORGIVEN,
    WIDER,
    Game,
    SampleWeights,
    clip_residuals,
    features_of,
    filter_gradients,
    game_moments,
    split_gradients,
    starting_weights,
)


@pytest.mark.slow
@pytest.mark.parametrize("whiten", [False, True])
def test_the_game_of_a_data_set(whiten, world):
    """Every field from its definition, in NumPy and from the weights of the covariates' filter."""
    _, data = world
    game = prepare(dataclasses.replace(SHORT, whiten=whiten), data, jnp.float32(0.1))
    recorded = np.moveaxis(np.asarray(data.features, np.float64), 2, 0).reshape(3, 4000, 4)
    base = np.stack(
        [covariate_weights(jnp.asarray(rows, jnp.float32), jnp.float32(0.1))[0] for rows in recorded]
    )
    np.testing.assert_allclose(game.base, base, rtol=1e-5)
    share = base / base.sum(axis=1, keepdims=True)
    moment = np.einsum("hn,hnd,hne->de", share, recorded, recorded) / 3
    values, vectors = np.linalg.eigh(moment)
    root = vectors / np.sqrt(values) @ vectors.T if whiten else np.eye(4)
    close = {"rtol": 1e-3, "atol": 1e-4}
    np.testing.assert_allclose(game.phi, recorded @ root, **close)
    np.testing.assert_allclose(game.table, np.asarray(data.state_features) @ root, **close)
    np.testing.assert_array_equal(game.reward_phi, np.asarray(recorded, np.float32))
    np.testing.assert_array_equal(game.reward_table, data.state_features)
    np.testing.assert_array_equal(game.states, np.moveaxis(np.asarray(data.states), 2, 0).reshape(4, 4000))
    np.testing.assert_allclose(game.mean_square, np.trace(moment @ root @ root), rtol=1e-4)
    seconds = np.einsum("hn,hnd,hnp->hdp", share, recorded @ root, recorded)
    np.testing.assert_allclose(game.reward_second, seconds, **close)
    grams = np.einsum("hn,hnd,hne->hde", base, recorded @ root, recorded @ root)
    inverses = game.gram_root_inverse @ jnp.swapaxes(game.gram_root_inverse, 1, 2)
    np.testing.assert_allclose(inverses @ grams, np.broadcast_to(np.eye(4), (3, 4, 4)), atol=1e-2)
    assert sorted(np.asarray(game.order).tolist()) == list(range(4000))
    assert (game.n_states, game.horizon, game.start) == (6, 3, None)
    beta = np.random.default_rng(0).normal(size=(3, 4))
    expected = np.einsum("hdp,hd->hp", seconds, beta)
    np.testing.assert_allclose(
        features_of(game, jnp.asarray(beta, jnp.float32)), expected, rtol=1e-3, atol=1e-3
    )


@pytest.mark.slow
@pytest.mark.parametrize("whiten", [False, True])
def test_a_direction_that_no_sample_shows_has_no_inverse(whiten, world):
    """A fifth column that is the mean of the other four leaves four directions to regress on."""
    _, data = world
    mix = np.concatenate([np.eye(4), np.full((4, 1), 0.25)], axis=1).astype(np.float32)
    doubled = dataclasses.replace(
        data, features=data.features @ mix, state_features=data.state_features @ mix
    )
    game = prepare(dataclasses.replace(SHORT, whiten=whiten), doubled, jnp.float32(0.0))
    for root in np.asarray(game.gram_root_inverse, np.float64):
        assert np.sum(np.linalg.eigvalsh(4000 * root @ root.T) > 1e-3) == 4
        assert np.linalg.eigvalsh(4000 * root @ root.T).max() < 1e4


def bare_game(**fields):
    """A game of which nothing else is asked."""
    return Game(**dict.fromkeys(Game.__dataclass_fields__) | fields)


def test_samples_of_a_step_stand_for_it_and_pooled_ones_for_all_steps():
    own, pooled = (
        bare_game(states=np.arange(8).reshape(4, 2)),
        bare_game(states=np.arange(4).reshape(2, 2), start=np.ones(3) / 3),
    )
    for h in range(3):
        assert own.slot(h) == h
        assert own.slot_before(h) == max(h - 1, 0)
        np.testing.assert_array_equal(own.arrivals(h), [2 * h, 2 * h + 1])
        assert pooled.slot(h) == pooled.slot_before(h) == 0
        np.testing.assert_array_equal(pooled.arrivals(h), [2, 3])


def test_a_plan_begins_where_pooled_data_say():
    """Σ_s ρ(s)φ̄_1(s) flows into the first step; into others the φ̄_h of where each sample arrived."""
    feature = np.random.default_rng(0).normal(size=(3, 4, 2)).astype(np.float32)
    start, arrived = np.float32([0.1, 0.2, 0.3, 0.4]), np.array([2, 0, 2])
    pooled, own = bare_game(start=start), bare_game()
    first = np.broadcast_to(start @ feature[0], (3, 2))
    np.testing.assert_allclose(pooled.flows_in(0, arrived, feature), first, rtol=1e-6)
    for h in (1, 2):
        np.testing.assert_array_equal(pooled.flows_in(h, arrived, feature), feature[h][arrived])
    for h in range(3):
        np.testing.assert_array_equal(own.flows_in(h, arrived, feature), feature[h][arrived])


def test_before_any_clipping_a_sample_weighs_what_the_covariates_filter_says():
    base = np.random.default_rng(0).uniform(size=(3, 5))
    found = starting_weights(bare_game(base=base))
    np.testing.assert_array_equal(found.ascent, base)
    np.testing.assert_array_equal(found.flow, base)
    np.testing.assert_allclose(found.arrival, np.concatenate([np.ones((1, 5)), base[:2]]), rtol=1e-6)


@pytest.mark.slow
def test_moments_are_weighted_means_over_samples(world):
    _, data = world
    game = prepare(SHORT, data, jnp.float32(0.0))
    ascent, arrival, flow = np.random.default_rng(0).uniform(size=(3, 3, 4000)).astype(np.float32)
    found = jax.jit(game_moments)(game, SampleWeights(ascent, arrival, flow))
    phi, reward_phi, states = (np.asarray(part) for part in (game.phi, game.reward_phi, game.states))
    close = {"rtol": 1e-3, "atol": 1e-5}
    for h in range(3):
        up, down, came = (part[h] / part[h].sum() for part in (ascent, flow, arrival))
        at, landed = np.eye(6)[states[h]].T, np.eye(6)[states[h + 1]].T
        np.testing.assert_allclose(found.reward[h], (phi[h].T * up) @ reward_phi[h], **close)
        np.testing.assert_allclose(found.second[h], (phi[h].T * up) @ phi[h], **close)
        np.testing.assert_allclose(found.landing[h], landed @ (phi[h] * up[:, None]), **close)
        np.testing.assert_allclose(found.flow_second[h], (phi[h].T * down) @ phi[h], **close)
        expected = at @ (phi[h - 1] * came[:, None]) if h else np.zeros((6, 4))
        np.testing.assert_allclose(found.arriving[h], expected, **close)
    came = arrival[0] / arrival[0].sum()
    np.testing.assert_allclose(found.initial, np.eye(6)[states[0]].T @ came, **close)


@pytest.fixture(scope="module")
def rarely_arrived(world):
    """A game in which twenty samples of 4000 say that they came to a state of great value, and its tables."""
    _, data = world
    game = prepare(SHORT, data, jnp.float32(0.1))
    states = jnp.where(game.states == 5, 0, game.states).at[1:, :20].set(5)
    game = eqx.tree_at(lambda g: g.states, game, states)
    value = jnp.zeros((3, 6)).at[:, 5].set(100.0)
    feature = jnp.mean(game.table, axis=1)[None].repeat(3, axis=0)
    return game, PolicyTables(jnp.full((3, 6, 3), 1 / 3), value, feature)


@pytest.mark.slow
def test_weights_are_hubers_about_the_robust_regression(world, rarely_arrived):
    """min(1, c/|δ|) for what is left of r + v(s') on φ, c = WIDER/√ε robust standard deviations."""
    mdp, _ = world
    game, tables = rarely_arrived
    found = jax.jit(clip_residuals)(game, mdp.theta, tables)
    multiple, following = jnp.float32(WIDER / 0.1**0.5), [*tables.value[1:], jnp.zeros(6)]
    for h in range(3):
        columns, base = game.phi[h].T, game.base[h]
        targets = game.reward_phi[h] @ mdp.theta[h] + following[h][game.states[h + 1]]
        fit = huber_regression(columns, targets, base, game.gram_root_inverse[h], multiple)
        expected = base * 1.0 if h == 2 else huber_weights(targets - fit @ columns, base, multiple, 0.0)
        np.testing.assert_allclose(found.ascent[h], expected, rtol=2e-3, atol=1e-6)
        assert (expected < 0.2 * base).any() == (h < 2)


@pytest.mark.slow
def test_rounding_of_long_samples_is_not_clipped(world, rarely_arrived):
    """Rewards are linear and nothing follows: ten samples ten thousand times as long leave rounding errors as long."""
    mdp, _ = world
    game, tables = rarely_arrived
    longer = jnp.ones(4000).at[:10].set(1e4)[:, None]
    phi, ones = game.phi * longer, jnp.ones((3, 4000))
    values, vectors = np.linalg.eigh(np.einsum("hnd,hne->hde", phi, phi, dtype=np.float64))
    root = vectors / np.sqrt(values)[:, None] @ np.swapaxes(vectors, 1, 2)
    game = eqx.tree_at(
        lambda g: (g.phi, g.reward_phi, g.base, g.gram_root_inverse),
        game,
        (phi, game.reward_phi * longer, ones, jnp.asarray(root, jnp.float32)),
    )
    nothing = tables._replace(value=0.0 * tables.value)
    found = jax.jit(clip_residuals)(game, mdp.theta, nothing)
    np.testing.assert_array_equal(found.ascent, ones)


@pytest.mark.slow
def test_a_filter_of_gradients_begins_with_a_share_of_what_the_last_one_took(world, rarely_arrived):
    """Without a round of its own: base − FORGIVEN·(base − last); a flow's base is that of the lesser of its steps."""
    mdp, _ = world
    game, tables = rarely_arrived
    base, *last = np.random.default_rng(0).uniform(size=(4, 3, 4000)).astype(np.float32)
    game, last = (
        eqx.tree_at(lambda g: g.base, game, jnp.asarray(base)),
        SampleWeights(*(base * x for x in last)),
    )
    w = jnp.ones((3, 4))
    found = jax.jit(filter_gradients, static_argnums=6)(game, last, mdp.theta, w, w, tables, 0)
    np.testing.assert_allclose(found.ascent, base - FORGIVEN * (base - last.ascent), rtol=1e-5)
    sound = np.minimum(base, base[[0, 0, 1]])
    expected = sound - FORGIVEN * (sound - np.minimum(last.flow, sound))
    np.testing.assert_allclose(found.flow, expected, rtol=1e-5)
    np.testing.assert_array_equal(found.arrival, found.flow)


@pytest.mark.slow
def test_gradients_are_filtered_step_by_step(world, rarely_arrived):
    """The rows in NumPy, φ(r + v(s') − wᵀφ) and φ̄⟨φ₋, β₋⟩ − φφᵀβ; each step's filter alone."""
    mdp, _ = world
    game, tables = rarely_arrived
    w, beta = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    weights = starting_weights(game)
    found = jax.jit(filter_gradients, static_argnums=6)(game, weights, mdp.theta, w, beta, tables, 4)
    phi, states, base = (np.asarray(part) for part in (game.phi, game.states, game.base))
    reward = np.einsum("hnp,hp->hn", game.reward_phi, mdp.theta)
    following = [*np.asarray(tables.value[1:]), np.zeros(6)]
    sound = np.minimum(base, base[[0, 0, 1]])
    for h in range(3):
        up = phi[h] * (reward[h] + following[h][states[h + 1]] - phi[h] @ w[h])[:, None]
        carried = phi[h - 1] @ beta[h - 1] if h else np.ones(4000)
        down = (
            np.asarray(tables.feature)[h][states[h]] * carried[:, None] - phi[h] * (phi[h] @ beta[h])[:, None]
        )
        for rows, own, part in ((up, base, found.ascent), (down, sound, found.flow)):
            start = jnp.asarray(own[h])
            expected = refilter_mean(jnp.asarray(rows, jnp.float32), game.epsilon, start, 4)
            np.testing.assert_allclose(part[h], expected, rtol=1e-2, atol=1e-2)
    assert (np.asarray(found.ascent) < 0.9 * base).any()


@pytest.mark.slow
def test_steps_to_where_nobody_else_goes_count_less_whatever_the_reward(world, rarely_arrived):
    """Twenty samples of 4000 say that they came to a state of great value; rewards are linear and leave no residual."""
    mdp, _ = world
    game, tables = rarely_arrived
    plain, other = (jax.jit(clip_residuals)(game, factor * mdp.theta, tables) for factor in (0.0, 50.0))
    share = np.asarray(plain.ascent / game.base)
    assert share[:2, :20].max() < 0.2
    assert share[:2, 20:].mean() > 0.9
    np.testing.assert_allclose(share[2], 1.0, rtol=3e-7)  # nothing follows the last step
    np.testing.assert_allclose(other.ascent, plain.ascent, atol=2e-3)
    np.testing.assert_array_equal(plain.flow, plain.ascent)
    np.testing.assert_array_equal(plain.arrival[1:], plain.ascent[:-1])


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_no_rounds_of_the_filter_leave_plain_means(world):
    """At ε = 0, where nothing is to be clipped either."""
    mdp, data = world
    oracle = dataclasses.replace(SHORT, robust_means="spectral", filter_steps=0)
    prepared = prepare(SHORT, data, jnp.float32(0.0))
    plain, found = (solve(o, prepared, mdp.theta) for o in (SHORT, oracle))
    np.testing.assert_allclose(found.subgradient, plain.subgradient, atol=1e-4)
