"""The answers that the command chooses, and what it refuses."""

import json

import numpy as np
import pytest

from robust_rlhf_jax.algorithms import best_of_n
from robust_rlhf_jax.io import load_pairs, read_table
from robust_rlhf_jax.reranking.command import (
    behind,
    beside,
    best_of_n_command,
    drawn,
    features_of,
    further_cells,
    json_lines,
    read_answers,
)


def lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def answer(rng):
    """A text with some words that people like and some that they do not, and its reward."""
    good, bad = rng.integers(0, 5, 2)
    words = ["thanks"] * good + ["nonsense"] * bad + ["the", "tea"]
    return " ".join(words), 1.5 * (good - bad)


@pytest.fixture
def files(tmp_path):
    """200 pairs, and sets of one to four answers with their rewards."""
    rng = np.random.default_rng(0)
    pairs = []
    for _ in range(200):
        (first, one), (second, other) = answer(rng), answer(rng)
        wins = rng.logistic() < one - other
        chosen, rejected = (first, second) if wins else (second, first)
        pairs.append({"prompt": "Tea?", "chosen": chosen, "rejected": rejected})
    sets = [[answer(rng) for _ in range(1 + i % 4)] for i in range(12)]
    candidates = [{"prompt": "Tea?", "responses": [text for text, _ in answers]} for answers in sets]
    rewards = [[reward for _, reward in answers] for answers in sets]
    return lines(tmp_path / "pairs.jsonl", pairs), lines(tmp_path / "candidates.jsonl", candidates), rewards


@pytest.mark.slow
def test_it_chooses_the_answers_that_people_like(files, tmp_path, capsys):
    pairs, candidates, rewards = files
    choice = best_of_n_command(candidates, pairs, tmp_path / "best.jsonl", featuriser="hashed")
    written = [json.loads(line) for line in (tmp_path / "best.jsonl").read_text().splitlines()]
    assert [row["index"] for row in written] == choice.index.tolist()
    asked = [json.loads(line)["responses"] for line in candidates.read_text().splitlines()]
    assert [row["response"] for row in written] == [
        a[r["index"]] for a, r in zip(asked, written, strict=True)
    ]
    gained = [mine[row["index"]] - np.mean(mine) for mine, row in zip(rewards, written, strict=True)]
    most = [max(mine) - np.mean(mine) for mine in rewards]
    assert np.sum(gained) > 0.9 * np.sum(most)
    printed = capsys.readouterr().out
    assert "No evidence of corruption" in printed
    assert "12 answers chosen" in printed


@pytest.mark.slow
def test_short_sets_are_as_if_they_stood_alone(files):
    pairs, candidates, _ = files
    data, answers = load_pairs(pairs), read_answers(candidates)
    sets, reference = features_of(answers, data)
    together = best_of_n(data, sets, reference=reference)
    alone = best_of_n(data, sets[1:2, :2])
    np.testing.assert_allclose(together.promised[1, :2], alone.promised[0], atol=1e-5)
    assert int(together.index[1]) == int(alone.index[0])


def test_of_equal_answers_none_is_behind():
    promised = np.array([[0.5, 0.5, 0.0], [0.5, 0.2, 9.0]])
    reference = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, -np.inf]])  # the second set has two answers
    assert [behind(promised, reference, np.array(index)) for index in ([1, 0], [0, 1], [2, 1])] == [0, 1, 2]


def test_draws_have_their_probabilities():
    probability = np.broadcast_to([0.0, 0.7, 0.3], (4000, 3))
    index = drawn(probability, 0.5, seed=0)
    np.testing.assert_allclose(np.bincount(index, minlength=3) / 4000, [0.0, 0.7, 0.3], atol=0.03)
    np.testing.assert_array_equal(drawn(probability, 0.0, seed=0), 1)


def test_a_character_cut_in_two_is_written_as_it_was_read():
    rows = [{"prompt": "Tee für zwei?", "response": "Yes \ud83d", "index": 0}]
    assert "für" in json_lines(rows).decode()
    assert [json.loads(line) for line in json_lines(rows).splitlines()] == rows


def test_what_else_the_file_says_of_a_prompt_stays(tmp_path):
    row = {"id": "q7", "prompt": "Tea?", "index": 3, "responses": ["Yes"], "score": float("nan")}
    table = read_table(lines(tmp_path / "candidates.jsonl", [row]))
    found = beside(further_cells(table), [{"prompt": "Tea?", "response": "Yes", "index": 0}])
    written = json.loads(json_lines(found))
    ours = {"prompt": "Tea?", "response": "Yes", "best_index": 0}
    assert written == ours | {"id": "q7", "index": 3, "score": None}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"prompt": "Tea?", "answers": ["Yes"]}, "no column responses"),
        ({"prompt": "Tea?", "responses": "Yes"}, "row 1, column responses is no list"),
        ({"prompt": "Tea?", "responses": []}, "row 1, column responses is no list"),
        ({"prompt": "Tea?", "responses": ["Yes", None]}, "row 1, column responses: answer 2 is missing"),
        ({"prompt": "Tea?", "responses": [3.0]}, "answer 1 holds 3.0, neither a text nor messages"),
        ({"prompt": 3, "responses": ["Yes"]}, "row 1, column prompt holds 3, neither"),
    ],
)
def test_bad_candidates_are_named(row, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        read_answers(lines(tmp_path / "candidates.jsonl", [row]))


def test_a_file_without_rows_is_named(tmp_path):
    (tmp_path / "candidates.csv").write_text("prompt,responses\n")
    with pytest.raises(ValueError, match=r"candidates\.csv has no rows"):
        read_answers(tmp_path / "candidates.csv")


def test_lists_of_messages_and_cells_of_csv_are_answers(tmp_path):
    said = [[{"role": "assistant", "content": text}] for text in ("Yes", "No")]
    as_messages = read_answers(lines(tmp_path / "a.jsonl", [{"prompt": "Tea?", "responses": said}]))
    (tmp_path / "b.csv").write_text('prompt,responses\nTea?,"[""Yes"", ""No""]"\n')
    assert as_messages == read_answers(tmp_path / "b.csv") == (["Tea?"], [["Yes", "No"]])


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("pairs.jsonl", "is a file that is read"),
        ("candidates.jsonl", "is a file that is read"),
        ("nowhere/best.jsonl", "nowhere does not exist: make it first"),
        ("", "is a folder: give the name of a file"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_before_the_work(files, tmp_path, out, message):
    pairs, candidates, _ = files
    before = pairs.read_bytes(), candidates.read_bytes()
    with pytest.raises(ValueError, match=message):
        best_of_n_command(candidates, pairs, tmp_path / out)
    assert before == (pairs.read_bytes(), candidates.read_bytes())
