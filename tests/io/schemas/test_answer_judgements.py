"""What a cell says of several answers, and what it cannot say."""

import pytest
from wild import truths
from wild.rows import choices, chosen_texts, read

from robust_rlhf_jax.io.schemas.answer_judgements import by_best, by_best_and_worst, by_order, ranking_in


def test_missing_answers_make_no_pairs(tmp_path):
    rows = [
        {"prompt": "p", "response_a": f"A {i}", "response_b": f"B {i}", "response_c": "" if i % 2 else f"C {i}",
         "best": "AB"[i % 2]}
        for i in range(10)
    ]  # fmt: skip
    assert len(read(tmp_path, rows).labels) == 5 * 2 + 5


def test_answers_as_good_as_each_other_are_ties(tmp_path):
    rows = [
        {"prompt": f"p{i}", **{f"response_{c}": f"{c} {i}" for c in "abc"}, "ranking": "B>A=C"}
        for i in range(8)
    ]
    votes = truths.read_votes(read(tmp_path, rows))
    assert sum(vote.tie for vote in votes) == 8
    assert len(votes) == 24


@pytest.mark.parametrize(
    ("cell", "order"),
    [
        ("B>A>C", [["B"], ["A"], ["C"]]),
        ("B >> A=C", [["B"], ["A", "C"]]),
        ("C<A<B", [["B"], ["A"], ["C"]]),
        ("2, 1;3", [["2"], ["1"], ["3"]]),
        ("bca", [["b"], ["c"], ["a"]]),
        ('["B", ["A", "C"]]', [["B"], ["A", "C"]]),
        ([2, 1], [["2"], ["1"]]),
        ("A=B", [["A", "B"]]),
        (None, []),
        ("", []),
    ],
)
def test_a_ranking_is_read_from_the_best(cell, order):
    assert ranking_in(cell) == order


def test_what_is_no_ranking_is_said():
    called = {"a": 0, "b": 1, "c": 2}
    assert by_order("b>b", called).startswith("holds no order")
    assert by_order("b>d", called).startswith("holds no order")
    assert by_order("b", called).startswith("holds no order")
    assert sorted(by_order("c>a", called)) == [(2, 0, 1.0)]


def test_a_tie_is_between_all(tmp_path):
    rows = [row | {"best": "tie" if i % 2 else "B"} for i, row in enumerate(choices([0] * 8))]
    votes = truths.read_votes(read(tmp_path, rows))
    assert (sum(vote.tie for vote in votes), len(votes)) == (4 * 3, 4 * 3 + 4 * 2)


def test_best_and_worst_meet_once():
    called = {"a": 0, "b": 1, "c": 2, "d": 3}
    pairs = [(0, 3, 1.0), (1, 0, 1.0), (1, 2, 1.0), (1, 3, 1.0), (2, 3, 1.0)]
    assert sorted(by_best_and_worst("b", "d", called, "worst")) == pairs
    assert by_best_and_worst("b", None, called, "worst") == by_best("b", called)
    assert (
        by_best_and_worst("b", "b", called, "worst")
        == "holds 'b' beside 'b' in worst: give two of the answers"
    )


ABC = {"response_a": "A1", "response_b": "B1", "response_c": "C1"}


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ({"best": None}, "names no best answer"),
        ({"best": "c", "rejected": None}, "beside None in rejected: give two"),
        ({"best": "a", "rejected": "a"}, "beside 'a' in rejected: give two"),
        ({"best": None, "worst": "a"}, "names no best answer"),
    ],
)
def test_what_is_missing_makes_no_pair(tmp_path, cells, said):
    rows = [
        {"prompt": f"p{i}", **ABC, **(cells if i == 2 else dict(zip(cells, "bc", strict=False)))}
        for i in range(6)
    ]
    with pytest.raises(ValueError, match=f"row 3, .*{said}"):
        read(tmp_path, rows)


def test_ranks_belong_to_the_answers_that_are_there(tmp_path):
    rows = [
        {
            "prompt": f"p{i}",
            **ABC,
            "response_a": None if i == 0 else "A1",
            "ranking": "2,1" if i == 0 else "1,3,2",
        }
        for i in range(4)
    ]
    votes = truths.read_votes(read(tmp_path, rows, ranking="ranks"))
    assert (votes[0].chosen, votes[0].rejected) == ("C1", "B1")
    rows[0]["ranking"] = "3,2,1"
    votes = truths.read_votes(read(tmp_path, rows, ranking="ranks"))
    assert (votes[0].chosen, votes[0].rejected) == ("C1", "B1")


def of_texts(answers, best):
    return [{"prompt": "p", "responses": a, "best_response": b} for a, b in zip(answers, best, strict=True)]


def test_a_text_names_itself_and_none_that_is_like_it(tmp_path):
    rows = of_texts([["Paris", "paris.", "London"], ["Yes!", "No", "yes"]], ["Paris", "Yes!"])
    assert chosen_texts(read(tmp_path, rows)) == ["Paris", "Paris", "Yes!", "Yes!"]
    rows = of_texts([["B", "A", "C"], ["2", "3", "1"], ["x", "y", "z"]], ["B", "2", "y"])
    assert chosen_texts(read(tmp_path, rows))[::2] == ["B", "2", "y"]
    rows = of_texts([["Paris", "Paris", "London"], ["a1", "b1", "c1"]], ["Paris", "b1"])
    votes = truths.read_votes(read(tmp_path, rows))
    assert [(v.chosen, v.rejected) for v in votes] == [("Paris", "London"), ("b1", "a1"), ("b1", "c1")]


def test_a_letter_that_is_also_another_text_is_refused(tmp_path):
    rows = of_texts([["B", "A", "C"], ["x", "y", "z"], ["u", "v", "w"]], ["B", "C", "A"])
    with pytest.raises(ValueError, match=r"row 1, .*which names none"):
        read(tmp_path, rows)


def test_rankings_in_words_and_padded_numbers(tmp_path):
    words = "Response B, Response A, Response C"
    rows = [
        {"prompt": f"p{i}", **{f"response_{c}": f"{c} {i}" for c in "abc"}, "ranking": words}
        for i in range(4)
    ]
    assert sorted(chosen_texts(read(tmp_path, rows))[:3]) == ["a 0", "b 0", "b 0"]
    rows = [
        {"prompt": f"p{i}", **{f"response_0{j}": f"{j} {i}" for j in (1, 2, 3)}, "best": 3 - i % 2}
        for i in range(4)
    ]
    assert chosen_texts(read(tmp_path, rows))[::2] == ["3 0", "2 1", "3 2", "2 3"]
