"""A column that says of one side whether it won; `test_wild.py` reads these files, too."""

import pytest
from wild import stores
from wild.case import Case
from wild.chosen import each

from robust_rlhf_jax.io import load_pairs


@each
def b_wins(i, item):
    return {"prompt": item.prompt, "response_a": item.a, "response_b": item.b, "b_wins": item.vote < 0}


@each
def left_won(i, item):
    told = "tie" if item.vote == 0 else "yes" if item.vote > 0 else "no"
    return {"prompt": item.prompt, "left": item.a, "right": item.b, "left_won": told}


@each
def top_and_bottom(i, item):
    told = "both" if item.vote == 0 else "top" if item.vote > 0 else "bottom"
    return {"prompt": item.prompt, "response_top": item.a, "response_bottom": item.b, "preference": told}


@each
def potato(i, item):
    """A table of Potato's, with a box for each answer to a question."""
    ticks = {"preference:::A": "1" if item.vote > 0 else "", "preference:::B": "1" if item.vote < 0 else ""}
    return {"user": f"u{i % 3}", "prompt": item.prompt, "text_a": item.a, "text_b": item.b} | ticks


CASES = (
    Case("flag_of_the_second_side", b_wins, stores.jsonl()),
    Case("flag_of_left", left_won, stores.table(), options={"ties": True}),
    Case("top_and_bottom", top_and_bottom, stores.table(), options={"ties": True}),
    Case("potato_boxes", potato, stores.table()),
)


def rows(n: int = 20, **more) -> list[dict]:
    """`more`: the cells of even rows, and of odd ones."""
    return [
        {"prompt": f"p{i}", "response_a": f"x {i}", "response_b": f"y {i}"}
        | {k: v[i % 2] for k, v in more.items()}
        for i in range(n)
    ]


@pytest.mark.parametrize("n", [20, 5000])
@pytest.mark.parametrize(
    ("name", "first"),
    [("a_is_better", True), ("A wins", True), ("a_won", True), ("prefer_a", True), ("is_a_better", True),
     ("response_a_is_better", True), ("model_b_wins", False), ("prefers_b", False), ("response_b_won", False),
     ("a_preferred", True), ("picked_a", True), ("chose_b", False), ("b_selected", False)],
)  # fmt: skip
@pytest.mark.parametrize(("yes", "no"), [(True, False), (1, 0), ("yes", "no"), ("oui", "non")])
def test_a_flag_names_the_side_that_won(name, first, yes, no, n):
    found = load_pairs(rows(n, **{name: (yes, no)}), featuriser="format")
    assert found.swapped.tolist() == [not first, first] * (n // 2)


@pytest.mark.parametrize("n", [20, 5000])
@pytest.mark.parametrize(
    ("name", "first"),
    [("a_lost", True), ("B loses", False), ("a_is_worse", True), ("b_rejected", False), ("response_a_rejected", True),
     ("is_a_worse", True), ("rejected_b", False), ("reject_a", True), ("model_b_lost", False)],
)  # fmt: skip
@pytest.mark.parametrize(("yes", "no"), [(True, False), ("1", "0"), ("yes", "no"), ("ja", "nein")])
def test_a_flag_of_the_side_that_lost_is_turned_round(name, first, yes, no, n):
    found = load_pairs(rows(n, **{name: (yes, no)}), featuriser="format")
    assert found.swapped.tolist() == [first, not first] * (n // 2)
    assert f"yes is the {'second' if first else 'first'} side" in found.description.roles["label"]


def test_flags_of_both_that_lost_and_one_that_won_are_asked_about():
    with pytest.raises(ValueError, match="no label"):
        load_pairs(rows(a_lost=(True, False), a_wins=(False, True)), featuriser="format")


@pytest.mark.parametrize("cells", [(1, 3), ("a", "b"), (True, True), ("yes", "maybe")])
def test_what_is_no_flag_is_asked_about(cells):
    with pytest.raises(ValueError, match="no label"):
        load_pairs(rows(a_wins=cells), featuriser="format")


def test_a_flag_that_contradicts_a_label_is_asked_about():
    assert (
        load_pairs(rows(a_wins=(1, 0), winner=("a", "b")), featuriser="format").swapped.tolist()
        == [False, True] * 10
    )
    with pytest.raises(ValueError, match="winner and a_wins both say which side won, and disagree"):
        load_pairs(rows(a_wins=(1, 0), winner=("b", "a")), featuriser="format")


def test_a_flag_without_a_cell_misses_it():
    with pytest.raises(ValueError, match=r"row 21, column a_wins is missing"):
        load_pairs([*rows(a_wins=(1, 0)), *rows(1, a_wins=("", ""))], featuriser="format")


def test_a_flag_decides_between_numbers():
    made = [{"price_a": i, "price_b": 9, "time_a": 1, "time_b": i % 3, "b_wins": i % 2} for i in range(20)]
    assert load_pairs(made).swapped.tolist() == [False, True] * 10


@pytest.mark.parametrize("flags", [{"a_wins": (1, 0)}, {"a_chosen": (1, 0), "b_chosen": (0, 1)}])
def test_flags_beside_changed_places_are_asked_about(flags):
    made = [row | {"swapped": i % 3 == 0} for i, row in enumerate(rows(**flags))]
    with pytest.raises(ValueError, match=r"column swapped says in which rows .* may name places or columns"):
        load_pairs(made, featuriser="format")


def test_what_is_called_after_a_number_may_be_a_raters():
    made = [{"response_0": f"x {i}", "response_1": f"y {i}", "chosen_1": i % 2} for i in range(20)]
    with pytest.raises(ValueError, match="--label"):
        load_pairs(made, featuriser="format")
