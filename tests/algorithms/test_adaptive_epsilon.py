"""An algorithm told the chosen ε is the algorithm at that ε."""

import jax
import numpy as np
import pytest

from robust_rlhf_jax import (
    ExactOracle,
    attacks,
    normalised_gap,
    random_linear_mdp,
    sample_preferences,
    uniform_coverage,
    unknown_epsilon,
)


def test_unknown_epsilon_is_the_algorithm_at_the_chosen_one():
    mdp = random_linear_mdp(jax.random.key(0), n_states=12, n_actions=3, dim=4, horizon=3)
    data = attacks.push_features(
        jax.random.key(2), sample_preferences(jax.random.key(1), mdp, 3000), 0.1, mdp
    )
    oracle, key = ExactOracle(mdp), jax.random.key(3)
    found = unknown_epsilon(key, data, algorithm=uniform_coverage, grid=(0.0, 0.1, 0.2), oracle=oracle)
    assert float(found.diagnostics["epsilon"]) == pytest.approx(0.1)
    assert int(found.diagnostics["epsilon_index"]) == 1
    told = uniform_coverage(key, data, found.diagnostics["epsilon"], oracle=oracle)
    np.testing.assert_array_equal(found.theta, told.theta)
    assert set(found.diagnostics) == set(told.diagnostics) | {"epsilon", "epsilon_index"}
    assert float(normalised_gap(mdp, found.policy)) < 0.05
