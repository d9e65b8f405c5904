"""`fit_reward`: the fit of the differences, what the table contradicts left out, bad input in one sentence."""

import dataclasses
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax import Pairs, preferences
from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.rewards import RewardModel, fit_data, fit_reward
from robust_rlhf_jax.rewards.front_door import reward_model

from .worlds import K, N, fitted, maximum_likelihood, normal_pairs, planted


def data_of(x, labels):
    """Pairs whose option 0 is all zeros, so that their differences are x to the bit."""
    return preferences.preferences_from_options(np.zeros_like(x, np.float32), x.astype(np.float32), labels)


@pytest.fixture(scope="module")
def honest():
    return data_of(*normal_pairs(0))


@pytest.fixture(scope="module")
def attacked():
    x, labels, bad = planted(*normal_pairs(0), 0.1, 3.0)
    return data_of(x, labels), bad


@pytest.mark.slow
def test_it_is_the_fit_of_the_differences(honest):
    x, labels = normal_pairs(0)
    for epsilon in (0.0, 0.1):
        model, found = fit_reward(honest, epsilon), fitted(x, labels, epsilon)
        for name in ("theta", "weights", "suspicion", "epsilon", "interval", "rank", "undisputed", "status"):
            np.testing.assert_array_equal(getattr(model, name), getattr(found, name))
        assert model.doubted.shape == (0, K)
    np.testing.assert_allclose(model.theta, maximum_likelihood(x, labels), rtol=0.03)
    assert model.message == "No evidence of corruption: maximum likelihood on all 1,000 pairs."


@pytest.mark.slow
def test_who_names_no_epsilon_names_a_fifth(honest, attacked):
    for data in (honest, attacked[0]):
        one, other = fit_reward(data), fit_reward(data, 0.2)
        jax.tree.map(np.testing.assert_array_equal, one, other)


@pytest.mark.slow
def test_evidence_is_put_in_words(attacked):
    data, bad = attacked
    model = fit_reward(data, 0.1)
    out = round(N - float(jnp.sum(model.weights)))
    assert abs(out - bad.sum()) < 20
    low, high = 100 * np.asarray(model.interval)
    assert model.message == (
        f"{out} of 1,000 pairs ({100 * float(model.epsilon):.1f} %) are contradicted by the rest and left out; "
        f"between {low:.1f} and {high:.1f} % may be corrupt."
    )


def off_the_table(data, rows, factor=3.0):
    """The same pairs, the recorded features of some of them not the table's."""
    return dataclasses.replace(data, features=data.features.at[rows].multiply(factor))


@pytest.mark.slow
def test_pairs_off_the_table_are_out_for_certain(honest):
    """θ is that of the other pairs, whatever those recorded, at every ceiling."""
    rows = np.arange(0, N, 4)
    corrupted = off_the_table(honest, rows)
    x, labels = normal_pairs(0)
    for epsilon in (0.0, 0.1, None):
        model = fit_reward(corrupted, epsilon)
        np.testing.assert_array_equal(model.weights, np.arange(N) % 4 > 0)
        np.testing.assert_array_equal(model.undisputed, np.arange(N) % 4 > 0)
        np.testing.assert_array_equal(model.suspicion[rows], 1.0)
        assert np.delete(np.asarray(model.suspicion), rows).max() < 1
        np.testing.assert_allclose(model.epsilon, 0.25, atol=1e-6)
        assert model.interval[0] <= model.epsilon <= model.interval[1]
        expected = maximum_likelihood(np.delete(x, rows, axis=0), np.delete(labels, rows))
        np.testing.assert_allclose(model.theta, expected, rtol=0.04)
        assert model.message.startswith("250 of 1,000 pairs (25.0 %)")


@pytest.mark.slow
def test_a_number_off_the_table_that_is_no_number_does_no_harm_under_jit(honest):
    """Where values are traced nothing refuses a NaN: the table does."""
    corrupted = off_the_table(honest, np.arange(5), jnp.nan)
    found = jax.jit(fit_data)(corrupted, jnp.asarray(0.1, jnp.float32))
    assert found.status == Status.CONVERGED
    np.testing.assert_array_equal(found.weights, np.arange(N) >= 5)
    plain = fit_data(off_the_table(honest, np.arange(5)), jnp.asarray(0.1, jnp.float32))
    np.testing.assert_allclose(found.theta, plain.theta, rtol=1e-3, atol=1e-4)


@pytest.mark.slow
def test_groups_have_any_names(honest):
    numbers = np.random.default_rng(0).integers(0, 50, N)
    words = np.array([f"rater {n}" for n in numbers])
    models = [
        fit_reward(honest, 0.1, groups=groups) for groups in (numbers, 7 * numbers - 3, words, list(words))
    ]
    for other in models[1:]:
        np.testing.assert_allclose(other.theta, models[0].theta, rtol=1e-5)
        np.testing.assert_array_equal(other.weights, models[0].weights)
    assert isinstance(models[0], RewardModel)


@pytest.mark.slow
def test_doubted_rows_are_of_length_1_and_those_of_0_go():
    found = fitted(*normal_pairs(0), 0.0)
    rows = jnp.zeros((K, K)).at[1, 2].set(0.25).at[4, 0].set(-8.0)
    model = reward_model(found._replace(doubted=rows))
    np.testing.assert_array_equal(model.doubted, [[0, 0, 1, 0, 0, 0], [-1, 0, 0, 0, 0, 0]])


@pytest.mark.slow
def test_a_batch_keeps_its_doubted_rows():
    found = fitted(*normal_pairs(0), 0.0)
    batch = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), found)
    assert reward_model(batch).doubted.shape == (2, K, K)


def test_groups_are_given_by_name(honest):
    with pytest.raises(TypeError):
        fit_reward(honest, 0.1, np.zeros(N, int))


@pytest.mark.parametrize(
    "epsilon", [-0.1, 0.5, 1.0, float("nan"), float("inf"), "much", jnp.asarray([0.1, 0.6])]
)
def test_an_epsilon_out_of_range_is_refused(honest, epsilon):
    with pytest.raises(ValueError, match=r"^epsilon=.*\[0, 0\.5\)"):
        fit_reward(honest, epsilon)


@pytest.mark.parametrize("groups", [np.zeros(N - 1, int), np.zeros((N, 1), int), [], 3])
def test_groups_of_another_length_are_refused(honest, groups):
    with pytest.raises(
        ValueError, match=r"^groups has shape .*: give one group for each of the 1000 pairs\.$"
    ):
        fit_reward(honest, 0.1, groups=groups)


def test_bad_data_are_refused(honest):
    zero_one = dataclasses.replace(honest, labels=(honest.labels + 1) / 2)
    with pytest.raises(ValueError, match=r"labels look like 0/1, map 0 to -1"):
        fit_reward(zero_one)
    with pytest.raises(ValueError, match=r"^features\[3, 1, 0, 2\] is nan: every entry must be finite"):
        fit_reward(dataclasses.replace(honest, features=honest.features.at[3, 1, 0, 2].set(jnp.nan)))
    with pytest.raises(ValueError, match="no direction of theta can be learnt"):
        fit_reward(dataclasses.replace(honest, features=honest.features * 0))
    with pytest.raises(ValueError, match="labels has shape"):
        fit_reward(dataclasses.replace(honest, labels=honest.labels[1:]))


@pytest.mark.slow
@pytest.mark.parametrize("tied", [False, True])
def test_float32_stays_so_where_float64_is_enabled(tied):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2)).astype(np.float32)
    signs = np.where(rng.logistic(size=200) < x @ [2.0, -1.0], 1, -1).astype(np.float32)
    strength = np.where(rng.random(200) < 0.2, 0.0, 1.0) if tied else None
    with jax.enable_x64(True), warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fit_reward(Pairs(x * signs[:, None], 0 * x, strength=strength))
        assert found.theta.dtype == jnp.float32
        mixed = fit_reward(Pairs(x.astype(float) * signs[:, None], 0 * x, strength=strength))
        assert mixed.theta.dtype == jnp.float64
        np.testing.assert_allclose(found.theta, mixed.theta, rtol=1e-3)


@pytest.mark.parametrize("config", [{"certainty": 3.0}, 0.1])
def test_a_config_is_a_robust_fit(config):
    with pytest.raises(ValueError, match=r"config=.*: give rewards\.RobustFit\(…\)"):
        fit_reward(preferences.rail_pairs(), config=config)
