"""Every notebook runs from top to bottom at smoke size."""

import runpy
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.py"))


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs(path, monkeypatch):
    monkeypatch.setenv("NOTEBOOK_SMOKE", "1")
    matplotlib.use("Agg")
    monkeypatch.setattr(plt, "show", lambda: None)
    runpy.run_path(str(path))
    assert plt.get_fignums(), "a notebook without a picture"
    plt.close("all")
