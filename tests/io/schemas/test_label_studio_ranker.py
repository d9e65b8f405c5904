"""Label Studio's rankings of the items of a list.

`test_wild.py` and its neighbours read, turn and export these files.
"""

import dataclasses
import json

import numpy as np
import pytest
from wild import stores, worlds
from wild.case import Case
from wild.truths import every_pair

from robust_rlhf_jax.io import Columns, load_pairs

RATER = "7"


def listed(item):
    """The items in the order in which they were shown, with the titles of the template."""
    return [
        {"id": f"llm_{j}", "title": f"LLM {j}", "body": text} for j, text in enumerate(item.answers, start=1)
    ]


def order(item):
    return [f"llm_{1 + j}" for j in sorted(range(len(item.answers)), key=lambda j: -item.scores[j])]


def result(ids, name="rank"):
    return {
        "value": {"ranker": ids},
        "id": "PpwBv",
        "from_name": name,
        "to_name": "results",
        "type": "ranker",
    }


def task(i, item, *results):
    annotations = [{"id": 100 + i, "completed_by": int(RATER), "was_cancelled": False, "result": [*results]}]
    return {"id": i, "data": {"prompt": item.prompt, "items": listed(item)}, "annotations": annotations}


def nested(items):
    return [task(i, item, result({"rank": order(item)})) for i, item in enumerate(items)]


def flat(items):
    """JSON_MIN: a row for each annotation."""
    return [
        {"id": i, "prompt": item.prompt, "items": listed(item), "rank": [{"ranker": {"rank": order(item)}}],
         "annotator": int(RATER), "annotation_id": 100 + i, "created_at": "2024-03-09", "lead_time": 4.2}
        for i, item in enumerate(items)
    ]  # fmt: skip


def with_rater(items):
    return [dataclasses.replace(vote, rater=RATER) for vote in every_pair(items)]


def csv(items):
    return [
        {name: json.dumps(cell) if isinstance(cell, list) else cell for name, cell in row.items()}
        for row in flat(items)
    ]


OF_RANKS = {"world": worlds.rankings, "truth": with_rater, "facts": ("prompt", "row", "rater")}
CASES = (
    Case("label_studio_ranker", nested, stores.json_array("project-9.json"), **OF_RANKS),
    Case("label_studio_ranker_min", flat, stores.json_array("project-9-min.json"), **OF_RANKS),
    Case("label_studio_ranker_csv", csv, stores.table("project-9.csv"), **OF_RANKS),
)


@pytest.fixture
def items():
    return worlds.rankings(np.random.default_rng(0))


def test_an_order_may_stand_in_the_value_itself(items):
    """As Label Studio wrote it in 2023."""
    rows = [task(i, item, result(order(item))) for i, item in enumerate(items)]
    expected = load_pairs(nested(items), featuriser="format")
    found = load_pairs(rows, featuriser="format")
    assert found.texts == expected.texts
    assert found.labels.tolist() == expected.labels.tolist()


def test_buckets_are_asked_about(items):
    rows = [
        task(i, item, result({"best": order(item)[:1], "ads": [], "_": order(item)[1:]}))
        for i, item in enumerate(items)
    ]
    with pytest.raises(
        ValueError, match=r"question rank sorts the items into buckets \(best, ads\), and nothing"
    ):
        load_pairs(rows, featuriser="format")


def test_of_two_rankings_one_is_asked_for(items):
    rows = [
        task(i, item, result({"good": order(item)}, "good"), result({"safe": order(item)[::-1]}, "safe"))
        for i, item in enumerate(items)
    ]
    with pytest.raises(ValueError, match="good, safe all compare the sides: name one by --label"):
        load_pairs(rows, featuriser="format")
    good, safe = (
        load_pairs(rows, columns=Columns(label=name), featuriser="format").labels for name in ("good", "safe")
    )
    assert good.tolist() == [-label for label in safe.tolist()]


def test_skipped_tasks_make_no_pair_and_several_people_rank(items):
    rows = nested(items)
    rows[0]["annotations"][0]["was_cancelled"] = True
    rows[1]["annotations"] = []
    other = {"completed_by": {"email": "b@x.org"}, "result": [result({"rank": order(items[2])[::-1]})]}
    rows[2]["annotations"].append(other)
    found = load_pairs(rows, featuriser="format")
    assert len(found.labels) == 6 * (len(items) - 1)
    assert "2 tasks have no ranking, and make no pair" in str(found.description)
    mine, others = (found.labels[(found.rows == 2) & (found.raters == who)] for who in (RATER, "b@x.org"))
    assert others.tolist() == [-label for label in mine.tolist()]


def test_items_that_are_not_listed_are_asked_for(items):
    rows = nested(items)
    for row in rows:
        del row["data"]["items"]
    with pytest.raises(
        ValueError, match=r"no column lists the items that were ranked \(llm_1, llm_2, llm_3\)"
    ):
        load_pairs(rows, featuriser="format")
    for row in rows:
        row["data"]["items"] = [{"id": "llm_1", "body": "alone"}]
    with pytest.raises(ValueError, match="question rank ranks no two items whose texts items has"):
        load_pairs(rows, featuriser="format")
