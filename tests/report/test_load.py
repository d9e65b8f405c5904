import json
import shutil

import pytest
from report_cells import FACTS, make_cells, put

from robust_rlhf_jax.report import load_results


def needed(rows):
    """What the page takes of a row."""
    return [{name: x for name, x in row.items() if name not in ("value", "suboptimality")} for row in rows]


def test_a_finished_sweep(finished, cells):
    (result,) = load_results(finished)
    assert result.rows == needed(cells)
    assert (result.title, result.facts, result.unscaled, result.parts) == ("Sweep", FACTS, [], None)


def test_reproductions_side_by_side(tmp_path, cells):
    """Of Table 1's lower bound there is a suboptimality alone."""
    hard = {"family": "lower_bound", "attack": "impersonate", "epsilon": 0.1, "algorithm": "uniform_coverage"}
    bound = [{**hard, "seed": seed, "suboptimality": 2.0, "oracle_calls": 1} for seed in range(3)]
    put(tmp_path / "table1.parquet", [*({**row, "suboptimality": 0.5} for row in cells), *bound])
    put(tmp_path / "robustness.parquet", cells)
    (tmp_path / "robustness.json").write_text(json.dumps(FACTS), encoding="utf-8")
    robustness, table1 = load_results(tmp_path)
    assert (robustness.title, robustness.facts) == ("Robustness", FACTS)
    assert (table1.title, table1.facts) == ("Table 1", {})
    assert needed(table1.rows) == needed(cells)
    assert [row["suboptimality"] for row in table1.unscaled] == [2.0] * 3


def test_finished_results_come_before_parts(finished, cells):
    put(finished / "parts" / "a.parquet", cells[:3])
    (result,) = load_results(finished)
    assert len(result.rows) == len(cells)


def test_an_unfinished_sweep(unfinished):
    put(unfinished / "parts" / "lower_bound-1.parquet", [{"epsilon": 0.1, "seed": 0, "suboptimality": 1.0}])
    (unfinished / "parts" / ".d.1.unfinished").write_bytes(b"PAR1")
    (result,) = load_results(unfinished)
    assert result.parts == 3
    count = {
        name: sum(row["algorithm"] == name for row in result.rows) for name in ("standard", "first_order")
    }
    assert count == {"standard": 60, "first_order": 30}


def test_the_reference_stands_at_every_attack_and_epsilon(unfinished):
    rows = [row for row in load_results(unfinished)[0].rows if row["algorithm"] == "clean_reference"]
    assert len(rows) == 2 * 5 * 2 * 3
    by_draw = {}
    for row in rows:
        by_draw.setdefault((row["family"], row["seed"]), set()).add(row["normalised_gap"])
    assert all(len(gaps) == 1 for gaps in by_draw.values())


def test_the_same_part_twice_counts_once(unfinished):
    before = load_results(unfinished)[0].rows
    shutil.copy(unfinished / "parts" / "b.parquet", unfinished / "parts" / "z.parquet")
    assert load_results(unfinished)[0].rows == before


def test_a_breakdown_is_a_cell(tmp_path):
    rows = make_cells(seeds=1)
    rows[0]["normalised_gap"] = float("nan")
    put(tmp_path / "results.parquet", rows)
    put(tmp_path / "twice" / "parts" / "a.parquet", rows)
    put(tmp_path / "twice" / "parts" / "b.parquet", rows)
    for folder in (tmp_path, tmp_path / "twice"):
        assert len(load_results(folder)[0].rows) == len(rows)


@pytest.mark.parametrize("column", ["family", "epsilon", "oracle_calls"])
def test_a_missing_column_is_named(tmp_path, column):
    put(tmp_path / "results.parquet", [{k: v for k, v in row.items() if k != column} for row in make_cells()])
    with pytest.raises(ValueError, match=f"lacks the column {column}: it needs family, attack"):
        load_results(tmp_path)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"epsilon": "much"}, "has a column of another type"),
        ({"epsilon": float("inf")}, "row 1 has no epsilon"),
        ({"attack": None}, "row 1 has no attack"),
        ({"normalised_gap": None}, "no cells with a normalised gap"),
    ],
)
def test_wrong_cells(tmp_path, changed, sentence):
    put(tmp_path / "results.parquet", [{**make_cells()[0], **changed}])
    with pytest.raises(ValueError, match=sentence):
        load_results(tmp_path)


def test_a_column_of_lists(tmp_path):
    put(tmp_path / "results.parquet", [{**make_cells()[0], "family": ["uniform"]}])
    with pytest.raises(ValueError, match="has a column of another type"):
        load_results(tmp_path)


def test_parts_of_two_sweeps_are_not_mixed(unfinished):
    other = [{**row, "normalised_gap": 0.5} for row in make_cells(algorithms=("standard",))]
    put(unfinished / "parts" / "z.parquet", other)
    with pytest.raises(ValueError, match=r"holds two outcomes of one cell .*give each sweep its own folder"):
        load_results(unfinished)


@pytest.mark.parametrize("text", ["[1]", "{", "\xff"])
def test_settings_that_are_no_json_object(finished, text):
    (finished / "summary.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=r"summary\.json is not a JSON object"):
        load_results(finished)
