"""What `import robust_rlhf_jax` offers, and what it must not do."""

import importlib
import inspect
import os
import pkgutil
import subprocess
import sys

import pytest
from slow_parameters import slow_but_few

import robust_rlhf_jax

PROMISED = [
    "fit_reward",
    "robust_policy",
    "load",
    "save",
    "load_rail_choices",
    "sample_preferences",
    "attacks.flip_confident",
    "attacks.push_features",
    "algorithms.standard",
    "algorithms.uniform_coverage",
    "rivals.sever",
    "moments.robust_mean",
    "moments.robust_covariance",
    "likelihood.trimmed_mle",
    "worlds.random_linear_mdp",
    "worlds.gridworld",
    "worlds.optimal_policy",
    "oracles.LSVI",
]
MODULES = [
    name
    for _, name, _ in pkgutil.walk_packages(robust_rlhf_jax.__path__, "robust_rlhf_jax.")
    if not name.endswith("__main__")
]


@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_not_shadowed_by_what_it_exports(name):
    assert importlib.import_module(name) is sys.modules[name]
    found = robust_rlhf_jax
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    assert inspect.ismodule(found), f"{name} gives a {type(found).__name__}"


def test_the_front_is_short():
    assert len(robust_rlhf_jax.__all__) <= 36


@pytest.mark.parametrize("name", PROMISED)
def test_promised_names_are_callable_from_the_top(name):
    found = robust_rlhf_jax
    for part in name.split("."):
        found = getattr(found, part)
    assert callable(found)
    assert name.split(".")[0] in robust_rlhf_jax.__all__


def test_all_is_sorted_complete_and_unique():
    names = robust_rlhf_jax.__all__
    assert len(set(names)) == len(names)
    # Constants, classes, functions: the order that ruff (RUF022) keeps.
    order = lambda n: (0 if n.isupper() else 1 if n[0].isupper() else 2, n)  # noqa: E731
    assert names == sorted(names, key=order)
    public = {
        name
        for name, value in vars(robust_rlhf_jax).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert public == {name for name in names if not inspect.ismodule(getattr(robust_rlhf_jax, name))}
    scope = {}
    exec("from robust_rlhf_jax import *", scope)
    assert set(names) <= set(scope)


@pytest.mark.parametrize("name", robust_rlhf_jax.__all__)
def test_every_public_name_says_what_it_is(name):
    value = getattr(robust_rlhf_jax, name)
    assert inspect.getdoc(value), f"{name} has no docstring"


def test_every_attack_is_registered_under_its_name():
    registry = robust_rlhf_jax.attacks.ATTACKS
    assert {name: attack.__name__ for name, attack in registry.items()} == {name: name for name in registry}
    assert {"flip_confident", "push_features", "corrupt_transitions"} <= set(registry)
    exported = robust_rlhf_jax.attacks.__all__
    assert set(registry) <= set(exported)
    assert all(getattr(robust_rlhf_jax.attacks, name) is attack for name, attack in registry.items())
    assert len(set(exported)) == len(exported)


@pytest.mark.slow
def test_import_is_light_and_leaves_jax_as_it_was():
    code = """
import sys, jax
before = dict(jax.config.values)
import robust_rlhf_jax
changed = {k for k, v in jax.config.values.items() if before.get(k, v) != v}
heavy = {"matplotlib", "pyarrow", "tyro", "rich", "sklearn", "scipy.optimize", "pandas", "torch"}
heavy.add("robust_rlhf_jax.lab")
print(sorted(heavy & set(sys.modules)), sorted(changed), jax.numpy.zeros(()).dtype)
"""
    environment = {k: v for k, v in os.environ.items() if k != "JAX_ENABLE_X64"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[] [] float32"


@pytest.mark.slow
@pytest.mark.parametrize("name", slow_but_few(["attacks", "diagnostics", "rivals", "worlds"], 1))
def test_the_laboratory_is_imported_when_it_is_asked_for(name):
    code = f"import robust_rlhf_jax as r; print(r.{name} is __import__('sys').modules['robust_rlhf_jax.lab.{name}'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "True", done.stderr
    assert name in dir(robust_rlhf_jax)


def test_a_name_that_is_not_there_is_an_attribute_error():
    assert not hasattr(robust_rlhf_jax, "attack")


def test_version_is_the_packages():
    from importlib.metadata import version

    assert version("robust-rlhf-jax") == robust_rlhf_jax.__version__
