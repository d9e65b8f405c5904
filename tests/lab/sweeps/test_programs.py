import jax
import jax.numpy as jnp
import numpy as np
import pytest
from slow_parameters import slow_but_few

from robust_rlhf_jax import changed_pairs
from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.algorithms import standard
from robust_rlhf_jax.lab.methods import METHODS
from robust_rlhf_jax.lab.sweeps.config import SweepConfig
from robust_rlhf_jax.lab.sweeps.curves import COLOURS, LABELS
from robust_rlhf_jax.lab.sweeps.families import stack_worlds
from robust_rlhf_jax.lab.sweeps.over_devices import gather, lane_counts, place
from robust_rlhf_jax.lab.sweeps.programs import REFERENCE, corrupt_batch, sample_batch, solve_batch
from robust_rlhf_jax.mdp import normalised_gap, policy_value

# The shapes of the small sweep, whose programs are compiled then: given, as there, on the devices.
WORLD = np.array([0, 0, 1, 1])
LANES = np.array([0, 2, 3])
EPSILONS = np.array([0.0, 0.1, 0.25], np.float32)


def sample(keys, worlds, temperature, n_pairs):
    keys, world, counts = place((keys, WORLD, lane_counts(4, 4)), split=True)
    return sample_batch(keys, worlds, world, temperature, n_pairs, counts=counts)


def solve(keys, data, worlds, world, epsilons, algorithm):
    keys, world, epsilons, counts = place((keys, world, epsilons, lane_counts(3, 3)), split=True)
    return solve_batch(keys, data, worlds, world, epsilons, algorithm, counts=counts)


@pytest.fixture(scope="module")
def worlds(tiny_worlds):
    return place(stack_worlds([tiny_worlds["random"], tiny_worlds["chain"]]), split=False)


@pytest.fixture(scope="module")
def keys():
    return jax.random.split(jax.random.key(3), 4)


@pytest.fixture(scope="module")
def sampled(worlds, keys, small_config):
    """Two data sets of 600 pairs per world, and their label entropies."""
    return place(sample(keys, worlds, 1.0, small_config.n_pairs), split=False)


@pytest.fixture(scope="module")
def corrupt(worlds, keys, sampled):
    """corrupt(data sets of three lanes, their ε, attack)."""

    def attacked(lanes, epsilons, attack="push_features"):
        k, d, w, e, counts = place((keys[:3], lanes, WORLD[lanes], epsilons, lane_counts(3, 3)), split=True)
        return corrupt_batch(k, sampled[0], worlds, d, w, e, attack, counts=counts)

    return attacked


@pytest.mark.slow
def test_every_lane_spends_its_own_budget(sampled, corrupt):
    for lanes in (LANES, np.array([1, 1, 1])):
        changed = jax.jit(jax.vmap(changed_pairs))(gather(sampled[0], lanes), corrupt(lanes, EPSILONS))
        np.testing.assert_array_equal(np.sum(changed, axis=1), [0, 60, 150])


@pytest.mark.slow
def test_entropy_rises_with_temperature(worlds, keys, sampled, small_config):
    bits = [
        np.asarray(sample(keys, worlds, temperature, small_config.n_pairs)[1])
        for temperature in (0.01, 1.0, 100.0)
    ]
    np.testing.assert_array_equal(bits[1], sampled[1])
    assert (bits[0] < bits[1] - 0.1).all()
    assert (bits[1] < bits[2]).all()
    np.testing.assert_allclose(bits[2], 1.0, atol=1e-3)


@pytest.mark.slow
def test_one_batch_equals_direct_calls(worlds, keys, corrupt):
    data = corrupt(LANES, EPSILONS)
    gaps, values, statuses, _ = solve(keys[:3], data, worlds, WORLD[LANES], EPSILONS, "standard")
    call = jax.jit(standard)
    for i, world in enumerate(WORLD[LANES]):
        mdp = gather(worlds.mdp, world)
        solution = call(keys[i], gather(data, i), EPSILONS[i])
        np.testing.assert_allclose(gaps[i], normalised_gap(mdp, solution.policy), atol=1e-4)
        np.testing.assert_allclose(values[i], policy_value(mdp, solution.policy), atol=1e-4)
        assert Status(int(statuses[i])) == Status(int(solution.status))


@pytest.mark.slow
def test_epsilon_reaches_the_robust_algorithm(worlds, keys, corrupt):
    """On the same corrupted labels, which no table shows: told ε = 0 it trusts them, told the true ε it does better."""
    lanes, epsilon = np.array([0, 1, 0]), 0.15
    data = corrupt(lanes, np.full(3, epsilon, np.float32), "flip_confident")
    trusting, wary = (
        solve(keys[:3], data, worlds, WORLD[lanes], np.full(3, told, np.float32), "uniform_coverage")[0]
        for told in (0.0, epsilon)
    )
    assert np.mean(wary) < np.mean(trusting) - 0.1, (wary, trusting)


@pytest.mark.parametrize("name", slow_but_few(METHODS, 2, slow=lambda name: name == "condition_number"))
def test_every_algorithm_gives_one_outcome_per_lane(name, worlds, keys, corrupt):
    """Traced, not compiled: the pessimistic ones would take ten seconds each."""
    data = corrupt(LANES, EPSILONS)
    found = jax.eval_shape(lambda d: solve_batch(keys[:3], d, worlds, WORLD[LANES], EPSILONS, name), data)
    assert [(leaf.shape, leaf.dtype) for leaf in found] == [
        ((3,), jnp.float32),
        ((3,), jnp.float32),
        ((3,), jnp.int32),
        ((3,), jnp.int32),
    ]


def test_every_algorithm_can_be_asked_for_and_drawn():
    names = (*METHODS, REFERENCE)
    SweepConfig(algorithms=names).check()
    assert set(COLOURS) == set(LABELS) == set(names)
    assert len(set(COLOURS.values())) == len(set(LABELS.values())) == len(names)
