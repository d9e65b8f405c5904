"""A cell's key depends on its names alone."""

import dataclasses

import jax
import numpy as np

from robust_rlhf_jax.lab.sweeps._named_key import named_key
from robust_rlhf_jax.lab.sweeps.keys import cell_keys


def bits(keys):
    return np.asarray(jax.random.key_data(keys))


def test_a_cell_draws_the_same_in_another_sweep(small_config):
    other = dataclasses.replace(small_config, families=("gridworld", "chain", "random"), seeds=9, lanes=1)
    here = cell_keys(small_config, "data", np.array([0, 1]), np.array([1, 0]))
    there = cell_keys(other, "data", np.array([2, 1]), np.array([1, 0]))
    np.testing.assert_array_equal(bits(here), bits(there))


def test_purpose_family_and_seed_all_count(small_config):
    family, seed = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    keys = [
        bits(cell_keys(small_config, purpose, family, seed)) for purpose in ("data", "attack a", "solve b")
    ]
    assert len({tuple(key) for key in np.concatenate(keys)}) == 12
    other = bits(cell_keys(dataclasses.replace(small_config, seed=1), "data", family, seed))
    assert (other != keys[0]).any(axis=1).all()


def test_names_have_keys_of_their_own():
    root = jax.random.key(0)
    assert (bits(named_key(root, "a")) != bits(named_key(root, "b"))).any()
    np.testing.assert_array_equal(bits(named_key(root, "a")), bits(named_key(root, "a")))
