"""JSON documents that hold rows in other ways than as a list; `test_wild.py` reads more of them."""

import json

import pytest

from robust_rlhf_jax.io import load_pairs
from robust_rlhf_jax.io.text_pairs import text_pairs


def written(folder, rows):
    file = folder / "pairs.json"
    file.write_text(json.dumps(rows))
    return file


def test_pairs_under_ids_need_no_prompt(tmp_path):
    rows = {f"id-{i}": {"chosen": f"x {i}", "rejected": f"y {i}"} for i in range(4)}
    assert load_pairs(written(tmp_path, rows), featuriser="format").texts.chosen[0] == "x 0"


def test_prompts_are_no_ids_of_pairs(tmp_path):
    rows = {f"What is {i}?": {"chosen": f"x {i}", "rejected": f"y {i}"} for i in range(4)}
    with pytest.raises(ValueError, match="the sides inside the objects of column What is 0"):
        load_pairs(written(tmp_path, rows), featuriser="format")


def test_what_may_be_one_row_is_not_taken_apart(tmp_path):
    messages = {side: {"role": "assistant", "content": side} for side in ("prompt", "chosen", "rejected")}
    assert load_pairs(written(tmp_path, [messages] * 2), featuriser="format").texts.chosen == ["chosen"] * 2
    with pytest.raises(ValueError, match="has one pair"):
        load_pairs(written(tmp_path, messages), featuriser="hashed")
    two = {"prompt": "p", "data": {"chosen": ["x", "y"], "rejected": ["z", "w"]}}
    with pytest.raises(ValueError, match="the sides inside the objects of column data"):
        load_pairs(written(tmp_path, two), featuriser="format")


@pytest.mark.parametrize("other", ["b", "a"])
def test_a_key_with_two_values_is_asked_about(tmp_path, other):
    """Parsers take the last one without a word."""
    row = '{"response_a": "x", "response_b": "y", "winner": "a", "more": {"k": [1]}, "winner": "%s"}\n'
    (tmp_path / "a.jsonl").write_text((row % "a") + (row % other))
    if other == "a":
        assert not load_pairs(tmp_path / "a.jsonl", featuriser="format").swapped.any()
    else:
        with pytest.raises(
            ValueError, match="has the key 'winner' twice in row 2, with two values: rename one"
        ):
            load_pairs(tmp_path / "a.jsonl", featuriser="format")


def test_a_key_with_two_values_that_says_nothing_of_pairs_may_be_there(tmp_path):
    """As joined tables of a database have created_at of each."""
    (tmp_path / "a.jsonl").write_text(
        '{"created_at": "2024-01-01", "prompt": "p", "chosen": "x", "rejected": "y", "created_at": "2024-02-02"}\n'
        * 2
    )
    assert load_pairs(tmp_path / "a.jsonl", featuriser="format").texts.chosen == ["x", "x"]
    assert [texts.chosen for texts in text_pairs(tmp_path / "a.jsonl").batches(9)] == [["x", "x"]]


@pytest.mark.parametrize("folder", [False, True])
def test_text_in_batches_asks_about_such_a_key_too(tmp_path, folder):
    row = '{"prompt": "p", "chosen": "x", "rejected": "y", "chosen": "%s"}\n'
    (tmp_path / "a.jsonl").write_text(row % "x")
    (tmp_path / "b.jsonl").write_text(row % "z")
    with pytest.raises(ValueError, match="has the key 'chosen' twice in row 1, with two values: rename one"):
        text_pairs(tmp_path if folder else tmp_path / "b.jsonl")
