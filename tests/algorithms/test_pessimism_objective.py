"""The pessimistic objective: its value, its gradients, what it calls and what it reports."""

import dataclasses
import inspect
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax import Status, sample_preferences
from robust_rlhf_jax.algorithms import Smoothing
from robust_rlhf_jax.algorithms.descent import DescentProblem, descend
from robust_rlhf_jax.algorithms.pessimism import resolve_reference
from robust_rlhf_jax.algorithms.pessimism_objective import (
    PessimismObjective,
    flat_features,
    reference_features,
)
from robust_rlhf_jax.kernels.smoothing import smoothed_gradient
from robust_rlhf_jax.oracles import ExactOracle

from .known_oracles import REFERENCE, Bowl, Moody, bowl_objective
from .test_descent import Box


def boxed(mdp, oracle, gradient, smoothing):
    """(objective, problem): V(θ) over the unit box, from its centre."""
    k = mdp.horizon * mdp.dim
    objective = PessimismObjective(oracle, mdp, jnp.zeros(k), smoothing, mdp.horizon, False, gradient)
    box = Box(jnp.zeros(k), jnp.asarray(1.0))
    return objective, DescentProblem(objective, box, box.centre, jnp.asarray(1.0))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gradient", "antithetic", "calls"),
    [("zero_order", True, 6), ("zero_order", False, 7), ("autodiff", True, 1)],
)
def test_oracle_calls_are_counted(gradient, antithetic, calls, small_mdp64):
    smoothing = Smoothing(n_directions=6, antithetic=antithetic)
    objective, problem = boxed(small_mdp64, ExactOracle(small_mdp64), gradient, smoothing)
    assert objective.calls == calls
    assert descend(problem, key=jax.random.key(0), steps=3).calls == 3 * calls


THETA = jnp.asarray([0.5, -1.0, 0.25, 2.0])


@pytest.mark.slow
def test_the_objective_is_the_value_less_the_references(x64):
    """By each gradient: the derivative of V̂, the oracle's own subgradient, or that of Gaussian smoothing."""
    key, value = jax.random.key(0), np.sum(np.asarray(THETA) ** 2) + np.sum(THETA)
    smoothed = smoothed_gradient(
        lambda t: jnp.sum(t**2) + jnp.sum(t), THETA, key,
        smoothing_std=jnp.asarray(0.3), n_directions=6, directions="orthogonal",
    )  # fmt: skip
    slopes = {"autodiff": 2 * THETA + 1, "oracle": 6 * THETA, "zero_order": smoothed.gradient}
    for gradient, slope in slopes.items():
        found = bowl_objective(gradient).evaluate(THETA, None, key=key)
        np.testing.assert_allclose(found.value, value - REFERENCE @ THETA, rtol=1e-6)
        np.testing.assert_allclose(found.gradient, slope - REFERENCE, rtol=1e-6)
        assert found.status == Status.CONVERGED
        assert found.memory is None


@pytest.mark.slow
def test_a_derivative_needs_no_subgradient_of_the_oracle():
    class Silent(Bowl):
        def solve(self, prepared, theta):
            return dataclasses.replace(Bowl.solve(self, prepared, theta), subgradient=None)

    found = bowl_objective("autodiff", Silent(jnp.asarray(2.0))).evaluate(THETA, None, key=None)
    np.testing.assert_allclose(found.gradient, 2 * THETA + 1 - REFERENCE, rtol=1e-6)


@pytest.mark.slow
def test_a_smoothed_gradient_over_a_cliff_is_nonfinite_though_the_value_is_not():
    oracle = Bowl(jnp.asarray(2.0), THETA[0])
    found = bowl_objective("zero_order", oracle).evaluate(THETA, None, key=jax.random.key(0))
    assert np.isfinite(found.value)
    assert not np.isfinite(found.gradient).all()
    assert found.status == Status.NONFINITE


def test_a_warm_oracle_goes_on_from_its_last_answer():
    objective = bowl_objective("oracle", warm=True)
    assert objective.memory == 0
    assert objective.evaluate(THETA, jnp.asarray(4), key=None).memory == 5
    assert bowl_objective("oracle").memory is None
    with pytest.raises(ValueError, match="ExactOracle cannot start warm"):
        _ = bowl_objective("oracle", ExactOracle(None), warm=True).memory


@pytest.mark.slow
def test_a_shared_reward_counts_every_step():
    """φ(τ) is summed over steps, and the oracle sees θ once a step: V̂ = ½·2·3‖θ‖² + 3Σθ for three."""
    features = np.arange(6.0, dtype=np.float32).reshape(3, 2)
    np.testing.assert_array_equal(flat_features(features, True), [6.0, 9.0])
    np.testing.assert_array_equal(flat_features(features, False), np.arange(6.0))
    theta = jnp.asarray([0.5, -1.0])
    arguments = (Bowl(jnp.asarray(2.0)), jnp.zeros(()), jnp.zeros(2), Smoothing(), 3, True, "autodiff")
    found = PessimismObjective(*arguments).evaluate(theta, None, key=None)
    np.testing.assert_allclose(found.value, 3 * 1.25 - 3 * 0.5, rtol=1e-6)
    np.testing.assert_allclose(found.gradient, 3 * (2 * theta + 1), rtol=1e-6)


def test_default_smoothing_hardly_moves_the_value():
    """By μL√k at most: a tenth of 2L√k, what V̂ may range over in the ball of radius √k."""
    assert 0 < Smoothing().std < 0.1 * 2


@pytest.mark.slow
def test_the_reference_is_the_mean_of_what_was_recorded(make_mdp):
    """A row per step, their sum where θ is shared, and of pooled data the mean step times the plan's."""
    data = sample_preferences(jax.random.key(0), make_mdp(), 400)
    mean = np.mean(np.asarray(data.features, np.float64), axis=(0, 1))
    kinds = {
        "own": (data, mean.reshape(-1)),
        "shared": (dataclasses.replace(data, stationary=True), mean.sum(axis=0)),
        "pooled": (
            dataclasses.replace(data, stationary=True, planning_horizon=7),
            7 * mean.mean(axis=0),
        ),
    }
    for kind, expected in kinds.values():
        np.testing.assert_allclose(reference_features(kind, jnp.float32(0.0)), expected, rtol=1e-4)


def test_a_reference_is_flat_in_the_datas_precision():
    reference = np.arange(4.0).reshape(2, 2)
    data = SimpleNamespace(features=jnp.zeros(1), stationary=False)
    np.testing.assert_array_equal(resolve_reference(reference, data, None), [0.0, 1.0, 2.0, 3.0])
    data.stationary = True
    np.testing.assert_array_equal(resolve_reference(reference, data, None), [2.0, 4.0])


def test_the_key_of_an_objective_goes_by_name():
    parameters = inspect.signature(PessimismObjective.evaluate).parameters
    assert parameters["key"].kind is inspect.Parameter.KEYWORD_ONLY


@pytest.mark.slow
@pytest.mark.parametrize("gradient", ["zero_order", "autodiff", "oracle"])
def test_every_gradient_reports_a_nonfinite_oracle(gradient, small_mdp64):
    for cliff, status in ((-np.inf, Status.CONVERGED), (np.inf, Status.NONFINITE)):
        oracle = Moody(ExactOracle(small_mdp64), jnp.asarray(cliff))
        _, problem = boxed(small_mdp64, oracle, gradient, Smoothing(n_directions=4))
        found = descend(problem, key=jax.random.key(0), steps=3)
        assert found.status == status
        assert np.isfinite(found.theta).all()
