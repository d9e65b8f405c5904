"""SageMaker Ground Truth's output manifests, and the answers of its workers.

`test_wild.py` and its neighbours read, turn and export these files.
"""

import json

import numpy as np
import pytest
from wild import stores, worlds
from wild.arenas import word
from wild.case import Case
from wild.chosen import each

from robust_rlhf_jax.io import Columns, load_pairs


def called(value):
    return word(value, "Response A", "Response B", "Tie")


def sent(item):
    return {"prompt": item.prompt, "response_a": item.a, "response_b": item.b}


def labelled(value, name="preference", **more):
    """The label is the place of the class in the job's list of classes."""
    number = ("Response A", "Response B", "Tie").index(called(value))
    metadata = {
        "class-name": called(value), "confidence": 0.83, "type": "groundtruth/text-classification",
        "job-name": "labeling-job/compare", "human-annotated": "yes", "creation-date": "2024-10-18T22:18:13.527256",
    }  # fmt: skip
    return {name: number, f"{name}-metadata": metadata | more}


@each
def beside(i, item):
    return {"source": item.prompt, **sent(item), **labelled(item.vote)}


@each
def inside(i, item):
    return {"source": json.dumps(sent(item)), **labelled(item.vote, "compare-job")}


@each
def workers(i, item):
    annotations = [
        {"workerId": who, "annotationData": {"content": json.dumps({"better": {"label": called(value)}}), "s3Uri": ""}}
        for who, value in item.votes
    ]  # fmt: skip
    content = json.dumps({"source": sent(item)})
    return {"datasetObjectId": str(i), "dataObject": {"content": content}, "annotations": annotations}


TIES = {"ties": True}
CASES = (
    Case("ground_truth_manifest", beside, stores.jsonl("output.manifest.jsonl"), options=TIES),
    Case("ground_truth_source", inside, stores.jsonl("output.jsonl"), options=TIES),
    Case("ground_truth_workers", workers, stores.json_array(), options=TIES | {"votes": 3},
         facts=("prompt", "row", "rater")),
)  # fmt: skip


@pytest.fixture
def items():
    return worlds.pairs(np.random.default_rng(0))


def test_of_two_jobs_one_is_asked_for(items):
    rows = [
        sent(item) | labelled(item.vote, "good") | labelled(-item.vote, "safe", **{"human-annotated": "no"})
        for item in items
    ]
    with pytest.raises(ValueError, match="good, safe all compare the sides: name one by --label"):
        load_pairs(rows, featuriser="format")
    safe = load_pairs(rows, columns=Columns(label="safe"), featuriser="format")
    assert safe.swapped.tolist() == [item.vote > 0 for item in items]
    assert f"Labels that the job's model gave, not people: {len(items)}" in str(safe.description)


@pytest.mark.parametrize(
    "answer", [lambda a: {"pick": {"a": a, "b": not a}}, lambda a: {"pick": "AB"[not a]}]
)
def test_buttons_and_words_of_workers_are_read_and_skipped_answers_are_not(items, answer):
    def said(who, content):
        return {"workerId": who, "annotationData": {"content": json.dumps(content)}}

    rows = [
        {"dataObject": {"content": json.dumps(sent(item))},
         "annotations": [said("w1", answer(item.vote > 0)), said("w2", {"pick": None, "comment": "a"})]}
        for item in items
    ]  # fmt: skip
    found = load_pairs(rows, columns=Columns(label="pick"), featuriser="format")
    assert found.swapped.tolist() == [item.vote < 0 for item in items]
    assert set(found.raters) == {"w1"}
    with pytest.raises(ValueError, match="pick, comment all compare the sides: name one by --label"):
        load_pairs(rows, featuriser="format")


def test_a_class_that_names_no_side_is_asked_about(items):
    rows = [
        sent(item) | labelled(item.vote, **{"class-name": word(item.vote, "good", "poor", "")})
        for item in items
    ]
    with pytest.raises(ValueError, match=r"holds 'good', 'poor', which name no side: .* --first-is"):
        load_pairs(rows, featuriser="format")
    found = load_pairs(rows, columns=Columns(first_is="good"), featuriser="format")
    assert found.swapped.tolist() == [item.vote < 0 for item in items]
