"""A column called user holds raters or prompts."""

import json

import pytest

from robust_rlhf_jax.io import load_pairs
from robust_rlhf_jax.io import text_pairs as module
from robust_rlhf_jax.io.text_pairs import text_pairs

PEOPLE = [f"u{i % 5}" for i in range(40)]


@pytest.mark.parametrize("people", [PEOPLE, [f"ann.{who}@example.org" for who in PEOPLE], [*range(8)] * 5])
@pytest.mark.parametrize(
    "sides",
    [
        {"price_a": 3, "price_b": 4, "time_a": 1, "time_b": 5, "choice": "a"},
        {"chosen_price": 3, "rejected_price": 4},
        {"chosen": "Yes, it is.", "rejected": "No, it is not."},
    ],
)
def test_names_that_come_again_are_raters(people, sides):
    found = load_pairs([{"user": who} | sides for who in people], featuriser="format")
    assert set(found.raters.tolist()) == {*map(str, people)}
    assert "prompt" not in found.description.roles


@pytest.mark.parametrize("prompt", ["What is {}?", "{}是什么？", "{}是什么", "{}คืออะไร"])
@pytest.mark.parametrize("different", [40, 10])
def test_prompts_are_prompts(prompt, different):
    said = [prompt.format(i % different) for i in range(40)]
    rows = [{"user": said[i], "chosen": f"Yes {i}.", "rejected": f"No {i}."} for i in range(40)]
    found = load_pairs(rows, featuriser="format")
    assert found.texts.prompt == said
    assert found.raters is None


def test_the_only_user_is_no_rater():
    rows = [{"user": "web", "chosen": f"Yes {i}.", "rejected": f"No {i}."} for i in range(8)]
    assert load_pairs(rows, featuriser="format").raters is None


def test_users_that_come_again_in_later_batches_are_raters(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 10)
    rows = [{"user": f"u{i % 20}", "chosen": f"Yes {i}.", "rejected": f"No {i}."} for i in range(40)]
    file = tmp_path / "pairs.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert text_pairs(file).raters.tolist() == load_pairs(file, featuriser="format").raters.tolist()


@pytest.mark.parametrize(("last", "in_batches"), [("u0", True), ("Ann Lee", False)])
def test_users_of_a_last_short_batch_are_raters_as_in_the_whole_file(tmp_path, monkeypatch, last, in_batches):
    monkeypatch.setattr(module, "BATCH", 10)
    rows = [
        {"prompt": f"p{i}", "user": f"u{i % 5}", "chosen": f"Yes {i}.", "rejected": f"No {i}."}
        for i in range(43)
    ]
    rows[42]["user"] = last
    file = tmp_path / "pairs.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found, whole = text_pairs(file), load_pairs(file, featuriser="format")
    assert found.in_batches == in_batches
    assert (found.raters is None) == (whole.raters is None)
