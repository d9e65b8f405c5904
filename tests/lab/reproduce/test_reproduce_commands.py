"""The quick forms of both reproductions: their files, their shape, and the order that corruption brings."""

import json
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest

from robust_rlhf_jax import cli
from robust_rlhf_jax.lab.reproduce import robustness, table1
from robust_rlhf_jax.lab.reproduce.worst_case import worst_cases


def reproduce(what, out, monkeypatch):
    monkeypatch.setattr("sys.argv", ["robust-rlhf", "reproduce", what, "--quick", "--out", str(out)])
    cli.main()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """run(what) → the folder of `robust-rlhf reproduce WHAT --quick`."""
    found = {}

    def once(what):
        if what not in found:
            found[what] = tmp_path_factory.mktemp("reproduction") / "out"
            with pytest.MonkeyPatch.context() as monkeypatch:
                reproduce(what, found[what], monkeypatch)
        return found[what]

    return once


@pytest.mark.slow
@pytest.mark.parametrize("what", ["table1", "robustness"])
def test_a_table_a_figure_all_cells_and_how_to_repeat_them(what, run):
    out = run(what)
    endings = ("json", "md", "parquet", "png")
    assert sorted(path.name for path in out.iterdir()) == ["parts", *[f"{what}.{end}" for end in endings]]
    assert (out / f"{what}.png").read_bytes().startswith(b"\x89PNG")
    facts = json.loads((out / f"{what}.json").read_text())
    assert {"configuration", "wall_seconds", "versions", "device", "date"} <= set(facts)


@pytest.mark.slow
def test_table1_has_a_row_per_assumption_and_the_lower_bound(run):
    lines = (run("table1") / "table1.md").read_text().splitlines()
    assert [line.split("|")[1].strip() for line in lines[2:]] == [
        "uniform",
        "condition number",
        "coverage ratio",
        "lower bound",
    ]
    assert len({line.count("|") for line in lines}) == 1


@pytest.mark.slow
def test_table1_grows_with_corruption(run):
    config = table1.QUICK
    rows = pq.read_table(run("table1") / "table1.parquet").to_pylist()
    found = table1.curves(config, rows)
    for curve in found:
        assert curve.gaps.shape[0] == len(config.epsilons)
        assert np.isfinite(curve.gaps).all()
        assert curve.fitted.lower <= curve.fitted.slope <= curve.fitted.upper
        if curve.clean is not None:  # three seeds on a tiny world: a few hundredths are noise
            assert curve.middle[-1] >= curve.clean - 0.05
        if curve.row.family != "condition_number":  # whose pessimism falls back on the behaviour as ε grows
            assert curve.middle[-1] >= curve.middle[0] - 0.02
    lower = found[-1]
    assert (np.diff(lower.middle) > 0).all(), "half of what ε hides is lost, and ε hides ever more"
    assert lower.fitted.lower > 0.5
    calls = {curve.row.family: curve.oracle_calls for curve in found}
    assert calls["uniform"] == 1 < calls["coverage_ratio"] < calls["condition_number"]


@pytest.mark.slow
def test_the_robust_algorithm_keeps_more_in_the_worst_case(run):
    rows = pq.read_table(run("robustness") / "robustness.parquet").to_pylist()
    assert len(rows) == robustness.robustness_cells(robustness.QUICK)
    assert "no algorithm guarantees more" in (run("robustness") / "robustness.md").read_text()
    worst = worst_cases(rows)
    median = lambda name, epsilon: worst["uniform", name, epsilon].quartiles[1]  # noqa: E731
    for name in ("uniform_coverage", "standard", "r3m"):
        assert median(name, 0.0) >= median(name, 0.1) - 0.05 >= median(name, 0.2) - 0.1
    assert median("uniform_coverage", 0.2) > median("standard", 0.2) + 0.1
    assert median("clean_reference", 0.2) == median("clean_reference", 0.0) > 0.9


@pytest.mark.slow
def test_a_second_run_computes_nothing(run, tmp_path, monkeypatch):
    first = run("robustness")
    shutil.copytree(first / "parts", tmp_path / "out" / "parts")
    monkeypatch.setattr("robust_rlhf_jax.lab.sweeps.engine.solve_batch", None)
    reproduce("robustness", tmp_path / "out", monkeypatch)
    tables = [pq.read_table(folder / "robustness.parquet") for folder in (first, tmp_path / "out")]
    assert tables[0].equals(tables[1])
