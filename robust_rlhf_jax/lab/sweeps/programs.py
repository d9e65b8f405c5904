"""The compiled programs of a sweep: sample, corrupt, and one per algorithm, each batched over cells."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from robust_rlhf_jax.lab.attacks import ATTACKS
from robust_rlhf_jax.lab.methods import METHODS
from robust_rlhf_jax.mdp import LinearMDP, normalised_gap, policy_value
from robust_rlhf_jax.preferences import PreferenceData, label_entropy, sample_preferences, sample_segments

from .families import World
from .over_devices import gather, over_lanes
from .quick_compilation import quickly_compiled

# Plain RLHF on the data before the attack: what a clean file would have given.
REFERENCE = "clean_reference"


def sample_world(
    key: PRNGKeyArray,
    mdp: LinearMDP,
    behaviour: Any,
    n_pairs: int,
    temperature: float | Float[Array, ""] = 1.0,
    segment: int | None = None,
):
    """Pairs of episodes of a world, or of segments of their first steps' behaviour from anywhere."""
    both = (behaviour[:segment],) * 2
    if segment is None:
        return sample_preferences(key, mdp, n_pairs, behaviour=both, temperature=temperature)
    return sample_segments(key, mdp, n_pairs, segment, behaviour=both, temperature=temperature)


@quickly_compiled(static_argnames=("n_pairs", "segment"))
def sample_batch(
    keys: PRNGKeyArray,
    worlds: World,
    world: Int[Array, " L"],
    temperature: float | Float[Array, ""],
    n_pairs: int,
    counts: Int[Array, " devices"] | None = None,
    segment: int | None = None,
):
    """One data set per lane, and its label entropy in bits."""

    def lane(shared: tuple[World, Array], key: PRNGKeyArray, w: Int[Array, ""]):
        worlds, temperature = shared
        mdp, behaviour = gather(worlds, w)
        data = sample_world(key, mdp, behaviour, n_pairs, temperature, segment)
        return data, label_entropy(data, mdp.theta, temperature)

    return over_lanes(lane, (worlds, temperature), (keys, world), counts)


@quickly_compiled()
def clean_batch(datasets: PreferenceData, dataset: Int[Array, " L"] | Int[np.ndarray, " L"]):
    """The data of every lane before any attack."""
    return gather(datasets, dataset)


@quickly_compiled(static_argnames="attack")
def corrupt_batch(
    keys: PRNGKeyArray,
    datasets: PreferenceData,
    worlds: World,
    dataset: Int[Array, " L"],
    world: Int[Array, " L"],
    epsilons: Float[Array, " L"],
    attack: str,
    counts: Int[Array, " devices"] | None = None,
):
    """The attacked data of every lane."""

    def lane(
        shared: tuple[PreferenceData, World],
        key: PRNGKeyArray,
        d: Int[Array, ""],
        w: Int[Array, ""],
        epsilon: Float[Array, ""],
    ):
        datasets, worlds = shared
        return ATTACKS[attack](key, gather(datasets, d), epsilon, gather(worlds.mdp, w))

    return over_lanes(lane, (datasets, worlds), (keys, dataset, world, epsilons), counts)


@quickly_compiled(static_argnames="algorithm")
def solve_batch(
    keys: PRNGKeyArray,
    data: PreferenceData,
    worlds: World,
    world: Int[Array, " L"],
    epsilons: Float[Array, " L"],
    algorithm: str,
    counts: Int[Array, " devices"] | None = None,
):
    """(normalised gap, V^π, status, oracle calls) of every lane."""

    def lane(
        worlds: World, key: PRNGKeyArray, d: PreferenceData, w: Int[Array, ""], epsilon: Float[Array, ""]
    ):
        mdp = gather(worlds.mdp, w)
        solution = METHODS[algorithm].run(key, d, epsilon)
        calls = solution.diagnostics.get("oracle_calls", jnp.ones((), jnp.int32))
        gap, value = normalised_gap(mdp, solution.policy), policy_value(mdp, solution.policy)
        return gap, value, solution.status, calls

    return over_lanes(lane, worlds, (keys, data, world, epsilons), counts)
