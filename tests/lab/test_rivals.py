"""The function behind all rivals: any reward estimator, any oracle."""

import jax
import numpy as np
import pytest

from robust_rlhf_jax import Status, sample_preferences
from robust_rlhf_jax.algorithms import standard
from robust_rlhf_jax.lab.rivals import RivalConfig, fit_then_plan, sever
from robust_rlhf_jax.oracles import RLSVI, ExactOracle
from robust_rlhf_jax.rewards.protocol import RewardEstimate


@pytest.fixture(scope="module")
def world(make_mdp):
    mdp = make_mdp()
    return mdp, sample_preferences(jax.random.key(0), mdp, 300), jax.random.key(1)


@pytest.mark.slow
def test_with_maximum_likelihood_it_is_plain_rlhf(world):
    _, data, key = world
    found, plain = fit_then_plan(key, data, 0.1, estimator="maximum_likelihood"), standard(key, data, 0.1)
    np.testing.assert_allclose(found.theta, plain.theta, atol=1e-6)
    np.testing.assert_array_equal(found.policy, plain.policy)
    np.testing.assert_allclose(found.diagnostics["removed_mass"], 0.0, atol=1e-6)


@pytest.mark.slow
def test_any_function_any_oracle_and_the_worst_status(world):
    mdp, data, key = world

    def halved(x, labels, epsilon, *, radius):
        """Not an estimate: shows what it is given."""
        return RewardEstimate(x[0] * radius * epsilon, 0.5 + 0.0 * labels, labels, Status.MAX_STEPS.array())

    oracle = ExactOracle(mdp)
    found = fit_then_plan(key, data, 0.25, estimator=halved, oracle=oracle, config=RivalConfig(radius=2.0))
    np.testing.assert_allclose(found.theta, data.per_step(0.5 * data.differences()[0]), rtol=1e-6)
    np.testing.assert_allclose(found.value, oracle.solve(mdp, found.theta).value, rtol=1e-6)
    np.testing.assert_allclose(found.diagnostics["removed_mass"], 0.5)
    assert found.status == found.diagnostics["reward_status"] == Status.MAX_STEPS


@pytest.mark.slow
def test_a_rival_with_a_robust_planner(world):
    """Traced only: both stages have tests of their own."""
    _, data, key = world
    found = jax.eval_shape(lambda d: sever(key, d, 0.1, oracle=RLSVI()), data)
    assert found.policy.shape == (data.horizon, *data.state_features.shape[:2])


def test_unknown_estimator_is_named(world):
    _, data, key = world
    with pytest.raises(ValueError, match=r"estimator='sevre' is unknown: it is one of .*sever"):
        fit_then_plan(key, data, 0.1, estimator="sevre")
