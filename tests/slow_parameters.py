"""Parameters of which some are marked `slow`: each of them compiles for seconds what the others show as well."""

from collections.abc import Callable, Iterable

import pytest


def slow_but_few(
    names: Iterable[str], few: int = 4, slow: Callable[[str], bool] = lambda name: False
) -> list:
    """`few` of the names, evenly spread over those that are not `slow` anyway, are fast."""
    names = list(names)
    candidates = [name for name in names if not slow(name)]
    fast = {candidates[len(candidates) * i // few] for i in range(min(few, len(candidates)))}
    return slow_where(lambda name: name not in fast, names)


def slow(*values):
    """One set of parameters that is slow."""
    return pytest.param(*values, marks=pytest.mark.slow)


def slow_where(slow: Callable[[str], bool], names: Iterable[str]) -> list:
    return [pytest.param(name, marks=pytest.mark.slow) if slow(name) else name for name in names]
