"""MTurk's batch files with a column for each button or box; `test_wild.py` and its neighbours read, turn and export
these files."""

import json

import pytest
from wild import stores
from wild.case import Case
from wild.chosen import each

from robust_rlhf_jax.io import Columns, load_pairs


def task(i, item):
    """What MTurk writes before the answers."""
    return {
        "HITId": f"3H{i}", "HITTypeId": "3T", "Title": "Which is better?", "Reward": "$0.10",
        "AssignmentId": f"3A{i}", "WorkerId": item.votes[0][0], "AssignmentStatus": "Approved",
        "WorkTimeInSeconds": str(30 + i), "Input.prompt": item.prompt, "Input.response_a": item.a,
        "Input.response_b": item.b,
    }  # fmt: skip


def boxes(called, ties=True):
    """true in the column of one option, false in the others."""

    def encode(i, item):
        ways = {"A": 1.0, "B": -1.0} | ({"tie": 0.0} if ties else {})
        said = {called.format(name): str(way == item.vote).lower() for name, way in ways.items()}
        return task(i, item) | {"Answer.consent.on": "true"} | said

    return each(encode)


def answers(make):
    return each(lambda i, item: task(i, item) | {"Answer.taskAnswers": json.dumps([make(item)])})


def hashes(item):
    return {"better": {"A": item.vote > 0, "B": item.vote < 0}, "comment": "fine"}


def words(item):
    return {"preference": {"label": "Response A" if item.vote > 0 else "Response B"}}


def of_json(name, make):
    return Case(name, answers(make), stores.table("Batch_2.csv"), facts=("prompt", "row", "rater"))


def of_boxes(name, called, **more):
    return Case(name, boxes(called, **more), stores.table("Batch_1.csv"), options={"ties": more.get("ties", True)},
                facts=("prompt", "row", "rater"))  # fmt: skip


CASES = (
    of_boxes("mturk_boxes_on", "Answer.{}.on"),
    of_boxes("mturk_boxes_without_tie", "Answer.{}.on", ties=False),
    of_boxes("mturk_buttons", "Answer.choice.{}"),
    of_boxes("mturk_buttons_of_a_question", "Answer.which.response_{}", ties=False),
    of_json("mturk_task_answers", hashes),
    of_json("mturk_classifier", words),
)


def rows(*ticks, names=("Answer.optionA.on", "Answer.optionB.on")):
    return [
        {"Input.textA": f"x {i}", "Input.textB": f"y {i}", "WorkerId": f"w{i % 2}"}
        | dict(zip(names, tick, strict=True))
        for i, tick in enumerate(ticks)
    ]


@pytest.mark.parametrize(("yes", "no"), [("true", "false"), ("TRUE", "FALSE"), ("on", ""), (True, False)])
def test_a_ticked_box_is_the_winner_and_the_worker_the_rater(yes, no):
    found = load_pairs(rows((yes, no), (no, yes), (yes, no)), featuriser="format")
    assert found.labels.tolist() == [1, -1, 1]
    assert found.raters.tolist() == ["w0", "w1", "w0"]


@pytest.mark.parametrize("tick", [("false", "false"), ("", ""), ("true", "true")])
def test_no_box_or_both_say_nothing(tick):
    given = rows(("true", "false"), tick, ("false", "true"))
    with pytest.raises(
        ValueError, match=r"row 2, column Answer.optionA.on (is missing|holds the unknown label)"
    ):
        load_pairs(given, featuriser="format")
    assert load_pairs(given, featuriser="format", skip_bad=1).rows.tolist() == [0, 2]


def test_what_is_neither_a_side_nor_a_tie_is_asked_about():
    names = ("Answer.pick.A", "Answer.pick.B", "Answer.pick.cannot tell")
    given = rows(
        ("true", "false", "false"), ("false", "false", "true"), ("false", "true", "false"), names=names
    )
    with pytest.raises(
        ValueError, match=r"row 2, .* holds the unknown label .?cannot tell.? \(--tie-is, if a tie\)"
    ):
        load_pairs(given, featuriser="format")
    found = load_pairs(given, columns=Columns(tie_is="cannot tell"), featuriser="format")
    assert found.strength.tolist() == [1, 0, 1]


def test_of_two_questions_one_is_asked_for():
    names = ("Answer.good.A", "Answer.good.B", "Answer.safe.A", "Answer.safe.B")
    given = rows(*[("true", "false", "false", "true"), ("false", "true", "true", "false")] * 3, names=names)
    with pytest.raises(
        ValueError, match=r"Answer.good.A and Answer.safe.A belong to questions that each name"
    ):
        load_pairs(given, featuriser="format")
    safe = load_pairs(given, columns=Columns(label="Answer.safe.B"), featuriser="format")
    assert safe.labels.tolist() == [-1, 1] * 3
    assert "Answer.good.A" in safe.unused
