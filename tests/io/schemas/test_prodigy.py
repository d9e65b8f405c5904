"""Prodigy's choice tasks; `test_wild.py` and its neighbours read, turn and export these files."""

import pytest
from wild.arenas import word
from wild.case import Case
from wild.chosen import each

from robust_rlhf_jax.io import load_pairs

FACTS = ("prompt", "row", "rater")


@each
def by_letter(i, item):
    (who, value), *_ = item.votes
    return {
        "text": item.prompt, "options": [{"id": "A", "text": item.a}, {"id": "B", "text": item.b}],
        "_input_hash": 7 * i, "_task_hash": i, "_view_id": "choice", "config": {"choice_style": "single"},
        "accept": [word(value, "A", "B", "")], "answer": "accept", "_timestamp": 1700000000 + i,
        "_annotator_id": who, "_session_id": f"db-{who}",
    }  # fmt: skip


@each
def by_number(i, item):
    (who, value), *_ = item.votes
    options = [{"id": 1, "text": item.a}, {"id": 2, "text": item.b}, {"id": 3, "text": "About the same"}]
    return {"prompt": item.prompt, "options": options, "accept": [word(value, 1, 2, 3)], "answer": "accept",
            "_session_id": who}  # fmt: skip


CASES = (
    Case("prodigy", by_letter, facts=FACTS),
    Case("prodigy_with_ties", by_number, options={"ties": True}, facts=FACTS),
)


def read(*answers, options=("x y", "p q", "k l")):
    rows = [
        {"options": [{"id": "abc"[i], "text": text} for i, text in enumerate(options)],
         "accept": accept, "answer": answer}
        for accept, answer in answers
    ]  # fmt: skip
    return load_pairs(rows, featuriser="format")


def test_of_several_options_the_ticked_one_is_better_than_each():
    found = read((["b"], "accept"))
    assert list(zip(found.texts.chosen, found.texts.rejected, strict=True)) == [
        ("p q", "x y"),
        ("p q", "k l"),
    ]


@pytest.mark.parametrize(
    "odd", [([], "accept"), (["a", "b"], "accept"), (["a"], "reject"), (["a"], "ignore")]
)
def test_tasks_that_tick_not_one_option_make_no_pair(odd):
    found = read((["a"], "accept"), odd)
    assert found.rows.tolist() == [0, 0]
    assert "1 tasks without exactly one ticked option make no pair." in str(found.description)
