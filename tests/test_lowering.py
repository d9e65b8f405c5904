"""Every method, estimator, attack and oracle lowers for CUDA and TPU, without callbacks and CPU-only calls."""

import functools
import re

import jax
import jax.numpy as jnp
import pytest
from jax import export
from numpy_worlds import numpy_mdp
from representatives import REPRESENTATIVES
from slow_parameters import slow_but_few, slow_where

from robust_rlhf_jax.lab.attacks import ATTACKS
from robust_rlhf_jax.lab.methods import ALGORITHMS, METHODS
from robust_rlhf_jax.moments import filter_mean, robust_covariance, robust_linear_regression
from robust_rlhf_jax.preferences import sample_preferences
from robust_rlhf_jax.rewards import REWARD_ESTIMATORS, fit_differences

KEY = jax.random.key(0)
MDP = numpy_mdp(n_actions=2, dim=3, horizon=2)
X, LABELS = jax.random.normal(KEY, (40, 6)), jnp.where(jnp.arange(40) % 3 > 0, 1.0, -1.0)
EPSILON = jnp.float32(0.1)
# As of jaxlib 0.10: what a module for one platform must not hold for another.
FOREIGN = {"cuda": r"lapack_|ynn|callback", "tpu": r"lapack_|cusolver|cublas|callback"}
platforms = pytest.mark.parametrize("platform", slow_where(lambda name: name == "tpu", FOREIGN))


@functools.cache
def pairs():
    return sample_preferences(KEY, MDP, 40)


def lowered(function, *arguments, platform):
    """The StableHLO of a function of arrays. `jax.export` refuses calls that it cannot promise to keep."""
    return export.export(jitted(function), platforms=[platform])(*arguments).mlir_module()


@functools.cache
def jitted(function):
    """The same jitted function for every platform, so that it is traced once."""
    return jax.jit(function)


def check(platform, function, *arguments):
    """Besides foreign calls, no product may be left at a GPU's default precision: TF32, three digits."""
    module = lowered(function, *arguments, platform=platform)
    calls = re.findall(r"custom_call @(\w+)", module)
    assert not [call for call in calls if re.search(FOREIGN[platform], call)]
    products = [line for line in module.splitlines() if "stablehlo.dot_general" in line]
    assert not [line for line in products if "precision = [HIGHEST, HIGHEST]" not in line and "f32" in line]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*ALGORITHMS, *REPRESENTATIVES])
def test_methods(name):
    def solve(data, epsilon):
        solution = METHODS[name].run(KEY, data, epsilon)
        return solution.theta, solution.value, solution.status

    for platform in FOREIGN:
        check(platform, solve, pairs(), EPSILON)


@platforms
@pytest.mark.parametrize(
    "name", slow_where(lambda name: name not in ("fit_reward", "cdpo"), REWARD_ESTIMATORS)
)
def test_reward_estimators(name, platform):
    check(platform, lambda x, o, e: REWARD_ESTIMATORS[name](x, o, e, radius=2.0).theta, X, LABELS, EPSILON)


@platforms
@pytest.mark.parametrize("name", slow_but_few(ATTACKS, 3))
def test_attacks(name, platform):
    check(platform, lambda data, e: ATTACKS[name](KEY, data, e, MDP).labels, pairs(), EPSILON)


@pytest.mark.slow
@pytest.mark.parametrize("platform", FOREIGN)
def test_estimators(platform):
    check(platform, lambda x, e: filter_mean(x, e).mean, X, EPSILON)
    check(platform, lambda x, e: robust_covariance(x, e).whitener, X, EPSILON)
    check(platform, lambda x, y, e: robust_linear_regression(x, y, e), X, LABELS, EPSILON)
    check(platform, lambda x, o, e: fit_differences(x, o, e).theta, X, LABELS, EPSILON)


def test_a_module_for_another_platform_would_be_seen():
    """The pattern finds LAPACK where it is."""
    assert "lapack_" in lowered(jnp.linalg.eigh, jnp.eye(3), platform="cpu")
