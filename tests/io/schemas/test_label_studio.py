"""Label Studio's questions that compare; `test_wild.py` and its neighbours read, turn and export these files."""

import numpy as np
import pytest
from wild import worlds
from wild.arenas import word
from wild.case import Case
from wild.chosen import each

from robust_rlhf_jax.io import Columns, load_pairs


def result(name, kind, value):
    return {"id": "x", "from_name": name, "to_name": "a,b", "type": kind, "value": value}


def task(item, *results):
    (who, value), *_ = item.votes
    return {
        "id": 1,
        "data": {"prompt": item.prompt, "response_a": item.a, "response_b": item.b},
        "annotations": [{"completed_by": {"email": who}, "result": [make(value) for make in results]}],
    }


def chosen(name):
    return lambda value: result(
        name, "choices", {"choices": [word(value, "Response A", "Response B", "Tie")]}
    )


def flawed(_):
    return result("flaws", "choices", {"choices": ["too long"]})


@each
def choices(i, item):
    return task(item, flawed, chosen("better"))


CASES = (Case("label_studio_choices", choices, options={"ties": True}, facts=("prompt", "row", "rater")),)


@pytest.mark.parametrize("kind", ["choices", "pairwise"])
def test_one_of_several_questions_that_compare_is_asked_for(kind):
    def asked(name, way):
        words = ("left", "right") if kind == "pairwise" else ("A", "B")
        key = "selected" if kind == "pairwise" else "choices"
        said = lambda v: word(way * v, *words, "")  # noqa: E731
        return lambda v: result(name, kind, {key: said(v) if kind == "pairwise" else [said(v)]})

    items = worlds.pairs(np.random.default_rng(0))
    rows = [task(item, asked("helpful", 1), asked("safe", -1)) for item in items]
    with pytest.raises(ValueError, match="helpful, safe all compare the sides: name one by --label"):
        load_pairs(rows, featuriser="format")
    helpful, safe = (
        load_pairs(rows, featuriser="format", columns=Columns(label=name)).swapped.tolist()
        for name in ("helpful", "safe")
    )
    assert helpful == [not turned for turned in safe] == [item.vote < 0 for item in items]


@pytest.mark.parametrize("words", [("none", "factual error"), ("Neutral", "Positive")])
def test_a_question_that_names_no_side_is_no_comparison(words):
    def compared(value):
        return result("pw", "pairwise", {"selected": word(value, "left", "right", "")})

    def other(value):
        return result("other", "choices", {"choices": [words[value < 0]]})

    items = worlds.pairs(np.random.default_rng(0))
    pairs = load_pairs([task(item, other, compared) for item in items], featuriser="format")
    assert pairs.swapped.tolist() == [item.vote < 0 for item in items]


def test_a_comment_that_says_none_is_no_comparison():
    rows = [
        {"annotation_id": i, "annotator": 1, "comment": "none", "prompt": "p", "pw": ["left", "right"][i % 2],
         "text1": f"x {i}", "text2": f"y {i}"}
        for i in range(6)
    ]  # fmt: skip
    assert load_pairs(rows, featuriser="format").swapped.tolist() == [False, True] * 3
    rows = [row | {"safer": "left"} for row in rows]
    with pytest.raises(ValueError, match="pw, safer all compare the sides"):
        load_pairs(rows, featuriser="format")


def test_the_first_tasks_may_be_skipped():
    def compared(value):
        return result("pw", "pairwise", {"selected": word(value, "left", "right", "")})

    items = worlds.pairs(np.random.default_rng(0))
    rows = [task(item, compared) for item in items]
    rows[0]["annotations"] = [{"completed_by": 1, "was_cancelled": True, "result": []}]
    rows[1]["annotations"] = []
    found = load_pairs(rows, featuriser="format")
    assert found.swapped.tolist() == [item.vote < 0 for item in items[2:]]
    assert "2 tasks have no annotation that compares, and make no pair" in str(found.description)
