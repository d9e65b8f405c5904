import json
import os
import shutil

import pytest
from report_cells import FACTS, make_cells, put, put_part

from robust_rlhf_jax.lab.report import load_results
from robust_rlhf_jax.lab.sweeps import SweepConfig
from robust_rlhf_jax.lab.sweeps.sealed import CELLS, Part, sealed
from robust_rlhf_jax.lab.sweeps.store import remember, settings_of_cells
from robust_rlhf_jax.unfinished import unfinished_name


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
    put_part(unfinished, "e", [{"epsilon": 0.1, "seed": 0, "suboptimality": 1.0}], "lower bound")
    put_part(unfinished, "f", [{"family": "uniform", "bits": 0.5}], "label entropy")
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


def test_an_unfinished_reproduction_says_which_it_is(unfinished):
    remember(unfinished / "parts", {"reproduction": "table1", "quick": True})
    assert load_results(unfinished)[0].title == "Table 1"
    remember(unfinished / "parts", settings_of_cells(SweepConfig("tiny")))
    with pytest.raises(
        ValueError, match=r"2 unfinished sweeps and reproductions \(reproduction table1, quick"
    ):
        load_results(unfinished)


def test_a_table_put_together_twice_counts_once(finished, cells):
    put(finished / "results.parquet", [*cells, *cells])
    assert load_results(finished)[0].rows == needed(cells)
    put(finished / "results.parquet", [*cells, {**cells[0], "normalised_gap": 0.9}])
    with pytest.raises(ValueError, match=r"results\.parquet holds two outcomes of one cell"):
        load_results(finished)


def test_the_same_part_twice_counts_once(unfinished):
    before = load_results(unfinished)[0].rows
    put_part(unfinished, "z", make_cells(algorithms=("standard",)))
    assert load_results(unfinished)[0].rows == before


def test_a_breakdown_is_a_cell(tmp_path):
    rows = make_cells(seeds=1)
    rows[0]["normalised_gap"] = float("nan")
    put(tmp_path / "results.parquet", rows)
    put_part(tmp_path / "twice", "a", rows)
    put_part(tmp_path / "twice", "b", rows)
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
    put_part(unfinished, "z", other)
    with pytest.raises(ValueError, match=r"holds two outcomes of one cell .*give each sweep its own folder"):
        load_results(unfinished)


def test_parts_of_sweeps_without_a_common_cell_are_not_mixed_either(unfinished, cells):
    parts = unfinished / "parts"
    for config in (SweepConfig("tiny"), SweepConfig("tiny", seeds=9)):  # more seeds of the same sweep
        remember(parts, settings_of_cells(config))
    assert load_results(unfinished)[0].rows
    remember(parts, settings_of_cells(SweepConfig("tiny", temperature=9.0)))
    with pytest.raises(
        ValueError, match=r"parts of 2 unfinished sweeps \(preset tiny, n_pairs 300, temperature 1.0, seed 0;"
    ):
        load_results(unfinished)
    put(unfinished / "results.parquet", cells)
    assert load_results(unfinished)[0].parts is None


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


@pytest.mark.parametrize(
    "damage",
    [
        flip_a_bit,
        lambda path: shutil.copy(path.with_name("b.parquet"), path),
        lambda path: put(path, make_cells()),
        lambda path: (path.unlink(), os.mkfifo(path)),
    ],
    ids=["a flipped bit", "another's", "no seal", "FIFO"],
)
def test_a_damaged_part_is_named(unfinished, damage):
    damage(unfinished / "parts" / "a.parquet")
    with pytest.raises(ValueError, match=r"parts/a\.parquet is not a part as it was written"):
        load_results(unfinished)


def test_a_damaged_result_is_named(tmp_path, cells):
    path = tmp_path / "results.parquet"
    path.write_bytes(sealed(Part(CELLS, "results", cells)))
    assert load_results(tmp_path)[0].rows == needed(cells)
    flip_a_bit(path)
    with pytest.raises(ValueError, match=r"results\.parquet is not as it was written"):
        load_results(tmp_path)


def test_results_that_a_killed_sweep_had_finished_are_put_in_their_places(finished, cells):
    """It was killed between two renames."""
    leftover = finished / unfinished_name("results").replace("unfinished", "finished")
    leftover.mkdir()
    put(leftover / "results.parquet", cells[:10])
    assert len(load_results(finished)[0].rows) == 10
    assert not leftover.exists()


@pytest.mark.parametrize("changed", [{"epsilon": -0.1}, {"epsilon": 1e300}, {"oracle_calls": -5}])
def test_cells_out_of_range_are_named(tmp_path, changed):
    put(tmp_path / "results.parquet", [make_cells()[0], {**make_cells()[0], **changed}])
    with pytest.raises(ValueError, match=r"results\.parquet: row 2 has"):
        load_results(tmp_path)


def test_settings_nested_without_end(finished):
    for text in ('{"a": ' * 900 + "1" + "}" * 900, "[" * 10**6):
        (finished / "summary.json").write_text(text)
        with pytest.raises(ValueError, match=r"summary\.json is n"):
            load_results(finished)


def test_settings_that_are_a_fifo(finished):
    (finished / "summary.json").unlink()
    os.mkfifo(finished / "summary.json")
    with pytest.raises(ValueError, match=r"summary\.json is not a JSON object"):
        load_results(finished)


@pytest.mark.parametrize("text", ["[1]", "{", "\xff"])
def test_settings_that_are_no_json_object(finished, text):
    (finished / "summary.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=r"summary\.json is not a JSON object"):
        load_results(finished)
