import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy_worlds import numpy_mdp

from robust_rlhf_jax.mdp import uniform_policy
from robust_rlhf_jax.preferences import (
    changed_pairs,
    check_preferences,
    label_entropy,
    preference_probabilities,
    sample_preferences,
)

KEY = jax.random.key(0)
MDP = numpy_mdp(1)


def numpy_probabilities(data, theta, temperature):
    features, theta = np.asarray(data.features, np.float64), np.asarray(theta, np.float64)
    returns = np.einsum("nihd,hd->ni", features, theta)
    return 1 / (1 + np.exp(-(returns[:, 1] - returns[:, 0]) / temperature))


@pytest.mark.slow
def test_samples_are_valid_and_shaped():
    data = sample_preferences(KEY, MDP, 50)
    check_preferences(data)
    assert data.features.shape == (50, 2, 3, 4)
    np.testing.assert_array_equal(data.features, MDP.features[data.states[..., :-1], data.actions])


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0.3, 1.0, 4.0])
def test_label_frequencies_match_the_model(temperature):
    data = sample_preferences(KEY, MDP, 40_000, temperature=temperature)
    p = numpy_probabilities(data, MDP.theta, temperature)
    np.testing.assert_allclose(preference_probabilities(data, MDP.theta, temperature), p, atol=1e-5)
    won = np.asarray(data.labels) == 1
    bins = np.digitize(p, np.quantile(p, [0.2, 0.4, 0.6, 0.8]))
    for b in range(5):
        mask = bins == b
        error = np.sqrt(np.sum(p[mask] * (1 - p[mask]))) / mask.sum()
        assert abs(won[mask].mean() - p[mask].mean()) < 5 * error


@pytest.mark.slow
def test_same_key_same_data():
    first, again = (sample_preferences(KEY, MDP, 200) for _ in range(2))
    other = sample_preferences(jax.random.key(7), MDP, 200)
    assert not changed_pairs(first, again).any()
    assert changed_pairs(first, other).mean() > 0.9


@pytest.mark.slow
def test_behaviour_is_followed():
    always = jnp.zeros((3, 6, 3)).at[..., 2].set(1.0)
    data = sample_preferences(KEY, MDP, 500, behaviour=(uniform_policy(MDP), always))
    assert (data.actions[:, 1] == 2).all()
    assert np.unique(data.actions[:, 0]).tolist() == [0, 1, 2]


@pytest.mark.slow
def test_reward_features_of_the_mdp_decide_the_labels():
    table = jax.random.normal(jax.random.key(3), (6, 3, 2))
    mdp = dataclasses.replace(MDP, reward_features=table, theta=jnp.full((3, 2), 3.0))
    data = sample_preferences(KEY, mdp, 300, temperature=1e-3)
    check_preferences(data)
    x = np.asarray(data.differences(), np.float64)
    assert x.shape == (300, 6)
    margins = 3 * x.sum(axis=1)
    clear = np.abs(margins) > 0.1
    np.testing.assert_array_equal(np.sign(margins[clear]), data.labels[clear])


@pytest.mark.parametrize("temperature", [0, -1.0, float("nan")])
def test_temperature_must_be_positive(temperature):
    with pytest.raises(ValueError, match="must be positive"):
        sample_preferences(KEY, MDP, 10, temperature=temperature)


def test_bad_sizes_and_policies_are_named():
    with pytest.raises(ValueError, match="n_pairs=0"):
        sample_preferences(KEY, MDP, 0)
    wrong = jnp.ones((2, 6, 3)) / 3
    with pytest.raises(ValueError, match=r"behaviour\[1\] has shape \(2, 6, 3\)"):
        sample_preferences(KEY, MDP, 10, behaviour=(uniform_policy(MDP), wrong))


@pytest.mark.parametrize("entry", [float("nan"), -1.0, 0.5])
def test_a_behaviour_that_is_no_policy_is_named(entry):
    wrong = uniform_policy(MDP).at[0, 0, 0].set(entry)
    with pytest.raises(ValueError, match=r"behaviour\[1\] is not a policy"):
        sample_preferences(KEY, MDP, 10, behaviour=(uniform_policy(MDP), wrong))


@pytest.mark.parametrize(
    ("temperature", "said"),
    [(np.ones(2), r"array of shape \(2,\)"), (1e-40, "is 0 in float32"), (1e300, "is infinite in float32")],
)
def test_temperatures_that_the_data_cannot_hold_are_named(temperature, said):
    with pytest.raises(ValueError, match=said):
        sample_preferences(KEY, MDP, 10, temperature=temperature)


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0.2, 1.0, 5.0])
def test_entropy_matches_numpy(temperature):
    data = sample_preferences(KEY, MDP, 1000)
    p = numpy_probabilities(data, MDP.theta, temperature)
    expected = np.mean(-p * np.log2(p) - (1 - p) * np.log2(1 - p))
    np.testing.assert_allclose(label_entropy(data, MDP.theta, temperature), expected, rtol=1e-4)


def test_entropy_ends():
    data = sample_preferences(KEY, MDP, 100)
    assert label_entropy(data, 0 * MDP.theta) == 1
    assert 0 <= label_entropy(data, MDP.theta, 1e-6) < 0.05


@pytest.mark.slow
def test_vmaps_over_temperature():
    temperatures = jnp.array([0.1, 1.0, 10.0])
    batch = jax.vmap(lambda t: sample_preferences(KEY, MDP, 2000, temperature=t))(temperatures)
    one = sample_preferences(KEY, MDP, 2000, temperature=1.0)
    assert batch.labels.shape == (3, 2000)
    np.testing.assert_array_equal(batch.labels[1], one.labels)
