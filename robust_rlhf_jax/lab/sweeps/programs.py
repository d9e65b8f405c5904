"""The compiled programs of a sweep: sample, corrupt, and one per algorithm, each batched over cells."""

from functools import partial

import jax
import jax.numpy as jnp

from robust_rlhf_jax.lab.attacks import ATTACKS
from robust_rlhf_jax.lab.methods import METHODS
from robust_rlhf_jax.mdp import normalised_gap, policy_value
from robust_rlhf_jax.preferences import label_entropy, sample_preferences, sample_segments

from .over_devices import gather, over_lanes

# Plain RLHF on the data before the attack: what a clean file would have given.
REFERENCE = "clean_reference"


def sample_world(key, mdp, behaviour, n_pairs, temperature=1.0, segment=None):
    """Pairs of episodes of a world, or of segments of their first steps' behaviour from anywhere."""
    both = (behaviour[:segment],) * 2
    if segment is None:
        return sample_preferences(key, mdp, n_pairs, behaviour=both, temperature=temperature)
    return sample_segments(key, mdp, n_pairs, segment, behaviour=both, temperature=temperature)


@partial(jax.jit, static_argnames=("n_pairs", "segment"))
def sample_batch(keys, worlds, world, temperature, n_pairs, counts=None, segment=None):
    """One data set per lane, and its label entropy in bits."""

    def lane(shared, key, w):
        worlds, temperature = shared
        mdp, behaviour = gather(worlds, w)
        data = sample_world(key, mdp, behaviour, n_pairs, temperature, segment)
        return data, label_entropy(data, mdp.theta, temperature)

    return over_lanes(lane, (worlds, temperature), (keys, world), counts)


@jax.jit
def clean_batch(datasets, dataset):
    """The data of every lane before any attack."""
    return gather(datasets, dataset)


@partial(jax.jit, static_argnames="attack")
def corrupt_batch(keys, datasets, worlds, dataset, world, epsilons, attack, counts=None):
    """The attacked data of every lane."""

    def lane(shared, key, d, w, epsilon):
        datasets, worlds = shared
        return ATTACKS[attack](key, gather(datasets, d), epsilon, gather(worlds.mdp, w))

    return over_lanes(lane, (datasets, worlds), (keys, dataset, world, epsilons), counts)


@partial(jax.jit, static_argnames="algorithm")
def solve_batch(keys, data, worlds, world, epsilons, algorithm, counts=None):
    """(normalised gap, V^π, status, oracle calls) of every lane."""

    def lane(worlds, key, d, w, epsilon):
        mdp = gather(worlds.mdp, w)
        solution = METHODS[algorithm].run(key, d, epsilon)
        calls = solution.diagnostics.get("oracle_calls", jnp.ones((), jnp.int32))
        gap, value = normalised_gap(mdp, solution.policy), policy_value(mdp, solution.policy)
        return gap, value, solution.status, calls

    return over_lanes(lane, worlds, (keys, data, world, epsilons), counts)
