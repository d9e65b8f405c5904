"""The paper's algorithms leave out what the table contradicts, and nothing else."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax import changed_pairs, sample_preferences
from robust_rlhf_jax.algorithms import (
    ConditionNumberConfig,
    DescentConfig,
    FirstOrderConfig,
    Smoothing,
    UniformCoverageConfig,
    condition_number,
    first_order,
    pessimistic_mle,
    standard,
    uniform_coverage,
)
from robust_rlhf_jax.lab.attacks import push_features
from robust_rlhf_jax.mdp import normalised_gap
from robust_rlhf_jax.oracles import PrimalDual

DESCENT = DescentConfig(steps=10, smoothing=Smoothing(n_directions=4, chunk=4))
GAME = FirstOrderConfig(
    descent=DescentConfig(gradient="oracle", steps=4, warm_start=True),
    warm_steps=10,
    polish_steps=2,
    polish_warm_steps=20,
)
OURS = {
    "uniform_coverage": (uniform_coverage, UniformCoverageConfig()),
    "condition_number": (condition_number, ConditionNumberConfig(descent=DESCENT)),
    "first_order": (partial(first_order, oracle=PrimalDual(steps=200, refresh=20)), GAME),
}
names = pytest.mark.parametrize("name", OURS)
EPSILON = 0.1


@pytest.fixture(scope="module")
def world(make_mdp):
    """(mdp, clean data, the same with a tenth of planted features)."""
    mdp = make_mdp(n_states=12, dim=3, horizon=2)
    clean = sample_preferences(jax.random.key(0), mdp, 2000)
    return mdp, clean, jax.jit(push_features)(jax.random.key(1), clean, EPSILON, mdp)


def solve(name, data, epsilon=EPSILON, **change):
    algorithm, config = OURS[name]
    return algorithm(jax.random.key(2), data, epsilon, config=dataclasses.replace(config, **change))


@pytest.mark.slow
@names
def test_planted_features_do_no_harm(name, world):
    mdp, clean, corrupted = world
    before, after = (solve(name, data) for data in (clean, corrupted))
    assert float(before.diagnostics["off_table"]) == 0.0
    assert float(after.diagnostics["off_table"]) == pytest.approx(EPSILON)
    gaps = [float(normalised_gap(mdp, solution.policy)) for solution in (before, after)]
    assert abs(gaps[1] - gaps[0]) < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("name", OURS)
def test_nothing_off_the_table_changes_no_bit(name, world):
    _, clean, _ = world
    answers = [jax.tree.leaves(solve(name, clean, ask_table=ask)) for ask in (True, False)]
    for asked, trusting in zip(*answers, strict=True):
        assert np.asarray(asked).tobytes() == np.asarray(trusting).tobytes()


@pytest.mark.slow
def test_the_filter_alone_is_told_and_does_not_use_it(world):
    _, _, corrupted = world
    trusting, asked = (solve("uniform_coverage", corrupted, ask_table=ask) for ask in (False, True))
    assert trusting.diagnostics["off_table"] == asked.diagnostics["off_table"]
    assert not np.array_equal(trusting.theta, asked.theta)


@pytest.mark.slow
def test_a_placeholder_of_a_table_is_reported_and_not_heeded(world):
    _, clean, _ = world
    placeholder = dataclasses.replace(clean, state_features=jnp.zeros_like(clean.state_features))
    trusting, asked = (solve("uniform_coverage", placeholder, ask_table=ask) for ask in (False, True))
    assert float(asked.diagnostics["off_table"]) == 1.0
    np.testing.assert_array_equal(asked.theta, trusting.theta)


@pytest.mark.slow
def test_batches_ask_lane_by_lane(world):
    mdp, clean, corrupted = world
    both = jax.tree.map(lambda *leaves: jnp.stack(leaves), clean, corrupted)
    batch = jax.vmap(lambda data: solve("uniform_coverage", data))(both)
    np.testing.assert_allclose(batch.diagnostics["off_table"], [0.0, EPSILON], rtol=1e-6)
    gaps = jax.vmap(lambda policy: normalised_gap(mdp, policy))(batch.policy)
    assert abs(gaps[1] - gaps[0]) < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("baseline", [standard, pessimistic_mle])
def test_baselines_trust_their_data(baseline, world):
    _, clean, corrupted = world
    assert int(jnp.sum(changed_pairs(clean, corrupted))) == 200
    assert (
        "off_table"
        not in jax.eval_shape(lambda d: baseline(jax.random.key(2), d, 0.1), corrupted).diagnostics
    )
