"""Registries that fill themselves: the modules of a package, and what was found in them in a settled order."""

import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import TypeVar

Value = TypeVar("Value")


def modules_of(package: ModuleType | str) -> list[ModuleType]:
    """The modules and packages that lie directly in `package`, imported, by name.

    A package may ask for its own while it is being imported, once what they import from it is there.
    """
    package = importlib.import_module(package) if isinstance(package, str) else package
    names = sorted(found.name for found in pkgutil.iter_modules(package.__path__))
    return [importlib.import_module(f"{package.__name__}.{name}") for name in names]


def by_name(found: Iterable[tuple[str, Value]]) -> dict[str, Value]:
    """What was found under each name.

    **Raises:** ValueError for two things with one name.
    """
    known: dict[str, Value] = {}
    for name, value in found:
        if known.setdefault(name, value) is not value:
            raise ValueError(f"Two entries of a registry have the name {name!r}: rename one.")
    return known


def in_order(found: Mapping[str, Value], first: Iterable[str]) -> dict[str, Value]:
    """The entries named in `first`, in that order, then all others by name.

    **Raises:** KeyError for a name in `first` that was not found.
    """
    known = {name: found[name] for name in first}
    return known | {name: found[name] for name in sorted(found.keys() - known.keys())}
