"""Answers that a row, or a prompt, has twice."""

import pytest

from robust_rlhf_jax.io import load_pairs

TEXTS = [["Yes.", "Yes.", "No."], ["Yes.", "Yes.", "Yes."], ["No.", "Perhaps.", "Yes."]]


def lists():
    return [{"prompt": f"p{i}", "responses": texts, "scores": [3, 1, 2]} for i, texts in enumerate(TEXTS)]


def columns():
    return [
        {"prompt": f"p{i}", "ranking": "A>C>B"} | dict(zip(("answer_a", "answer_b", "answer_c"), texts, strict=True))
        for i, texts in enumerate(TEXTS)
    ]  # fmt: skip


def a_row_each():
    return [
        {"prompt": f"p{i}", "response": text, "score": score}
        for i, texts in enumerate(TEXTS)
        for text, score in zip(texts, (3, 1, 2), strict=True)
    ]


@pytest.mark.parametrize("write", [lists, columns, a_row_each])
def test_equal_answers_make_no_pair(write):
    found = load_pairs(write(), featuriser="format")
    assert found.n_pairs == 2 + 0 + 3
    assert all(a != b for a, b in zip(found.texts.chosen, found.texts.rejected, strict=True))


def test_of_equal_answers_one_may_be_the_chosen_one():
    rows = [
        {"prompt": f"p{i}", "response": f"{text} {i}", "chosen": j == 0}
        for i, texts in enumerate(TEXTS * 4)
        for j, text in enumerate(texts)
    ]
    found = load_pairs(rows, featuriser="format")
    assert found.n_pairs == 4 * (1 + 0 + 2)
