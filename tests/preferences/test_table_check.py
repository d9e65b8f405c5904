"""Features that differ from the table are found and left out, all and only those; honest data keep every bit."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from slow_parameters import slow

from robust_rlhf_jax import (
    Pairs,
    PreferenceData,
    ask_table,
    load,
    load_rail_choices,
    off_table,
    sample_preferences,
    sample_segments,
    save,
)
from robust_rlhf_jax import changed_pairs as eager_changed_pairs
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.lab.attacks import ATTACKS
from robust_rlhf_jax.lab.worlds import delivery_grid
from robust_rlhf_jax.mdp import LinearMDP
from robust_rlhf_jax.preferences import leave_out

N = 100
changed_pairs = jax.jit(eager_changed_pairs)


@pytest.fixture(scope="module")
def world(make_mdp):
    mdp = make_mdp()
    return mdp, sample_preferences(jax.random.key(0), mdp, N)


def with_reward_features(mdp, seed=4):
    table = jnp.asarray(np.random.default_rng(seed).uniform(-0.5, 0.5, size=(6, 3, 2)), jnp.float32)
    theta = jnp.asarray(np.random.default_rng(seed).normal(size=(3, 2)), jnp.float32)
    return LinearMDP(mdp.features, mdp.transition_measures, theta, mdp.initial_distribution, table)


def same_bits(a: PreferenceData, b: PreferenceData):
    leaves = [jax.tree.leaves(x) for x in (a, b)]
    return all(np.asarray(x).tobytes() == np.asarray(y).tobytes() for x, y in zip(*leaves, strict=True))


def assert_clean(data):
    assert not off_table(data).any()
    kept, off = ask_table(data)
    assert not off.any()
    assert same_bits(kept, data)


@pytest.mark.parametrize("stationary", [False, True])
def test_clean_data_come_back_bit_for_bit(world, stationary):
    mdp, data = world
    for clean in (data, sample_preferences(jax.random.key(0), with_reward_features(mdp), N)):
        assert_clean(dataclasses.replace(clean, stationary=stationary))


def test_rounding_is_no_contradiction(world, rotate_features):
    """Features rotated after they were recorded: the table's rows by another product, in other units."""
    mdp, data = world
    turned = rotate_features(mdp)
    rotation, *_ = np.linalg.lstsq(
        np.asarray(mdp.features, np.float64).reshape(-1, mdp.dim),
        np.asarray(turned.features, np.float64).reshape(-1, mdp.dim),
    )
    units = jnp.asarray([1e-6, 1.0, 1e3, 1e6], jnp.float32)
    features = matmul(data.features, jnp.asarray(rotation, jnp.float32)) * units
    recorded = dataclasses.replace(data, state_features=turned.features * units, features=features)
    assert not off_table(recorded).any()
    planted = features.at[7, 1, 2, 0].add(1e-8)
    found = off_table(dataclasses.replace(recorded, features=planted))
    np.testing.assert_array_equal(np.flatnonzero(found), [7])


@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
def test_files_keep_the_table(world, suffix, tmp_path):
    save(tmp_path / f"pairs{suffix}", world[1])
    assert_clean(load(tmp_path / f"pairs{suffix}"))


def test_double_precision_from_single(world, x64):
    _, data = world
    table = jnp.asarray(np.asarray(data.state_features, np.float64) / 3)
    single = jnp.asarray(np.asarray(table[data.states[..., :-1], data.actions], np.float32), jnp.float64)
    assert_clean(dataclasses.replace(data, state_features=table, features=single))


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.45])
@pytest.mark.parametrize(
    "name", ["push_features", "scale_features", "leverage_points", "corrupt_transitions"]
)
@pytest.mark.parametrize("own", [slow(False), True])
def test_every_planted_feature_and_no_other(world, name, own, epsilon):
    mdp = with_reward_features(world[0]) if own else world[0]
    data = sample_preferences(jax.random.key(0), mdp, N)
    corrupted = jax.jit(ATTACKS[name])(jax.random.key(1), data, epsilon, mdp)
    np.testing.assert_array_equal(off_table(corrupted), changed_pairs(data, corrupted))
    kept, off = ask_table(corrupted)
    assert off.sum() == round(N * epsilon)
    assert_clean(kept)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["adaptive", "adaptive_filtered"])
def test_searched_features_are_found_too(world, name):
    mdp, data = world
    attack = partial(ATTACKS[name], steps=2, restarts=2, templates=5)
    quick_jit = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
    corrupted = quick_jit(attack)(jax.random.key(1), data, 0.1, mdp)
    np.testing.assert_array_equal(off_table(corrupted), changed_pairs(data, corrupted))
    assert off_table(corrupted).sum() == 10


def test_what_is_left_out_gives_way_to_copies_in_order(world):
    _, data = world
    off = np.isin(np.arange(N), [0, 3, 4, 99])
    kept = leave_out(data, off)
    source = np.arange(N)
    source[[0, 3, 4, 99]] = [1, 2, 5, 6]
    assert same_bits(kept, data.take(jnp.asarray(source)))
    most = np.arange(N) >= 3
    assert same_bits(leave_out(data, most), data.take(jnp.arange(N) % 3))
    assert same_bits(leave_out(data, np.ones(N, bool)), data)


def test_a_table_against_most_of_the_data_is_not_believed(world):
    _, data = world
    for count in (50, 51, 100):
        features = data.features.at[:count].multiply(2.0)
        other = dataclasses.replace(data, features=features)
        kept, off = ask_table(other)
        np.testing.assert_array_equal(off, np.arange(N) < count)
        assert same_bits(kept, other) == (count > 50)


def test_what_no_table_has_is_off_it(world):
    _, data = world
    other = dataclasses.replace(
        data,
        states=data.states.at[3, 0, -1].set(6).at[4, 1, 0].set(-1),
        actions=data.actions.at[5, 1, 2].set(3),
        features=data.features.at[6, 0, 0, 0].set(jnp.nan),
    )
    np.testing.assert_array_equal(np.flatnonzero(off_table(other)), [3, 4, 5, 6])


@pytest.mark.slow
def test_batch_equals_loop(world):
    _, data = world
    sizes = jnp.asarray([1.0, 1.01, 2.0])
    scaled = lambda s: dataclasses.replace(data, features=data.features.at[:10].multiply(s))  # noqa: E731
    kept, off = jax.vmap(lambda s: ask_table(scaled(s)))(sizes)
    for i, size in enumerate(sizes):
        one, mask = ask_table(scaled(size))
        np.testing.assert_array_equal(off[i], mask)
        np.testing.assert_array_equal(kept.features[i], one.features)
        np.testing.assert_array_equal(kept.labels[i], one.labels)
    assert off.sum() == 20


@pytest.mark.slow
def test_segments_keep_their_plan():
    """Both kinds of features are asked, and the plan's horizon and start survive, whatever is left out."""
    mdp = delivery_grid(jax.random.key(0), size=4, horizon=10)
    data = sample_segments(jax.random.key(1), mdp, N, 4, temperature=0.18)
    assert_clean(data)
    corrupted = dataclasses.replace(
        data,
        features=data.features.at[3, 0, 1].multiply(0.5),
        reward_features=data.reward_features.at[8, 1, 3, 0].add(0.5),
    )
    kept, off = ask_table(corrupted)
    np.testing.assert_array_equal(np.flatnonzero(off), [3, 8])
    assert_clean(kept)
    for other in (kept, leave_out(data, off), leave_out(data, np.ones(N, bool))):
        assert jax.tree.structure(other) == jax.tree.structure(data)
        assert (other.planning_horizon, other.stationary) == (10, True)
        np.testing.assert_array_equal(other.planning_start, mdp.initial_distribution)
    both, masks = jax.vmap(ask_table)(jax.tree.map(lambda *x: jnp.stack(x), data, corrupted))
    np.testing.assert_array_equal(masks.sum(axis=1), [0, 2])
    np.testing.assert_array_equal(both.features[1], kept.features)


@pytest.mark.parametrize("off", [np.arange(3), np.ones(3, bool), np.zeros(2929)])
def test_pairs_to_leave_out_are_a_mask(off):
    with pytest.raises(ValueError, match="give true or false for each of the 2929 pairs"):
        leave_out(load_rail_choices(), off)


@pytest.mark.parametrize("door", [off_table, ask_table, lambda data: leave_out(data, np.zeros(2, bool))])
@pytest.mark.parametrize("given", [Pairs(np.eye(2), np.zeros((2, 2))), np.eye(2)])
def test_what_has_no_table_is_called_by_its_type(door, given):
    with pytest.raises(
        TypeError, match=f"^data is of the type {type(given).__name__}, and only PreferenceData"
    ):
        door(given)
