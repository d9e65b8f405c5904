"""Scores of listed answers beside the best one; `test_wild.py` and its neighbours read these files, too."""

import pytest
from wild import stores, worlds
from wild.case import Case
from wild.truths import every_pair

from robust_rlhf_jax.io import Columns, load_pairs


def scored_with_best(items):
    return [
        {"prompt": item.prompt, "responses": list(item.answers), "scores": list(item.scores),
         "best_idx": max(range(len(item.answers)), key=lambda i: item.scores[i])}
        for item in items
    ]  # fmt: skip


CASES = (
    Case("scores_and_best", scored_with_best, stores.jsonl(), world=worlds.rankings, truth=every_pair),
    Case(
        "scores_and_best_parquet", scored_with_best, stores.parquet(), world=worlds.rankings, truth=every_pair
    ),
)


def lists(best, i):
    return {"responses": [f"x {i}", f"y {i}", f"z {i}"], "scores": [3, 2, 1], "winner": "ABC"[best]}


def objects(best, i):
    entries = [{"text": f"{w} {i}", "score": 3 - k, "chosen": k == best} for k, w in enumerate("xyz")]
    return {"responses": entries}


def by_name(best, i):
    answers, scores = {w: f"{w} {i}" for w in "xyz"}, {"x": 3, "y": 2, "z": 1}
    return {"responses": answers, "scores": scores, "winner": "xyz"[best]}


def ranked(best, i):
    return {"responses": [f"x {i}", f"y {i}", f"z {i}"], "ranks": [1, 2, 3], "winner": "ABC"[best]}


WAYS = {
    lists: ("winner", "scores"),
    ranked: ("winner", "ranks"),
    objects: ("chosen", "score"),
    by_name: ("winner", "score"),
}


@pytest.mark.parametrize("write", WAYS)
def test_the_best_answer_and_scores_that_contradict_it_are_asked_about(write):
    rows = [{"prompt": f"p{i}"} | write(int(i == 4), i) for i in range(8)]
    best, scores = WAYS[write]
    with pytest.raises(
        ValueError, match=f"{best} and {scores} both say .* row 5: choose by --label {best} or"
    ):
        load_pairs(rows, featuriser="format")
    found = {
        name: load_pairs(rows, columns=Columns(label=name), featuriser="format") for name in (best, scores)
    }
    assert found[scores].texts.chosen.count("x 4") == 2
    assert found[best].texts.chosen == [f"{'y' if i == 4 else 'x'} {i}" for i in range(8) for _ in range(2)]


@pytest.mark.parametrize("write", WAYS)
def test_where_both_agree_scores_say_more(write):
    rows = [{"prompt": f"p{i}"} | write(0, i) for i in range(8)]
    assert load_pairs(rows, featuriser="format").n_pairs == 8 * 3


def test_a_number_that_may_count_from_0_or_1_says_nothing_against_scores():
    rows = [{"prompt": f"p{i}"} | lists(0, i) | {"winner": 1 + i % 2} for i in range(8)]
    assert load_pairs(rows, featuriser="format").n_pairs == 8 * 3


def test_equal_answers_of_which_one_is_the_best_contradict_no_scores():
    rows = [
        {"prompt": f"p{i}", "responses": [f"x {i}", f"x {i}", f"z {i}"], "scores": [3, 1, 2], "winner": "A"}
        for i in range(8)
    ]
    assert load_pairs(rows, featuriser="format").n_pairs == 8 * 2


def test_chosen_and_rejected_answers_that_ratings_contradict_are_asked_about():
    rows = [
        {"prompt": f"p{i}", "generations": [f"x {i}", f"y {i}"], "ratings": [3, 2 + 2 * (i == 4)]}
        | {"chosen": f"x {i}", "rejected": f"y {i}"}
        for i in range(8)
    ]
    with pytest.raises(
        ValueError, match=r"chosen and rejected and ratings both .* row 5: choose by --chosen chosen"
    ):
        load_pairs(rows, featuriser="format")
    assert load_pairs(rows[:4], featuriser="format").texts.chosen == [f"x {i}" for i in range(4)]
    asked = Columns(chosen="chosen", rejected="rejected")
    assert not load_pairs(rows, featuriser="format", columns=asked).swapped.any()
