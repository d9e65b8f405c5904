"""Every algorithm on segments that are shorter than the plan."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from delivery_segments import grid, segments

from robust_rlhf_jax import ask_table, sample_segments
from robust_rlhf_jax.algorithms import (
    ConditionNumberConfig,
    DescentConfig,
    FirstOrderConfig,
    condition_number,
    first_order,
    pessimistic_mle,
    standard,
    uniform_coverage,
)
from robust_rlhf_jax.algorithms.pessimism_objective import reference_features
from robust_rlhf_jax.lab.attacks import push_features
from robust_rlhf_jax.lab.rivals import r3m
from robust_rlhf_jax.mdp import expected_features, policy_value, uniform_policy
from robust_rlhf_jax.oracles import PrimalDual

ALGORITHMS = {
    "standard": standard,
    "uniform_coverage": uniform_coverage,
    "condition_number": partial(
        condition_number, config=ConditionNumberConfig(descent=DescentConfig(gradient="autodiff", steps=5))
    ),
    "first_order": partial(
        first_order,
        oracle=PrimalDual(steps=100),
        config=FirstOrderConfig(
            descent=DescentConfig(gradient="oracle", steps=3, warm_start=True), polish_steps=0
        ),
    ),
    "pessimistic_mle": pessimistic_mle,
    "r3m": r3m,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ALGORITHMS)
def test_plans_have_the_planning_horizon(name):
    solution = ALGORITHMS[name](jax.random.key(2), segments(600), 0.05)
    assert solution.theta.shape == (10, 6)
    np.testing.assert_array_equal(solution.theta, np.broadcast_to(solution.theta[0], (10, 6)))
    assert np.isfinite(solution.value)
    assert np.isfinite(policy_value(grid(), solution.policy))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["uniform_coverage", "condition_number", "first_order"])
def test_segments_off_the_table_are_left_out(name):
    """The answer is that to the data with copies in their place, to the last bit; planned as long and from there."""
    corrupted = push_features(jax.random.key(5), segments(600), 0.05, grid())
    found = ALGORITHMS[name](jax.random.key(2), corrupted, 0.05)
    assert float(found.diagnostics["off_table"]) == pytest.approx(0.05)
    given = ALGORITHMS[name](jax.random.key(2), ask_table(corrupted)[0], 0.05)
    assert float(given.diagnostics["off_table"]) == 0.0
    for a, b in zip(
        jax.tree.leaves((found.policy, found.theta)),
        jax.tree.leaves((given.policy, given.theta)),
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(found.value, given.value)


@pytest.mark.slow
def test_plain_rlhf_finds_the_goal_in_clean_data():
    data = sample_segments(jax.random.key(3), grid(), 3_000, 4, temperature=0.18)
    blind = dataclasses.replace(
        data,
        reward_table=data.reward_table.at[..., 0].set(0.0),
        reward_features=data.reward_features.at[..., 0].set(0.0),
    )
    seeing, unseeing = (
        policy_value(grid(), standard(jax.random.key(4), d, 0.0).policy) for d in (data, blind)
    )
    assert seeing > 2.0
    assert unseeing < seeing - 1.0


@pytest.mark.slow
def test_reference_is_the_mean_step_times_the_plan():
    rows = np.asarray(segments(600).reward_features, np.float64).mean(axis=(0, 1, 2)) * 10
    np.testing.assert_allclose(
        reference_features(segments(600), jnp.float32(0.0)), rows, rtol=1e-4, atol=1e-5
    )


@pytest.mark.slow
def test_a_given_reference_has_the_planning_horizon():
    reference = expected_features(grid(), uniform_policy(grid()))
    config = ConditionNumberConfig(descent=DescentConfig(gradient="autodiff", steps=2))
    found = condition_number(jax.random.key(2), segments(600), 0.0, reference=reference, config=config)
    assert np.isfinite(found.diagnostics["objective"])
    with pytest.raises(ValueError, match=r"of shape .10, 6."):
        condition_number(jax.random.key(2), segments(600), 0.0, reference=reference[:4], config=config)
