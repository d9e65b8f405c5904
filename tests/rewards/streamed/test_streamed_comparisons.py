"""Keys of rows: those that `comparisons_of` numbers in memory, and the fit by passes of choices that recur."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit

from robust_rlhf_jax.preferences.comparisons import comparisons_of
from robust_rlhf_jax.rewards import Streaming, fit_differences, fit_source
from robust_rlhf_jax.rewards.streamed.comparisons import numbers_of_keys, row_keys
from robust_rlhf_jax.rewards.streamed.fit import fits_in_memory
from robust_rlhf_jax.sources import ArraySource

keys_of = jax.jit(row_keys)


def numbers(x):
    return numbers_of_keys(np.asarray(keys_of(x)), np.linalg.norm(x.astype(np.float32), axis=1))


def of_options(n, k, options=20, seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    few = rng.normal(size=(options, k)).astype(dtype)
    a = rng.integers(options, size=n)
    return few[a] - few[(a + rng.integers(0, options, n)) % options]


@pytest.mark.parametrize("k", [1, 3, 300])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_the_same_rows_are_alike_as_in_memory(k, dtype):
    x = of_options(4_000, k, dtype=dtype)
    found, expected = numbers(x), comparisons_of(x)
    np.testing.assert_array_equal(np.unique(found, return_index=True)[1].size, expected.max() + 1)
    pairs = np.unique(np.stack([found, expected]), axis=1)
    assert pairs.shape[1] == expected.max() + 1


@pytest.mark.slow
def test_small_integers_and_many_rows_do_not_collide():
    """200,000 different rows of small integers: equal keys would be a fault of the hash, not chance."""
    places = np.arange(200_000)
    x = np.stack([places // 4**j % 4 - 1.5 for j in range(9)], axis=1).astype(np.float32)
    x = x[np.unique(np.where(x[:, :1] < 0, -x, x), axis=0, return_index=True)[1]]
    assert len(np.unique(np.asarray(keys_of(x)), axis=0)) == len(x)


def test_signs_and_signed_zeros_do_not_matter():
    x = of_options(50, 4)
    x[:, 1] = 0.0
    turned = np.where(np.arange(50)[:, None] % 2 == 0, -x, x)
    np.testing.assert_array_equal(keys_of(turned), keys_of(x))


def test_few_that_recur_and_equal_options_are_none():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1_000, 5)).astype(np.float32)
    x[:100] = x[100:200]
    assert numbers(x) is None
    x[:700] = 0.0
    assert numbers(x) is None
    assert numbers(of_options(1_000, 5)) is not None


def items(n, seed, k=8, options=20):
    """Honest choices between a few options with a quality that no feature tells, preferred first."""
    rng = np.random.default_rng(seed)
    features, quality = rng.normal(size=(options, k)), rng.normal(size=options)
    a = rng.integers(options, size=n)
    b = (a + rng.integers(1, options, n)) % options
    x = features[a] - features[b]
    wins = rng.random(n) < expit(x[:, :3] @ [2.0, 1.5, 1.0] + 2.0 * (quality[a] - quality[b]))
    return np.where(wins[:, None], x, -x).astype(np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("grouped", [False, True])
def test_honest_choices_between_few_options_are_left_alone_by_passes_and_in_memory(grouped):
    """Nobody leaves, where .056 of the pairs leave on average if no fit knows which of them recur."""
    streaming = Streaming(memory=3_000_000, sample=2_000)
    groups = np.random.default_rng(9).integers(0, 100, 6_000) if grouped else None
    unaware = []
    for seed in range(4):
        x = items(6_000, seed)
        source = ArraySource(x)
        assert not fits_in_memory(source, streaming)
        found = fit_source(source, 0.2, groups, streaming=streaming)
        expected = fit_source(source, 0.2, groups)
        assert found.epsilon == expected.epsilon == 0
        np.testing.assert_allclose(found.theta, expected.theta, rtol=2e-3, atol=2e-3)
        ones = np.ones(len(x), np.float32)
        unaware.append(float(fit_differences(x, ones, jnp.float32(0.2)).epsilon))
    assert np.mean(unaware) > 0.03


@pytest.mark.slow
def test_slips_are_allowed_for_by_passes_as_in_memory():
    """Nearly certain people answer a dozen choices, and toss a coin in 4 % of the answers."""
    streaming = Streaming(memory=1_000_000, sample=2_000)
    rng = np.random.default_rng(0)
    theta = rng.normal(size=8)
    x = rng.integers(-2, 3, (12, 8)).astype(np.float32)[np.arange(2_000) % 12]
    chance = 0.96 * expit(6 * x @ theta / np.linalg.norm(theta)) + 0.02
    x *= np.where(rng.random(2_000) < chance, 1, -1)[:, None].astype(np.float32)
    source = ArraySource(x)
    assert not fits_in_memory(source, streaming)
    found, expected = fit_source(source, 0.2, streaming=streaming), fit_source(source, 0.2)
    assert found.epsilon == expected.epsilon == 0
    assert found.label_noise == expected.label_noise > 0
    np.testing.assert_allclose(found.theta, expected.theta, rtol=5e-3, atol=5e-3)


@pytest.mark.slow
def test_a_crowd_of_one_planted_pair_is_still_found_by_passes():
    rng = np.random.default_rng(0)
    options = rng.integers(1, 6, (12_000, 8)).astype(np.float32)
    x = options[:6_000] - options[6_000:]
    theta = np.linspace(0.8, 0.1, 8)
    x *= np.where(rng.random(6_000) < expit(x @ theta), 1, -1)[:, None]
    x[:600] = [-4, -4, -3, -2, 0, 0, 0, 0]
    found = fit_source(ArraySource(x), 0.2, streaming=Streaming(memory=3_000_000, sample=2_000))
    assert np.asarray(found.weights)[:600].max() < 0.1
    assert np.asarray(found.weights)[600:].mean() > 0.97
