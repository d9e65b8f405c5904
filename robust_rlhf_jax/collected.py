"""Modules that are found by themselves, so that one more of a kind is one file more, and no table grows.

A module may say its place among the others by `ORDER`, a number; those that say none come last, by name.
"""

import importlib
import pkgutil
from collections.abc import Callable
from types import ModuleType
from typing import Any


def modules_of(package: str) -> tuple[ModuleType, ...]:
    """The modules that lie in `package`, in their order; also while that one is being imported.

    **Example:**

    >>> from robust_rlhf_jax.collected import modules_of
    >>> [module.__name__.split(".")[-1] for module in modules_of("robust_rlhf_jax.audit.issues")][:3]
    ['_label', '_off_manifold', '_identical']
    """
    path = importlib.import_module(package).__path__
    found = [importlib.import_module(f"{package}.{entry.name}") for entry in pkgutil.iter_modules(path)]
    return tuple(sorted(found, key=lambda module: (getattr(module, "ORDER", float("inf")), module.__name__)))


def modules_with(package: str, *names: str) -> tuple[ModuleType, ...]:
    """Those of `modules_of` that have all of `names`."""
    return tuple(module for module in modules_of(package) if all(hasattr(module, name) for name in names))


def functions_of(package: str) -> dict[str, Callable[..., Any]]:
    """Of each module `_name` in `package` its function `name`, by that name, in the order of `modules_of`.

    **Raises:** AttributeError for a module without it.
    """
    names = {module.__name__.rpartition("._")[2]: module for module in modules_of(package) if _is_one(module)}
    return {name: getattr(module, name) for name, module in names.items()}


def _is_one(module: ModuleType) -> bool:
    """Whether the file is called after its function: its name begins with an underscore."""
    return module.__name__.rpartition(".")[2].startswith("_")
