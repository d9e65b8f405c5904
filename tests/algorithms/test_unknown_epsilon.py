"""An algorithm told the estimated ε is the algorithm at that ε; on clean data it is told 0."""

import inspect
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax import (
    Solution,
    attacks,
    estimate_epsilon,
    preferences_from_options,
    sample_preferences,
)
from robust_rlhf_jax.algorithms import _unknown_epsilon, uniform_coverage, unknown_epsilon
from robust_rlhf_jax.algorithms._unknown_epsilon import MARGIN, MOST
from robust_rlhf_jax.lab.worlds import random_linear_mdp
from robust_rlhf_jax.mdp import normalised_gap
from robust_rlhf_jax.oracles import ExactOracle


@pytest.fixture(scope="module")
def world():
    mdp = random_linear_mdp(jax.random.key(0), n_states=12, n_actions=3, dim=4, horizon=3)
    return mdp, sample_preferences(jax.random.key(1), mdp, 3000)


@pytest.mark.slow
def test_it_is_the_algorithm_at_a_little_more_than_the_estimate(world):
    mdp, clean = world
    data = attacks.push_features(jax.random.key(2), clean, 0.1, mdp)
    oracle, key = ExactOracle(mdp), jax.random.key(3)
    found = unknown_epsilon(key, data, algorithm=uniform_coverage, oracle=oracle)
    epsilon = found.diagnostics["epsilon"]
    assert float(epsilon) == pytest.approx(1.25 * float(estimate_epsilon(data).estimate))
    assert 0.1 <= float(epsilon) < 0.2
    told = uniform_coverage(key, data, epsilon, oracle=oracle)
    np.testing.assert_array_equal(found.theta, told.theta)
    assert set(found.diagnostics) == set(told.diagnostics) | {"epsilon"}
    assert float(normalised_gap(mdp, found.policy)) < 0.05


@pytest.mark.slow
def test_nothing_is_spent_on_clean_data(world):
    mdp, clean = world
    found = unknown_epsilon(jax.random.key(3), clean, oracle=ExactOracle(mdp))
    assert float(found.diagnostics["epsilon"]) == 0.0


@pytest.mark.parametrize("estimate", [0.0, 0.1, 0.9 * MOST / MARGIN, 1.1 * MOST / MARGIN, 0.45])
def test_the_algorithm_is_told_a_little_more_than_the_estimate_and_never_too_much(estimate, monkeypatch):
    """With the groups asked for ε, and all other options handed on."""
    asked, told = [], []

    def estimated(data, *, groups):
        asked.append(groups)
        return SimpleNamespace(estimate=jnp.float32(estimate))

    def algorithm(key, data, epsilon, **options):
        told.append((float(epsilon), options))
        return Solution("policy", "theta", "value", "status", {"rank": 7})

    monkeypatch.setattr(_unknown_epsilon, "estimate_epsilon", estimated)
    rows, groups = np.eye(4), np.zeros(4, int)
    data = preferences_from_options(np.zeros_like(rows), rows, np.ones(4))
    found = unknown_epsilon(jax.random.key(0), data, algorithm=algorithm, groups=groups, oracle="mine")
    expected = pytest.approx(min(MARGIN * estimate, MOST))
    assert asked[0] is groups
    assert told == [(expected, {"oracle": "mine"})]
    assert found.diagnostics == {"rank": 7, "epsilon": expected}
    assert found.policy == "policy"


def test_options_go_by_name():
    kinds = inspect.signature(unknown_epsilon).parameters
    assert kinds["algorithm"].kind is kinds["groups"].kind is inspect.Parameter.KEYWORD_ONLY
