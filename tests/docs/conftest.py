"""The folder `docs/tools/` on the path of its tests."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def tools_on_the_path(monkeypatch):
    path = list(sys.path)
    monkeypatch.syspath_prepend(ROOT / "docs" / "tools")
    yield
    sys.path[:] = path
