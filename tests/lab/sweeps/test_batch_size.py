"""Lanes from memory: what fits, and hardly any left empty in the last batch."""

import dataclasses

import jax
import pytest

from robust_rlhf_jax.lab.sweeps import SweepConfig
from robust_rlhf_jax.lab.sweeps.batch_size import (
    SHARE,
    WORKING_SETS,
    data_bytes,
    lanes_that_fit,
    memory_bytes,
)
from robust_rlhf_jax.lab.sweeps.batches import cells_per_attack, groups
from robust_rlhf_jax.lab.sweeps.families import stack_worlds
from robust_rlhf_jax.lab.sweeps.over_devices import lane_counts
from robust_rlhf_jax.lab.sweeps.programs import sample_batch

CONFIG = SweepConfig(preset="tiny", families=("random", "chain"), seeds=10, n_pairs=600)


@pytest.fixture(scope="module")
def worlds(tiny_worlds):
    return stack_worlds([tiny_worlds["random"], tiny_worlds["chain"]])


@pytest.mark.slow
def test_given_lanes_are_kept(worlds):
    assert lanes_that_fit(dataclasses.replace(CONFIG, lanes=7), worlds, memory=1) == 7


@pytest.mark.slow
def test_bytes_are_those_of_a_data_set(worlds):
    keys = jax.random.split(jax.random.key(0), 2)
    data, _ = jax.eval_shape(
        lambda keys: sample_batch(keys, worlds, jax.numpy.arange(2), 1.0, CONFIG.n_pairs), keys
    )
    bytes_of_two = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(data))
    assert 2 * data_bytes(CONFIG, worlds) == bytes_of_two


@pytest.mark.parametrize("room", [0, 1, 2, 5.5, 9, 13, 1e9])
def test_batches_fit_and_the_last_lacks_few(worlds, room):
    one = data_bytes(CONFIG, worlds)
    clean = one * 20
    lanes = lanes_that_fit(CONFIG, worlds, memory=int((clean + room * one * (1 + WORKING_SETS)) / SHARE) + 2)
    assert 1 <= lanes <= max(1, min(room, 24))
    n = cells_per_attack(CONFIG)
    batches = -(-n // lanes)
    assert batches * lanes - n < batches
    sizes = [len(group.lanes.seed) for group in groups(CONFIG, lanes) if group.attack == "push_features"]
    assert sum(sizes) == n == 80
    assert set(sizes[:-1]) == {lanes}


def test_more_memory_never_means_smaller_batches_on_this_machine(worlds):
    assert memory_bytes() > 1 << 28
    assert lanes_that_fit(CONFIG, worlds) == 20  # 80 cells in the four batches that 24 at most make


def test_counts_of_one_device():
    assert lane_counts(3, 8).tolist() == [3]
