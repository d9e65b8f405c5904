"""A flag for each side; `test_wild.py` and its neighbours read these files, too."""

import numpy as np
import pytest
from wild import stores, worlds
from wild.case import Case
from wild.chosen import each

from robust_rlhf_jax.io import Columns, load_pairs


@each
def chosen_after_the_side(i, item):
    sides = {"prompt": item.prompt, "response_a": item.a, "response_b": item.b}
    return sides | {"a_chosen": int(item.vote > 0), "b_chosen": int(item.vote < 0)}


@each
def won_in_words(i, item):
    sides = {"question": item.prompt, "answer_1": item.a, "answer_2": item.b}
    return sides | {
        "won_answer_1": "yes" if item.vote > 0 else "",
        "won_answer_2": "yes" if item.vote < 0 else "",
    }


@each
def with_ties(i, item):
    flags = {"winner_a": item.vote > 0, "winner_b": item.vote < 0, "tie": item.vote == 0}
    return {"prompt": item.prompt, "response_a": item.a, "response_b": item.b} | flags


@each
def of_a_platform(i, item):
    """A radio button of MTurk is a column for each of its answers."""
    sides = {"Input.prompt": item.prompt, "Input.response_a": item.a, "Input.response_b": item.b}
    flags = (("response_a", item.vote > 0), ("response_b", item.vote < 0))
    return sides | {f"Answer.preference.{side}": str(won).upper() for side, won in flags}


CASES = (
    Case("flag_of_each_side_on_a_platform", of_a_platform, stores.table()),
    Case("flag_of_each_side", chosen_after_the_side),
    Case("flag_of_each_side_in_words", won_in_words, stores.table()),
    Case("flag_of_each_side_and_of_ties", with_ties, options={"ties": True}),
)


def of_numbers(a, b, n=12):
    return [
        {"price_a": i, "price_b": 3, "time_a": 1, "time_b": i % 5, "chosen_a": a(i), "chosen_b": b(i)}
        for i in range(n)
    ]


def test_options_of_numbers_have_flags_too():
    found = load_pairs(of_numbers(lambda i: i % 2, lambda i: 1 - i % 2))
    assert found.names == ("price", "time")
    assert found.labels.tolist() == [-1, 1] * 6


@pytest.mark.parametrize(
    "names", [("choice1", "choice2"), ("chosenA", "chosenB"), ("a_is_better", "b_is_better")]
)
def test_flags_have_their_side_before_or_after(names):
    rows = [
        {"price_a": i, "price_b": 3, "time_a": 1, "time_b": i % 5} | dict(zip(names, flags, strict=True))
        for i in range(12)
        for flags in [(i % 2, 1 - i % 2)]
    ]
    assert load_pairs(rows).labels.tolist() == [-1, 1] * 6


def test_neither_is_a_tie_and_both_are_a_bad_row():
    rows = of_numbers(lambda i: int(i > 0), lambda i: 0)
    assert load_pairs(rows).labels.tolist() == [0] + [1] * 11
    rows[4]["chosen_b"] = 1
    with pytest.raises(ValueError, match=r"row 5, column chosen_a holds the unknown label '1 and 1'"):
        load_pairs(rows)


def test_beside_a_column_of_ties_one_of_three_must_be_set():
    rows = with_ties(worlds.pairs(np.random.default_rng(1)))
    rows[2] |= {"winner_a": False, "winner_b": False, "tie": False}
    with pytest.raises(ValueError, match=r"row 3, column winner_a holds the unknown label 'False and False'"):
        load_pairs(rows, featuriser="format")


def test_flags_of_both_sides_in_many_rows_say_something_else():
    rows = of_numbers(lambda i: 1, lambda i: i % 2)
    with pytest.raises(ValueError, match=r"no label|lacks the column"):
        load_pairs(rows)


@pytest.mark.parametrize("numbers", [("a_best", "b_best"), ("rank_a", "rank_b")])
def test_columns_of_raters_come_before_numbers_of_the_sides(numbers):
    rows = [
        {"response_a": f"x {i}", "response_b": f"y {i}", "annotator_1": "ab"[i % 2], "annotator_2": "ab"[i % 3 > 0]}
        | dict(zip(numbers, (i % 2, 1 - i % 2), strict=True))
        for i in range(30)
    ]  # fmt: skip
    found = load_pairs(rows, featuriser="format")
    assert set(found.raters) == {"1", "2"}
    assert found.n_pairs == 60


def test_votes_of_two_raters_are_no_flags():
    rows = [
        {"response_0": f"x {i}", "response_1": f"y {i}", "vote_1": int(i % 5 == 0), "vote_2": int(i % 5 == 1)}
        for i in range(30)
    ]
    assert set(load_pairs(rows, featuriser="format").raters) == {"1", "2"}


def test_flags_of_which_both_are_0_in_many_rows_are_no_raters():
    """Pick-a-Pic's `has_label` is false there."""
    rows = [
        {"text_0": f"x {i}", "text_1": f"y {i}", "label_0": int(i % 5 in (1, 2)), "label_1": int(i % 5 > 2)}
        for i in range(30)
    ]
    with pytest.raises(ValueError, match=r"label_0 and label_1 score them"):
        load_pairs(rows, featuriser="format")
    # Raters who agree on either side now and then are raters.
    rows = [
        {"text_0": f"x {i}", "text_1": f"y {i}", "label_0": i % 2, "label_1": int(i % 3 > 0)}
        for i in range(30)
    ]
    assert set(load_pairs(rows, featuriser="format").raters) == {"0", "1"}


@pytest.mark.parametrize("flags", [("a_is_better",), ("a_chosen", "b_chosen"), ("rank_b", "rank_a")])
def test_flags_and_ranks_of_sides_are_asked_about_where_they_contradict_the_label(flags):
    items = worlds.pairs(np.random.default_rng(1))
    for wrong in (True, False):
        rows = [
            {"prompt": item.prompt, "response_a": item.a, "response_b": item.b}
            | {"winner": "a" if item.vote > 0 else "b"}
            | {name: int(((item.vote > 0) == (k == 0)) != wrong) for k, name in enumerate(flags)}
            for item in items
        ]
        if not wrong:
            assert load_pairs(rows, featuriser="format").n_pairs == len(rows)
            continue
        with pytest.raises(ValueError, match=f"winner and {flags[0] if len(flags) < 2 else '.* and '}"):
            load_pairs(rows, featuriser="format")
        asked = Columns(label="winner")
        assert load_pairs(rows, featuriser="format", columns=asked).n_pairs == len(rows)


@pytest.mark.parametrize("wrong", [24, 21, 0])
@pytest.mark.parametrize(
    "names", [("score_a", "score_b"), ("Rating A", "Rating B"), ("response_a_reward", "response_b_reward")]
)
def test_scores_are_asked_about_where_they_contradict_nearly_all_labels(names, wrong):
    """People may contradict scores now and then."""
    rows = [
        {"response_a": f"x {i}", "response_b": f"y {i}", "winner": "ab"[i % 2]}
        | {name: 1 + ((i + k) % 2 == (i < wrong)) for k, name in enumerate(names)}
        for i in range(24)
    ]
    if wrong < 24:
        assert load_pairs(rows, featuriser="format").swapped.tolist() == [False, True] * 12
    else:
        with pytest.raises(
            ValueError, match=rf"winner and {names[0]} and {names[1]} .* in nearly all rows: give --label"
        ):
            load_pairs(rows, featuriser="format")
        assert load_pairs(rows, columns=Columns(label="winner"), featuriser="format").n_pairs == 24


@pytest.mark.parametrize("wrong", [True, False])
@pytest.mark.parametrize("column", ["loser", "worse_response", "rejected_side"])
def test_a_loser_that_is_the_winner_is_asked_about(column, wrong):
    rows = [
        {"response_1": f"x {i}", "response_2": f"y {i}", "winner": 1 + i % 2, column: 1 + (i + 1 - wrong) % 2}
        for i in range(12)
    ]
    if wrong:
        with pytest.raises(ValueError, match=f"winner and {column} name the same side in nearly all rows"):
            load_pairs(rows, featuriser="format")
        assert load_pairs(rows, columns=Columns(label="winner"), featuriser="format").n_pairs == 12
    else:
        assert load_pairs(rows, featuriser="format").n_pairs == 12


@pytest.mark.parametrize(("column", "cell"), [("is_rejected", 1), ("rejected_by", "Response 1")])
def test_a_column_that_is_the_same_in_all_rows_names_no_loser(column, cell):
    """A flag of rows, or of who rejected them, where nearly every first side won."""
    rows = [
        {"response_1": f"x {i}", "response_2": f"y {i}", "winner": 1 if i else 2, column: cell}
        for i in range(12)
    ]
    assert load_pairs(rows, featuriser="format").swapped.sum() == 1


def test_the_winner_may_be_the_more_harmful_side():
    rows = [
        {"response_1": f"x {i}", "response_2": f"y {i}", "winner": 1 + i % 2, "more_harmful": 1 + i % 2}
        for i in range(12)
    ]
    assert load_pairs(rows, featuriser="format").swapped.tolist() == [False, True] * 6


@pytest.mark.parametrize("label", [True, False])
def test_flags_called_as_numbered_sides_are_no_raters(label):
    """Their 0 and 1 would be the numbers of the sides."""
    rows = [
        {"response_0": f"x {i}", "response_1": f"y {i}", "winner_0": i % 2, "winner_1": 1 - i % 2}
        | ({"winner": 1 - i % 2} if label else {})
        for i in range(8)
    ]
    found = load_pairs(rows, featuriser="format")
    assert (found.n_pairs, found.raters) == (8, None)
    assert found.labels.tolist() == [-1, 1] * 4


def test_sides_called_left_and_right_have_flags():
    rows = [
        {"left": f"x {i}", "right": f"y {i}", "choice_left": i % 2, "choice_right": 1 - i % 2}
        for i in range(8)
    ]
    assert load_pairs(rows, featuriser="format").labels.tolist() == [-1, 1] * 4
