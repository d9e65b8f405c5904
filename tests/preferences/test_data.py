import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy_worlds import numpy_mdp

from robust_rlhf_jax import Pairs
from robust_rlhf_jax.preferences import changed_pairs, random_split, sample_preferences


@functools.cache
def pairs():
    mdp = numpy_mdp(n_states=5, n_actions=2, dim=3, horizon=4)
    return sample_preferences(jax.random.key(1), mdp, 23)


def shared():
    """The same with one θ for all steps."""
    return dataclasses.replace(pairs(), stationary=True)


def numbered(n):
    """`pairs` with the pair's number as every feature, so that pairs can be told apart."""
    numbers = jnp.arange(n, dtype=jnp.float32)[:, None, None, None]
    data = pairs().take(jnp.zeros(n, int))
    return dataclasses.replace(data, features=jnp.broadcast_to(numbers, data.features.shape))


@pytest.mark.slow
def test_sizes():
    assert (pairs().n_pairs, pairs().horizon, pairs().reward_dim, pairs().theta_dim) == (23, 4, 3, 12)
    assert shared().theta_dim == 3
    assert pairs().reward_lookup is pairs().state_features
    assert pairs().observed_reward_features is pairs().features


def test_reward_features_take_over():
    reward = jnp.ones((23, 2, 4, 6))
    data = dataclasses.replace(pairs(), reward_table=jnp.ones((5, 2, 6)), reward_features=reward)
    assert (data.reward_dim, data.theta_dim) == (6, 24)
    assert data.reward_lookup is data.reward_table
    assert data.differences().shape == (23, 24)


def test_differences_match_numpy():
    features = np.asarray(pairs().features)
    x = features[:, 1] - features[:, 0]
    np.testing.assert_array_equal(pairs().differences(), x.reshape(23, 12))
    np.testing.assert_allclose(shared().differences(), x.sum(axis=1), atol=1e-6)


@pytest.mark.parametrize("build", [pairs, shared])
def test_margins_agree_with_one_theta_per_step(build):
    data = build()
    theta = jax.random.normal(jax.random.key(2), (data.theta_dim,))
    x = data.features[:, 1] - data.features[:, 0]
    expected = jnp.einsum("nhd,hd->n", x, data.per_step(theta))
    np.testing.assert_allclose(data.differences() @ theta, expected, atol=1e-5)


@pytest.mark.parametrize("build", [pairs, shared])
def test_flat_inverts_per_step(build):
    data = build()
    theta = jax.random.normal(jax.random.key(3), (data.theta_dim,))
    assert data.per_step(theta).shape == (4, 3)
    np.testing.assert_allclose(data.flat(data.per_step(theta)), theta, rtol=1e-6)
    rows = jnp.tile(jnp.array([1.0, 2.0, 3.0]), (4, 1))
    np.testing.assert_allclose(data.per_step(data.flat(rows)), rows, rtol=1e-6)


def test_take_keeps_order_and_table():
    rows = jnp.array([4, 0, 4])
    part = pairs().take(rows)
    np.testing.assert_array_equal(part.features, pairs().features[rows])
    np.testing.assert_array_equal(part.labels, pairs().labels[rows])
    assert part.state_features is pairs().state_features
    assert shared().take(rows).stationary


def test_take_takes_lists_and_masks():
    data = pairs()
    np.testing.assert_array_equal(data.take([2, 0]).features, data.features[np.array([2, 0])])
    mask = np.arange(data.n_pairs) % 2 == 0
    np.testing.assert_array_equal(data.take(mask).labels, data.labels[mask])
    np.testing.assert_array_equal(data.take(jnp.asarray(mask)).labels, data.labels[mask])
    assert data.take([]).n_pairs == 0


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([0, 10**6], "rows holds 1000000, but there are"),
        ([-(10**6)], "rows holds -1000000, but there are"),
        ([0.5], "rows holds float64 entries"),
        (0, r"rows has shape \(\): give one number for each pair"),
        ([[0, 1], [1, 0]], r"rows has shape \(2, 2\)"),
        (np.array([True]), r"mask of shape \(1,\)"),
    ],
)
def test_rows_that_do_not_exist_are_refused(rows, said):
    with pytest.raises(ValueError, match=said):
        pairs().take(rows)


@pytest.mark.slow
@settings(max_examples=12)
@given(n=st.sampled_from([1, 5, 6, 40]), parts=st.sampled_from([1, 3, 6]), seed=st.integers(0, 1000))
def test_random_split_is_disjoint_and_covers(n, parts, seed):
    data, key = numbered(n), jax.random.key(seed)
    if parts > n:
        with pytest.raises(ValueError, match="at least one pair a part"):
            random_split(key, data, parts)
        return
    split = random_split(key, data, parts)
    numbers = np.concatenate([np.asarray(part.features[:, 0, 0, 0]) for part in split])
    assert [part.n_pairs for part in split] == [n // parts] * parts
    assert len(set(numbers)) == len(numbers) == n - n % parts


@pytest.mark.parametrize(
    ("parts", "said"), [(0, "cannot be split"), (-1, "cannot be split"), (2.0, "give a whole")]
)
def test_random_split_needs_a_part(parts, said):
    with pytest.raises(ValueError, match=said):
        random_split(jax.random.key(0), pairs(), parts)


@pytest.mark.slow
def test_random_split_follows_its_key_and_jits():
    first, again, other = (random_split(jax.random.key(s), numbered(30), 2)[0] for s in (0, 0, 1))
    np.testing.assert_array_equal(first.features, again.features)
    assert (first.features != other.features).any()
    traced = jax.jit(lambda key: random_split(key, numbered(30), 2))(jax.random.key(0))
    np.testing.assert_array_equal(traced[0].features, first.features)


@pytest.mark.parametrize("field", ["states", "actions", "features", "labels"])
def test_changed_pairs_sees_every_field(field):
    array = getattr(pairs(), field)
    other = dataclasses.replace(pairs(), **{field: array.at[7].add(1)})
    np.testing.assert_array_equal(np.flatnonzero(changed_pairs(pairs(), other)), [7])
    assert not changed_pairs(pairs(), pairs()).any()


def test_changed_pairs_of_other_types_are_refused():
    options = Pairs(np.eye(2), np.zeros((2, 2)))
    for both in ((options, options), (pairs(), options)):
        with pytest.raises(
            TypeError, match=r"^changed_pairs compares PreferenceData, and not Pairs: .*with_table"
        ):
            changed_pairs(*both)


def test_changed_pairs_sees_reward_features():
    reward = jnp.ones((23, 2, 4, 6))
    clean = dataclasses.replace(pairs(), reward_table=jnp.ones((5, 2, 6)), reward_features=reward)
    other = dataclasses.replace(clean, reward_features=reward.at[22, 1, 3, 5].set(0))
    np.testing.assert_array_equal(np.flatnonzero(changed_pairs(clean, other)), [22])
