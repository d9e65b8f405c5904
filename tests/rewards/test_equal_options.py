"""Pairs of equal options say nothing of any reward: whatever is found is as if they were absent."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax import Pairs, fit_reward
from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.rewards import RewardFit, Streaming, fit_differences, fit_source, plain_fit
from robust_rlhf_jax.rewards.config import CEILING, among_informative
from robust_rlhf_jax.rewards.streamed.fit import fits_in_memory
from robust_rlhf_jax.sources import ArraySource

from .worlds import N, fitted, normal_pairs, planted

TIMES = 4


def among_equal(x, labels, times=TIMES, seed=5):
    """(x, labels, places) of the pairs among `times` as many, the others of equal options and labels of chance."""
    rng = np.random.default_rng(seed)
    places = np.sort(rng.choice(times * len(x), len(x), replace=False))
    more, drawn = (
        np.zeros((times * len(x), x.shape[1])),
        np.where(rng.random(times * len(x)) < 0.5, 1.0, -1.0),
    )
    more[places], drawn[places] = x, labels
    return more, drawn, places


def same_but_for_equal_pairs(found: RewardFit, alone: RewardFit, places, times):
    np.testing.assert_allclose(found.theta, alone.theta, rtol=2e-3, atol=2e-3)
    for name in ("weights", "undisputed", "suspicion"):
        np.testing.assert_allclose(np.asarray(getattr(found, name))[places], getattr(alone, name), atol=0.02)
    assert np.delete(np.asarray(found.weights), places).min() == 1
    assert np.delete(np.asarray(found.suspicion), places).max() < 0.5
    np.testing.assert_allclose(times * found.epsilon, alone.epsilon, atol=1e-3)
    np.testing.assert_allclose(times * found.interval, alone.interval, atol=5e-3)
    np.testing.assert_allclose(times * found.explanations.needed, alone.explanations.needed, atol=5e-3)
    assert found.status == alone.status


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["clean", "planted"])
def test_equal_pairs_are_as_good_as_absent(kind):
    """A tenth of N pairs, and so a fortieth of 4N, is planted; ε = .025 of them all allows for that."""
    x, labels = normal_pairs(3)
    if kind == "planted":
        x, labels, _ = planted(x, labels, 0.1, 8.0)
    more, drawn, places = among_equal(x, labels)
    alone, found = fitted(x, labels, 0.1), fitted(more, drawn, 0.1 / TIMES)
    same_but_for_equal_pairs(found, alone, places, TIMES)
    assert (float(alone.epsilon) > 0.05) == (kind == "planted")


@pytest.mark.slow
@pytest.mark.parametrize("streamed", [False, True])
def test_options_that_differ_by_rounding_alone_do_not_lengthen_the_reward(streamed):
    """Of 3 pairs 2 differ by 10⁻⁷ of what the others do; their labels are chance."""
    x, labels = normal_pairs(3, 3 * N)
    more, drawn, places = among_equal(x, labels, 3)
    rounding = 1e-7 * np.random.default_rng(7).normal(size=more.shape)
    rounding[places] = 0
    more = more + rounding
    if streamed:
        source = ArraySource(np.float32(drawn[:, None] * more))
        streaming = Streaming(memory=4_000_000, sample=5_000)
        found = fit_source(source, 0.1, streaming=streaming)
        assert not fits_in_memory(source, streaming)
    else:
        found = fitted(more, drawn, 0.1)
    np.testing.assert_allclose(found.theta, fitted(x, labels, 0.1).theta, rtol=0.02, atol=0.02)
    assert np.asarray(found.weights).min() == 1


@pytest.mark.slow
def test_under_jit_and_by_passes_as_well():
    x, labels, _ = planted(*normal_pairs(3, 3 * N), 0.1, 8.0)
    more, drawn, places = among_equal(x, labels)
    z = np.float32(drawn[:, None] * more)
    alone = fitted(x, labels, 0.1)
    ones, level = jnp.ones(len(z), jnp.float32), jnp.float32(0.1 / TIMES)
    same_but_for_equal_pairs(jax.jit(fit_differences)(jnp.asarray(z), ones, level), alone, places, TIMES)
    streaming = Streaming(memory=8_000_000, sample=6_000)
    same_but_for_equal_pairs(
        fit_source(ArraySource(z), 0.1 / TIMES, streaming=streaming), alone, places, TIMES
    )


@pytest.mark.slow
def test_plain_fit_is_that_of_the_others():
    x, labels = normal_pairs(3)
    more, drawn, _ = among_equal(x, labels)
    theta, status = plain_fit(jnp.float32(more), jnp.float32(drawn))
    alone, expected = plain_fit(jnp.float32(x), jnp.float32(labels))
    np.testing.assert_allclose(theta, alone, rtol=1e-3, atol=1e-4)
    assert status == expected


@pytest.mark.slow
def test_the_message_counts_all_pairs():
    x, labels, _ = planted(*normal_pairs(3), 0.1, 8.0)
    more, drawn, _ = among_equal(x, labels)
    assert fit_reward(Pairs.of_differences(np.float32(more), drawn)).message.startswith(
        "100 of 4,000 pairs (2.5 %) are contradicted by the rest and left out;"
    )


@pytest.mark.parametrize(
    ("epsilon", "informative", "expected"),
    [(0.1, 100, 0.1), (0.1, 80, 0.125), (0.1, 10, CEILING), (0.3, 10, 0.3), (0.0, 10, 0.0)],
)
def test_all_corrupt_pairs_may_be_informative_ones(epsilon, informative, expected):
    np.testing.assert_allclose(among_informative(epsilon, 100, informative), expected, rtol=1e-6)


def test_where_all_options_are_equal_nothing_is_separable():
    theta, status = plain_fit(jnp.zeros((64, 3)), jnp.ones(64))
    np.testing.assert_array_equal(theta, 0.0)
    assert status == Status.CONVERGED
