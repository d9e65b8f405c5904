"""Methods of public modules under plain `jax.jit`."""

import importlib
import inspect
import pkgutil

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import robust_rlhf_jax
from robust_rlhf_jax import RewardModel, fit_reward, sample_preferences
from robust_rlhf_jax.lab.worlds import random_linear_mdp
from robust_rlhf_jax.likelihood import confidence_set, ellipsoid
from robust_rlhf_jax.module import Module
from robust_rlhf_jax.moments.regression import prepare_design
from robust_rlhf_jax.oracles import LSVI, RLSVI, ExactOracle, PrimalDual

KEY = jax.random.key(0)


@pytest.fixture(scope="module")
def world():
    mdp = random_linear_mdp(KEY, n_states=5, n_actions=2, dim=3, horizon=2)
    return mdp, sample_preferences(KEY, mdp, 60)


def public_modules() -> dict[str, type]:
    """Every `eqx.Module` that a package exports."""
    packages = [m.name for m in pkgutil.iter_modules(robust_rlhf_jax.__path__) if m.ispkg]
    homes = [robust_rlhf_jax, *(importlib.import_module(f"robust_rlhf_jax.{name}") for name in packages)]
    values = [getattr(home, name) for home in homes for name in getattr(home, "__all__", [])]
    return {v.__name__: v for v in values if inspect.isclass(v) and issubclass(v, eqx.Module)}


def public_methods(cls) -> list[str]:
    return [name for name, _ in inspect.getmembers(cls, inspect.isfunction) if not name.startswith("_")]


@pytest.mark.parametrize("name", [n for n, cls in public_modules().items() if public_methods(cls)])
def test_public_modules_with_methods_have_methods_that_jit_takes(name):
    assert issubclass(public_modules()[name], Module)


ORACLES = {
    "exact": lambda mdp: ExactOracle(mdp),
    "lsvi": lambda mdp: LSVI(jnp.float32(1e-6)),
    "rlsvi": lambda mdp: RLSVI(initial=mdp.initial_distribution),
    "primal_dual": lambda mdp: PrimalDual(steps=4, refresh=2, tolerance=jnp.float32(0.1)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ORACLES)
def test_oracles_with_array_fields_are_jitted(name, world):
    mdp, data = world
    oracle = ORACLES[name](mdp)
    prepared = jax.jit(oracle.prepare)(data, jnp.float32(0.1), key=KEY)
    found, wanted = (
        jax.jit(oracle.solve)(prepared, mdp.theta),
        eqx.filter_jit(oracle.solve)(prepared, mdp.theta),
    )
    np.testing.assert_allclose(found.value, wanted.value, rtol=1e-5)


@pytest.mark.slow
def test_methods_of_data_worlds_and_sets_are_jitted(world):
    mdp, data = world
    x, theta = data.differences(), mdp.theta.reshape(-1)
    likely = confidence_set(x, data.labels, theta, 0.1, radius=5.0)
    round_set = ellipsoid(jnp.eye(6), theta, jnp.float32(1.0), jnp.float32(5.0))
    design = prepare_design(data.features[:, 0, 0], jnp.float32(0.1))
    model = fit_reward(data)
    assert isinstance(model, RewardModel)
    calls = [
        (mdp.rewards, ()),
        (data.differences, ()),
        (data.per_step, (theta,)),
        (data.take, (jnp.arange(3),)),
        (likely.contains, (theta,)),
        (round_set.contains, (theta,)),
        (design.fit, (data.labels,)),
        (model.reward, (x,)),
    ]
    for method, arguments in calls:
        found, wanted = jax.jit(method)(*arguments), method(*arguments)
        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_arrays_stay_arguments_under_filter_jit(world, count_compilations):
    mdp, data = world
    oracles = [RLSVI(initial=mdp.initial_distribution), RLSVI(initial=jnp.full(5, 0.2, jnp.float32))]
    run = eqx.filter_jit(lambda prepare: prepare(data, jnp.float32(0.0), key=KEY).initial)
    run(oracles[0].prepare)
    with count_compilations() as count:
        np.testing.assert_allclose(run(oracles[1].prepare), 0.2, rtol=1e-6)
    assert count.compiled == []
