"""Modules that are found by themselves, so that one more of a kind is one file more, and no table grows.

A module may say its place among the others by `ORDER`, a number; those that say none come last, by name.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any, TypeVar

Value = TypeVar("Value")
Class = TypeVar("Class", bound=type)


def modules_of(package: ModuleType | str) -> list[ModuleType]:
    """The modules and packages that lie directly in `package`, imported, in their order.

    A package may ask for its own while it is being imported, once what they import from it is there.

    **Example:**

    >>> from robust_rlhf_jax.collected import modules_of
    >>> [module.__name__.split(".")[-1] for module in modules_of("robust_rlhf_jax.audit.issues")][:3]
    ['_label', '_off_manifold', '_identical']
    """
    package = importlib.import_module(package) if isinstance(package, str) else package
    names = [entry.name for entry in pkgutil.iter_modules(package.__path__)]
    found = [importlib.import_module(f"{package.__name__}.{name}") for name in names]
    return sorted(found, key=lambda module: (getattr(module, "ORDER", float("inf")), module.__name__))


def modules_with(package: ModuleType | str, *names: str) -> list[ModuleType]:
    """Those of `modules_of` that have all of `names`."""
    return [module for module in modules_of(package) if all(hasattr(module, name) for name in names)]


def functions_of(package: ModuleType | str) -> dict[str, Callable[..., Any]]:
    """The function `name` of each module `_name` in `package`, by that name, in the order of `modules_of`.

    **Raises:** AttributeError for a module without it.
    """
    names = {module.__name__.rpartition("._")[2]: module for module in modules_of(package) if _is_one(module)}
    return {name: getattr(module, name) for name, module in names.items()}


def _is_one(module: ModuleType) -> bool:
    """Whether the file is called after its function: its name begins with an underscore."""
    return module.__name__.rpartition(".")[2].startswith("_")


def by_name(found: Iterable[tuple[str, Value]]) -> dict[str, Value]:
    """What was found under each name.

    **Raises:** ValueError for two things with one name.
    """
    known: dict[str, Value] = {}
    for name, value in found:
        if known.setdefault(name, value) is not value:
            raise ValueError(f"Two entries of a registry have the name {name!r}: rename one.")
    return known


def told_in_help(tables: Mapping[str, Iterable[str]]) -> Callable[[Class], Class]:
    """A decorator: in the docstring, which is the command's help, names of today take the place of their tables."""

    def tell(cls: Class) -> Class:
        for table, names in tables.items():
            cls.__doc__ = (cls.__doc__ or "").replace(table, ", ".join(names))
        return cls

    return tell


def in_order(found: Mapping[str, Value], first: Iterable[str]) -> dict[str, Value]:
    """The entries named in `first`, in that order, then all others by name.

    **Raises:** KeyError for a name in `first` that was not found.
    """
    known = {name: found[name] for name in first}
    return known | {name: found[name] for name in sorted(found.keys() - known.keys())}
