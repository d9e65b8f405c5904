"""Pairs drawn by their weights, without TRL."""

from types import SimpleNamespace

import numpy as np
import pytest

from robust_rlhf_jax.heads.weighted_sampling import ByWeight, drawn


@pytest.mark.parametrize("seed", range(20))
def test_every_pair_stands_there_as_often_as_its_weight_says(seed):
    rng = np.random.default_rng(seed)
    weights = rng.random(50) * (rng.random(50) > 0.3)
    weights[rng.integers(0, 2) :: 2] *= seed % 2
    weights[5] = 0.7
    counts = np.bincount(drawn(rng, weights.astype(np.float32)), minlength=50)
    expected = 50 * weights / weights.sum()
    assert counts.sum() == 50
    assert (np.abs(counts - expected) < 1 + 1e-5).all()
    assert (counts[weights == 0] == 0).all()


def test_equal_weights_give_each_pair_once():
    order = drawn(np.random.default_rng(0), np.full(1000, 0.3, np.float32))
    assert sorted(order.tolist()) == list(range(1000))
    assert order.tolist() != sorted(order.tolist())


def test_epochs_differ_and_use_the_weights_of_their_beginning():
    callback = SimpleNamespace(weights=None)
    sampler = ByWeight(callback, 30, seed=1)
    first, second = list(sampler), list(sampler)
    assert sorted(first) == sorted(second) == list(range(30))
    assert first != second
    sampler.set_epoch(0)
    assert list(sampler) == first
    callback.weights = np.repeat([1.0, 0.0], 15)
    assert len(sampler) == len(third := list(sampler)) == 30
    assert max(third) < 15
