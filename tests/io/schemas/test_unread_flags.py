"""What a caller says of labels is heeded, or refused where no label is read so."""

import json

import pytest

from robust_rlhf_jax.io import Columns, load_pairs

TRL = {"prompt": "Hi", "chosen": "Yes.", "rejected": "No"}
NECTAR = {"prompt": "Hi", "answers": [{"answer": "Yes.", "rank": 1}, {"answer": "No", "rank": 2}]}
ULTRA = {
    "prompt": "Hi",
    "completions": [{"response": "Yes.", "overall_score": 4}, {"response": "No", "overall_score": 2}],
}
KAGGLE = {"response_a": "Yes.", "response_b": "No", "winner_model_a": 1, "winner_model_b": 0}
CHOICES = [
    {"task": 1, "price": 3, "chosen": 1}, {"task": 1, "price": 4, "chosen": 0},
    {"task": 2, "price": 6, "chosen": 0}, {"task": 2, "price": 5, "chosen": 1},
]  # fmt: skip
SAID = {"first_is": "1", "scale": (3.0, -3.0), "tie_is": "0", "ranking": "order"}
FILES = {"TRL": [TRL], "Nectar": [NECTAR], "UltraFeedback": [ULTRA], "Kaggle": [KAGGLE], "choices": CHOICES}


def read(folder, rows, **columns):
    file = folder / "pairs.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return load_pairs(file, columns=Columns(**columns), featuriser="format")


@pytest.mark.parametrize("rows", FILES.values(), ids=FILES)
@pytest.mark.parametrize("flag", SAID)
def test_a_flag_that_no_label_is_read_by_is_refused(tmp_path, rows, flag):
    assert (read(tmp_path, rows).labels == 1).all()
    with pytest.raises(ValueError, match=rf"--{flag.replace('_', '-')} changes nothing here, .*leave it out"):
        read(tmp_path, rows, **{flag: SAID[flag]})


def test_a_column_of_ties_is_refused_where_one_option_of_each_choice_is_chosen(tmp_path):
    with pytest.raises(ValueError, match="--tie changes nothing here"):
        read(tmp_path, CHOICES, tie="price")


def test_the_worst_option_of_a_choice_makes_no_pair(tmp_path):
    rows = [{name.replace("chosen", "worst"): cell for name, cell in row.items()} for row in CHOICES]
    with pytest.raises(ValueError, match="which option was the worst"):
        read(tmp_path, rows, label="worst", pair_id="task")


def test_what_was_answered_is_no_feature(tmp_path):
    rows = [row | {"worst": 1 - row["chosen"]} for row in CHOICES]
    assert read(tmp_path, rows).names == ("price",)
    sided = [{"price_a": 1, "price_b": 2, "time_a": 5, "time_b": 3, "votes_a": 3, "votes_b": 1}] * 3
    sided += [{"price_a": 4, "price_b": 2, "time_a": 5, "time_b": 9, "votes_a": 1, "votes_b": 3}] * 3
    assert read(tmp_path, sided, label="votes_a", scale=(3, 1)).names == ("price", "time")


def test_labels_of_several_criteria_are_no_raters(tmp_path):
    row = {"prompt": "Hi", "response_a": "Yes.", "response_b": "No", "preference_helpfulness": "A"}
    rows = [row | {"preference_safety": "B"}, row | {"preference_safety": "A"}]
    with pytest.raises(ValueError, match=r"no label.*: name its column by --label"):
        read(tmp_path, rows)
    assert read(tmp_path, rows, label="preference_safety").labels.tolist() == [-1, 1]
    assert read(tmp_path, [row | {"preference_1": "B", "preference_2": "A"}]).raters.tolist() == ["1", "2"]
