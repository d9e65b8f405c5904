"""What a table says of each pair so that it is found in the file."""

import gzip
import json

import pytest

from robust_rlhf_jax import Pairs
from robust_rlhf_jax.audit.pair_columns import found_at, shown_of
from robust_rlhf_jax.io import load_pairs

TEXTS = ["One\ntwo", "=cmd()", "word " * 40, "\x1b[31mred", "مرحبا"]
ROWS = [{"id": f"q{i}", "prompt": "Tea?", "chosen": text, "rejected": "No."} for i, text in enumerate(TEXTS)]


def shown(path):
    return shown_of(load_pairs(path, featuriser="format"))


def test_lines_of_json_count_blank_ones(tmp_path):
    path = tmp_path / "pairs.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, ROWS)).replace("\n", "\n\n", 2).encode()))
    found = shown(path)
    assert list(found) == ["line", "id", "prompt", "chosen", "rejected"]
    assert found["line"] == [1, 3, 5, 6, 7]
    assert found["id"] == ["q0", "q1", "q2", "q3", "q4"]


@pytest.mark.parametrize("begins", ["", "sep=,\n"])
def test_lines_of_a_table_count_those_inside_cells(tmp_path, begins):
    (tmp_path / "pairs.csv").write_text(f'{begins}chosen,rejected\n"a\nb",c\n\nd,e\nf,g\n')
    first = 2 + (begins != "")
    assert shown(tmp_path / "pairs.csv")["line"] == [first, first + 3, first + 4]


def test_of_several_files_each_row_has_its_own(tmp_path):
    for name, rows in (("a.jsonl", ROWS[:2]), ("b.jsonl", ROWS[2:])):
        (tmp_path / name).write_text("\n".join(map(json.dumps, rows)))
    found = shown(tmp_path)
    assert found["file"] == ["a.jsonl"] * 2 + ["b.jsonl"] * 3
    assert found["line"] == [1, 2, 1, 2, 3]


def test_documents_and_rows_in_memory_have_no_lines(tmp_path):
    (tmp_path / "pairs.json").write_text(json.dumps(ROWS, indent=1))
    assert "line" not in shown(tmp_path / "pairs.json")
    assert "line" not in shown(ROWS)


def test_texts_begin_in_one_line_that_runs_and_hides_nothing():
    one, formula, long, code, arabic = shown(ROWS)["chosen"]
    assert (one, formula, code, arabic) == ("One two", "'=cmd()", "\\x1b[31mred", "مرحبا")
    assert len(long) <= 80
    assert long.endswith("word…")


def test_numbers_have_no_texts():
    rows = [{"chosen_price": 1.0, "rejected_price": 2.0}, {"chosen_price": 3.0, "rejected_price": 1.0}]
    assert shown(rows) == {}


def test_a_missing_id_is_an_empty_cell():
    assert shown([ROWS[0], ROWS[1] | {"id": None}, ROWS[2]])["id"] == ["q0", "", "q2"]
    assert shown_of(Pairs([[1.0]] * 2, [[0.0]] * 2, ids=["q0", None]))["id"] == ["q0", ""]


def test_a_page_says_where_pairs_are(tmp_path):
    (tmp_path / "pairs.jsonl").write_text("\n\n".join(map(json.dumps, [*ROWS[:2], ROWS[2] | {"id": None}])))
    pairs = load_pairs(tmp_path / "pairs.jsonl", featuriser="format")
    assert found_at(pairs, [2, 0]) == ["line 5", "line 1, id q0"]
    (tmp_path / "a.jsonl").write_text(json.dumps(ROWS[3] | {"id": "\x1b[31m" + "q" * 100}))
    several = load_pairs(tmp_path, featuriser="format")
    assert found_at(several, [1])[0] == "pairs.jsonl, line 1, id q0"
    assert found_at(several, [0])[0].startswith("a.jsonl, line 1, id \\x1b[31mqqq")
    assert len(found_at(several, [0])[0]) < 110
