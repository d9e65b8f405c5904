"""Parameters of which some are marked `slow`: each of them compiles for seconds what the others show as well."""

from collections.abc import Callable, Iterable

import pytest


def slow_where(slow: Callable[[str], bool], names: Iterable[str]) -> list:
    return [pytest.param(name, marks=pytest.mark.slow) if slow(name) else name for name in names]
