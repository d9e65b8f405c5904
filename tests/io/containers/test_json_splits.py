"""Splits of a data set in one JSON document."""

import json

import pytest

from robust_rlhf_jax.io import describe, export, load_pairs

ROWS = [{"prompt": f"Tea {i}?", "chosen": f"Yes, {i}.", "rejected": "No."} for i in range(5)]
COLUMNS = {name: [row[name] for row in ROWS] for name in ROWS[0]}


def written(folder, whole, indent=None):
    path = folder / "pairs.json"
    path.write_text(json.dumps(whole, indent=indent))
    return path


@pytest.mark.parametrize(
    "whole",
    [
        {"train": ROWS, "test": ROWS[:2]},
        {"version": 1, "train": COLUMNS, "test": COLUMNS},
        {"train": ROWS, "test": ROWS},
        {"data": {"train": ROWS, "test": ROWS[3:]}},
    ],
)
@pytest.mark.parametrize("indent", [None, 1])
def test_of_several_splits_one_is_asked_for(tmp_path, whole, indent):
    path = written(tmp_path, whole, indent)
    with pytest.raises(
        ValueError, match=r"pairs.json holds the splits train, test: choose one by --split train\."
    ):
        describe(path)
    with pytest.raises(ValueError, match=r"has no split dev: it has train, test\."):
        describe(path, split="dev")
    assert load_pairs(path, split="train", featuriser="format").n_pairs == len(ROWS)


@pytest.mark.parametrize("whole", [{"train_prefs": ROWS}, {"train": COLUMNS}, {"train": ROWS, "test": []}])
def test_the_only_split_is_read(tmp_path, whole):
    path = written(tmp_path, whole)
    for split in (None, next(iter(whole))):
        found = describe(path, split=split)
        assert found.n_pairs == len(ROWS)
        assert f"under the key {next(iter(whole))}." in found.notes[0]


@pytest.mark.parametrize("whole", [ROWS, {"data": ROWS}, {"data": ROWS, "test": [{"a": 1}]}])
def test_other_documents_have_no_splits(tmp_path, whole):
    path = written(tmp_path, whole)
    assert describe(path).n_pairs == len(ROWS)
    with pytest.raises(ValueError, match="is one file and has no splits: leave --split out"):
        describe(path, split="train")


def test_lines_have_no_splits(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)))
    with pytest.raises(ValueError, match="is one file and has no splits: leave --split out"):
        describe(path, split="train")


def test_an_export_leaves_other_splits_as_they_are(tmp_path):
    path = written(tmp_path, {"train": ROWS, "test": ROWS[:2]})
    pairs = load_pairs(path, split="train", featuriser="format")
    export(pairs, tmp_path / "out.json", {}, keep=[True, False, True, True, True])
    assert json.loads((tmp_path / "out.json").read_text()) == {"train": ROWS[:1] + ROWS[2:], "test": ROWS[:2]}
