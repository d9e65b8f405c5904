import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robust_rlhf_jax.preferences import changed_pairs, random_split, sample_preferences
from robust_rlhf_jax.worlds import random_linear_mdp

MDP = random_linear_mdp(jax.random.key(0), n_states=5, n_actions=2, dim=3, horizon=4)
DATA = sample_preferences(jax.random.key(1), MDP, 23)
SHARED = dataclasses.replace(DATA, stationary=True)


def numbered(n):
    """`DATA` with the pair's number as every feature, so that pairs can be told apart."""
    numbers = jnp.arange(n, dtype=jnp.float32)[:, None, None, None]
    data = DATA.take(jnp.zeros(n, int))
    return dataclasses.replace(data, features=jnp.broadcast_to(numbers, data.features.shape))


def test_sizes():
    assert (DATA.n_pairs, DATA.horizon, DATA.reward_dim, DATA.theta_dim) == (23, 4, 3, 12)
    assert SHARED.theta_dim == 3
    assert DATA.reward_lookup is DATA.state_features
    assert DATA.observed_reward_features is DATA.features


def test_reward_features_take_over():
    reward = jnp.ones((23, 2, 4, 6))
    data = dataclasses.replace(DATA, reward_table=jnp.ones((5, 2, 6)), reward_features=reward)
    assert (data.reward_dim, data.theta_dim) == (6, 24)
    assert data.reward_lookup is data.reward_table
    assert data.differences().shape == (23, 24)


def test_differences_match_numpy():
    features = np.asarray(DATA.features)
    x = features[:, 1] - features[:, 0]
    np.testing.assert_array_equal(DATA.differences(), x.reshape(23, 12))
    np.testing.assert_allclose(SHARED.differences(), x.sum(axis=1), atol=1e-6)


@pytest.mark.parametrize("data", [DATA, SHARED])
def test_margins_agree_with_one_theta_per_step(data):
    theta = jax.random.normal(jax.random.key(2), (data.theta_dim,))
    x = data.features[:, 1] - data.features[:, 0]
    expected = jnp.einsum("nhd,hd->n", x, data.per_step(theta))
    np.testing.assert_allclose(data.differences() @ theta, expected, atol=1e-5)


@pytest.mark.parametrize("data", [DATA, SHARED])
def test_flat_inverts_per_step(data):
    theta = jax.random.normal(jax.random.key(3), (data.theta_dim,))
    assert data.per_step(theta).shape == (4, 3)
    np.testing.assert_allclose(data.flat(data.per_step(theta)), theta, rtol=1e-6)
    rows = jnp.tile(jnp.array([1.0, 2.0, 3.0]), (4, 1))
    np.testing.assert_allclose(data.per_step(data.flat(rows)), rows, rtol=1e-6)


def test_take_keeps_order_and_table():
    rows = jnp.array([4, 0, 4])
    part = DATA.take(rows)
    np.testing.assert_array_equal(part.features, DATA.features[rows])
    np.testing.assert_array_equal(part.labels, DATA.labels[rows])
    assert part.state_features is DATA.state_features
    assert SHARED.take(rows).stationary


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


@pytest.mark.parametrize("parts", [0, -1])
def test_random_split_needs_a_part(parts):
    with pytest.raises(ValueError, match="cannot be split"):
        random_split(jax.random.key(0), DATA, parts)


def test_random_split_follows_its_key_and_jits():
    first, again, other = (random_split(jax.random.key(s), numbered(30), 2)[0] for s in (0, 0, 1))
    np.testing.assert_array_equal(first.features, again.features)
    assert (first.features != other.features).any()
    traced = jax.jit(lambda key: random_split(key, numbered(30), 2))(jax.random.key(0))
    np.testing.assert_array_equal(traced[0].features, first.features)


@pytest.mark.parametrize("field", ["states", "actions", "features", "labels"])
def test_changed_pairs_sees_every_field(field):
    array = getattr(DATA, field)
    other = dataclasses.replace(DATA, **{field: array.at[7].add(1)})
    np.testing.assert_array_equal(np.flatnonzero(changed_pairs(DATA, other)), [7])
    assert not changed_pairs(DATA, DATA).any()


def test_changed_pairs_sees_reward_features():
    reward = jnp.ones((23, 2, 4, 6))
    clean = dataclasses.replace(DATA, reward_table=jnp.ones((5, 2, 6)), reward_features=reward)
    other = dataclasses.replace(clean, reward_features=reward.at[22, 1, 3, 5].set(0))
    np.testing.assert_array_equal(np.flatnonzero(changed_pairs(clean, other)), [22])
