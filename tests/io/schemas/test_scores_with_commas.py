"""Scores and labels with a decimal comma are refused by name, however a file holds them."""

import pytest

from robust_rlhf_jax.io import Columns, load_pairs

SAID = "write numbers with a decimal point"


def a_row_each(i):
    return {"prompt": f"p{i // 3}", "response": f"x {i}", "score": ("4", "3,5", "5")[i % 3]}


def two_sides(i):
    return {
        "prompt": f"p{i}",
        "response_a": f"x {i}",
        "response_b": f"y {i}",
        "score_a": "3,5",
        "score_b": f"{i},25",
    }


def three_answers(i):
    return two_sides(i) | {"response_c": f"z {i}", "score_c": "1,5"}


@pytest.mark.parametrize("write", [a_row_each, two_sides, three_answers])
def test_scores_are_named(write):
    with pytest.raises(ValueError, match=f"column score.* holds '3,5' and the like: {SAID}"):
        load_pairs([write(i) for i in range(12)], featuriser="format")


@pytest.mark.parametrize("flags", [{}, {"scale": (0, 1)}])
def test_labels_are_named(flags):
    rows = [{"response_a": f"x {i}", "response_b": f"y {i}", "preference": f"0,{i}"} for i in range(10)]
    with pytest.raises(ValueError, match=f"column preference holds '0,0' and the like: {SAID}"):
        load_pairs(rows, columns=Columns(**flags), featuriser="format")


def test_a_label_with_a_comma_may_be_named():
    rows = [{"response_a": f"x {i}", "response_b": f"y {i}", "preference": f"1,{i % 2}"} for i in range(10)]
    found = load_pairs(rows, columns=Columns(first_is="1,0"), featuriser="format")
    assert found.labels.tolist() == [1, -1] * 5
