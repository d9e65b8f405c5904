"""In what files rows come: one module for each container, found by itself (`Container` in `io/table.py`).

Modules without `NAME`, `SUFFIXES` and `read` are what several of them share.
"""

from types import ModuleType
from typing import Any

from robust_rlhf_jax.collected import modules_with

# Their order is that in which sentences list the suffixes, and in which folders are tried.
CONTAINERS: list[ModuleType] = modules_with(__name__, "NAME", "SUFFIXES", "read")
BY_SUFFIX: dict[str, ModuleType] = {suffix: module for module in CONTAINERS for suffix in module.SUFFIXES}
FOLDERS: tuple[Any, ...] = tuple(module for module in CONTAINERS if hasattr(module, "holds"))
# What writes a table again, by the container that its source names.
WRITERS: dict[str, ModuleType] = {module.NAME: module for module in CONTAINERS if hasattr(module, "write")}

__all__ = ["BY_SUFFIX", "CONTAINERS", "FOLDERS", "WRITERS"]
