"""Numbers that count the answers of a row: from 0, from 1, or as their columns are called."""

import pytest
from wild.rows import choices, chosen_texts, read


def test_numbers_that_could_count_from_0_or_1_are_asked_for(tmp_path):
    rows = choices([1, 2, 1, 2])
    with pytest.raises(ValueError, match=r"best holds 1, 2, of 3 answers: .*--first-is 0"):
        read(tmp_path, rows)
    assert chosen_texts(read(tmp_path, rows, first_is="0"))[0] == "Answer b of case 0."
    assert chosen_texts(read(tmp_path, rows, first_is="1"))[0] == "Answer a of case 0."
    with pytest.raises(ValueError, match="the number of the first answer is 0 or 1"):
        read(tmp_path, rows, first_is="2")


def of_two(numbers, name):
    return [{"prompt": f"p{i}", "responses": [f"a{i}", f"b{i}"], name: n} for i, n in enumerate(numbers)]


@pytest.mark.parametrize("name", ["label", "preference", "choice"])
def test_of_two_answers_1_may_be_the_first_or_the_second(tmp_path, name):
    rows = of_two([1, 0, 0, 1], name)
    with pytest.raises(ValueError, match=rf"{name} holds 0, 1, of 2 answers: .*--first-is 0"):
        read(tmp_path, rows)
    assert chosen_texts(read(tmp_path, rows, first_is="0")) == ["b0", "a1", "a2", "b3"]
    assert chosen_texts(read(tmp_path, rows, first_is="1")) == ["a0", "b1", "b2", "a3"]


@pytest.mark.parametrize("name", ["best", "chosen", "better_response_id", "preferred_idx"])
def test_of_two_answers_an_index_counts_from_0(tmp_path, name):
    assert chosen_texts(read(tmp_path, of_two([1, 0], name))) == ["b0", "a1"]
    assert chosen_texts(read(tmp_path, of_two([1, 2], name))) == ["a0", "b1"]


def test_a_cell_that_names_no_answer_is_told_by_its_row(tmp_path):
    with pytest.raises(ValueError, match=r"row 3, .*best.* 9, which names none of the answers"):
        read(tmp_path, choices([0, 1, 9, 2, *([1] * 300)]), first_is="0")


def numbered(numbers, first, name="best_idx"):
    return [
        {"prompt": f"p{i}", **{f"response_{first + j}": f"{j} of {i}" for j in range(3)}, name: n}
        for i, n in enumerate(numbers)
    ]


def test_an_index_beside_numbered_columns_is_asked_about(tmp_path):
    for rows in (numbered([0, 1, 2], 1), numbered([1, 2, 1], 1), numbered([1, 2, 3], 0, "best")):
        with pytest.raises(ValueError, match=r"say whether the first one is 0 or 1, by --first-is 0"):
            read(tmp_path, rows)
    told = read(tmp_path, numbered([0, 1, 2], 1), first_is="0")
    assert chosen_texts(told)[::2] == ["0 of 0", "1 of 1", "2 of 2"]
    told = read(tmp_path, numbered([1, 2, 3], 0, "best"), first_is="1")
    assert chosen_texts(told)[::2] == ["0 of 0", "1 of 1", "2 of 2"]
    assert chosen_texts(read(tmp_path, numbered([1, 2, 3], 1)))[::2] == ["0 of 0", "1 of 1", "2 of 2"]


def test_a_dozen_numbered_answers_are_all_read(tmp_path):
    rows = [{"prompt": f"p{i}", **{f"response_{j}": f"{j} of {i}" for j in range(1, 13)}, "best": 12 - i % 3}
            for i in range(6)]  # fmt: skip
    pairs = read(tmp_path, rows)
    assert pairs.n_pairs == 6 * 11
    assert chosen_texts(pairs)[0] == "12 of 0"
