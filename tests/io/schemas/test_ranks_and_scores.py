"""A rank and a score for each answer must agree, however a file holds them."""

import pytest

from robust_rlhf_jax.io import Columns, load_pairs

ASKED = "contradict each other"


def a_row_each(scores):
    return [
        {"prompt": f"p{i}", "response": f"x {i} {j}", "rank": j + 1, "score": score}
        for i in range(4) for j, score in enumerate(scores)
    ]  # fmt: skip


def objects(scores):
    return [
        {"prompt": f"p{i}", "responses": [{"text": f"x {i} {j}", "rank": j + 1, "score": score}
                                          for j, score in enumerate(scores)]}
        for i in range(4)
    ]  # fmt: skip


def lists(scores):
    return [
        {"prompt": f"p{i}", "responses": [f"x {i} {j}" for j in range(3)], "rank": [1, 2, 3], "score": list(scores)}
        for i in range(4)
    ]  # fmt: skip


def columns(scores):
    cells = [
        {f"response_{w}": f"x{w}", f"rank_{w}": j + 1, f"score_{w}": scores[j]} for j, w in enumerate("abc")
    ]
    return [{"prompt": f"p{i}"} | cells[0] | cells[1] | cells[2] for i in range(4)]


@pytest.mark.parametrize("write", [a_row_each, objects, lists, columns])
def test_those_that_agree_are_read(write):
    found = load_pairs(write([7, 5, 5]), featuriser="format")
    assert found.n_pairs == 12
    assert not found.swapped.any()


@pytest.mark.parametrize("write", [a_row_each, objects, lists, columns])
def test_those_that_contradict_each_other_are_asked_about(write):
    with pytest.raises(ValueError, match=ASKED):
        load_pairs(write([1, 2, 3]), featuriser="format")


@pytest.mark.parametrize("write", [a_row_each, objects, lists])
def test_the_caller_chooses(write):
    rows = write([1, 2, 3])
    by_rank, by_score = (
        load_pairs(rows, columns=Columns(label=name), featuriser="format") for name in ("rank", "score")
    )
    assert not by_rank.swapped.any()
    assert by_score.swapped.all()
