"""Folders as the commands leave them."""

import json

import pytest
from report_cells import FACTS, make_cells, put, put_part


@pytest.fixture
def cells():
    return make_cells()


@pytest.fixture
def finished(tmp_path, cells):
    """The folder of a finished sweep."""
    folder = tmp_path / "results"
    put(folder / "results.parquet", cells)
    (folder / "summary.json").write_text(json.dumps(FACTS), encoding="utf-8")
    return folder


@pytest.fixture
def unfinished(tmp_path):
    """The folder of a sweep that was stopped: one algorithm lacks the last attack, the reference is not spread yet."""
    folder = tmp_path / "stopped"
    reference = make_cells(attacks=("none",), epsilons=(0.0,), algorithms=("clean_reference",))
    put_part(folder, "a", reference)
    put_part(folder, "b", make_cells(algorithms=("standard",)))
    put_part(folder, "c", make_cells(attacks=("flip_confident",), algorithms=("first_order",)))
    return folder
