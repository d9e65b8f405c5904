"""Columns that say where the sides were shown, beside labels that may name places; `test_wild.py` reads the files."""

import pytest
from wild import stores
from wild.arenas import word
from wild.case import Case
from wild.chosen import each

from robust_rlhf_jax.io import Columns, load_pairs


def turned(column, *cells):
    """A label that names the columns, and a column that says in which rows the sides changed places."""

    @each
    def encode(i, item):
        sides = {"prompt": item.prompt, "response_a": item.a, "response_b": item.b}
        return sides | {column: cells[i % 2], "choice": word(item.vote, "left", "right", "tie")}

    return encode


ASKED = {"refused": "--label choice", "flags": {"--label": "choice"}, "options": {"ties": True}}
CASES = (
    Case("places_turned", turned("swapped", True, False), **ASKED),
    Case("places_turned_in_numbers", turned("is_flipped", 0, 1), stores.table(), **ASKED),
    Case("places_in_order", turned("display_order", "AB", "BA"), stores.table(), **ASKED),
    Case("places_in_order_by_another_name", turned("randomization", "a-b", "b-a"), stores.table(), **ASKED),
    Case("places_drawn_in_some_rows", turned("randomized", True, False), stores.table(), **ASKED),
    Case("places_of_one", turned("shown_first", "b", "a"), stores.parquet(), **ASKED),
    Case("places_of_the_left_one", turned("left_response", "response_b", "response_a"), **ASKED),
)


@pytest.mark.parametrize(
    ("sides", "label", "more"),
    [
        (("response_a", "response_b"), ("response_a", "response_b"), {"swapped": ("yes", "no")}),
        (
            ("response_a", "response_b"),
            ("m", "n"),
            {"model_a": "mm", "model_b": "nn", "swapped": ("yes", "no")},
        ),
        (
            ("response_a", "response_b"),
            ("model_a", "model_b"),
            {"model_a": "mm", "model_b": "nn", "flipped": (True, False)},
        ),
        (("response_a", "response_b"), ("A", "B"), {"order": ("AB", "BA")}),
        (("response_a", "response_b"), ("left", "right"), {"order": (3, 7)}),
        (("response_a", "response_b"), ("A", "B"), {"swapped": ("no", "no")}),
        (("response_a", "response_b"), ("left", "right"), {"arm": ("AB", "AC")}),
        (("left", "right"), ("left", "right"), {"order": ("LR", "RL")}),
        (("first", "second"), ("first", "second"), {}),
    ],
)
def test_a_label_that_names_columns_is_read(sides, label, more):
    rows = [
        {sides[0]: f"x {i}", sides[1]: f"y {i}", "choice": label[i % 2]}
        | {name: cells[i % 2] for name, cells in more.items()}
        for i in range(8)
    ]
    assert load_pairs(rows, featuriser="format").swapped.tolist() == [False, True] * 4


def test_a_tie_names_no_place():
    rows = [
        {"response_a": f"x {i}", "response_b": f"y {i}", "model_a": "m", "model_b": "n", "flipped": i % 2 > 0}
        | {"winner": ("model_a", "model_b", "tie", "tie (bothbad)")[i % 4]}
        for i in range(8)
    ]
    assert load_pairs(rows, featuriser="format").strength.tolist() == [1.0, 1.0, 0.0, 0.0] * 2


@pytest.mark.parametrize("more", [{}, {"left": "m", "right": "n"}])
@pytest.mark.parametrize("flags", [(True, False), ("Y", "N"), ("1.0", "0.0")])
def test_a_label_that_may_name_places_is_asked_about(more, flags):
    rows = [
        {"response_a": f"x {i}", "response_b": f"y {i}", "flipped": flags[i % 3 > 0]}
        | {"winner": ("left", "right", "tie")[i % 3]}
        | more
        for i in range(6)
    ]
    with pytest.raises(ValueError, match="column flipped says in which rows"):
        load_pairs(rows, featuriser="format")


def beside(column, cells, places):
    """Six rows with a winner called by its place, the first one's in two, beside a column of two cells in turn."""
    return [
        {"response_a": f"x {i}", "response_b": f"y {i}", column: cells[i % 2], "winner": places[i % 3 > 0]}
        for i in range(6)
    ]


@pytest.mark.parametrize(
    "column", ["presented_first", "Left Response", "answer_shown_first", "option_left", "displayed_left"]
)
@pytest.mark.parametrize("cells", [("a", "b"), ("response_a", "response_b")])
def test_the_side_that_was_shown_first_has_many_names(column, cells):
    rows = beside(column, cells, ("first", "second"))
    with pytest.raises(ValueError, match=f"column {column} says in which rows"):
        load_pairs(rows, featuriser="format")


@pytest.mark.parametrize(
    ("column", "cells"),
    [("left_is_a", (True, False)), ("A on left", ("yes", "no")), ("is_b_left", (0, 1)), ("a_shown_first", (1, 0)),
     ("first_is_response_b", ("1.0", "0.0")), ("model_a_was_first", (True, False)),
     ("position_a", ("left", "right")), ("response_b_position", (1, 2)), ("side_of_a", ("first", "second"))],
)  # fmt: skip
def test_where_one_side_was_shown_has_many_names(column, cells):
    rows = beside(column, cells, ("left", "right"))
    with pytest.raises(ValueError, match=f"column {column} says in which rows"):
        load_pairs(rows, featuriser="format")
    found = load_pairs(rows, columns=Columns(label="winner"), featuriser="format")
    assert found.swapped.tolist() == [False, True, True] * 2


@pytest.mark.parametrize(
    ("column", "cells"),
    [("left_is_a", (True, True)), ("position_a", ("left", "left")), ("position_a", (3, 17)), ("position", (1, 2)),
     ("a_side", ("north", "south")), ("data_first", (1, 0))],
)  # fmt: skip
def test_what_says_not_where_one_side_was_shown_is_left_out(column, cells):
    rows = beside(column, cells, ("left", "right"))
    assert load_pairs(rows, featuriser="format").swapped.tolist() == [False, True, True] * 2


@pytest.mark.parametrize(
    ("column", "cells"),
    [("order", ("A first", "B first")), ("seen", ("response_a on the left", "response_b on the left")),
     ("presentation", ("original", "reversed")), ("version", ("not swapped", "swapped")),
     ("shown", (["A", "B"], ["B", "A"])),
     ("trial", ("['response_a', 'response_b']", "['response_b', 'response_a']")), ("block", ("a/b", "b/a"))],
)  # fmt: skip
def test_orders_of_the_sides_are_known_by_what_they_say(column, cells):
    rows = beside(column, cells, ("left", "right"))
    with pytest.raises(ValueError, match=f"column {column} says in which rows"):
        load_pairs(rows, featuriser="format")


@pytest.mark.parametrize(
    "cells", [("first", "second"), ("A first", "A second"), ("original", "new"), (["A"], ["B"])]
)
def test_two_other_words_are_no_orders_of_the_sides(cells):
    rows = beside("block", cells, ("left", "right"))
    assert load_pairs(rows, featuriser="format").swapped.tolist() == [False, True, True] * 2


@pytest.mark.parametrize(
    ("names", "asked"), [(("m", "n"), True), (("m", "m"), False), (("m", "other"), False)]
)
def test_the_model_that_was_shown_first_says_where_the_sides_were(names, asked):
    rows = [row | {"model_a": "m", "model_b": "n"} for row in beside("left_model", names, ("left", "right"))]
    if not asked:
        assert load_pairs(rows, featuriser="format").swapped.tolist() == [False, True, True] * 2
        return
    with pytest.raises(ValueError, match="column left_model says in which rows"):
        load_pairs(rows, featuriser="format")


@pytest.mark.parametrize("orders", [("ab", "ba"), ("forward", "backward"), ("order_1", "order_2")])
@pytest.mark.parametrize("places", [True, False])
def test_verdicts_in_two_orders_that_contradict_each_other_name_places(orders, places):
    """Those that mostly agree name columns, and are two judgements."""
    rows = [
        {"response_a": f"x {i}", "response_b": f"y {i}", f"winner_{orders[0]}": "AB"[i % 2]}
        | {f"winner_{orders[1]}": "AB"[(i % 2) != (places if i else not places)]}
        for i in range(12)
    ]
    if places:
        with pytest.raises(
            ValueError, match=rf"winner_{orders[0]} and winner_{orders[1]} contradict .* by --label"
        ):
            load_pairs(rows, featuriser="format")
        asked = Columns(label=f"winner_{orders[0]}")
        assert load_pairs(rows, columns=asked, featuriser="format").swapped.tolist() == [
            i % 2 > 0 for i in range(12)
        ]
    else:
        assert {*load_pairs(rows, featuriser="format").raters} == {*orders}


@pytest.mark.parametrize("n", [2, 3, 9])
def test_a_few_contrary_verdicts_in_two_orders_may_be_chance(n):
    rows = [
        {"response_a": f"x {i}", "response_b": f"y {i}", "winner_ab": "A", "winner_ba": "AB"[i % 3 > 0]}
        for i in range(n)
    ]
    assert load_pairs(rows, featuriser="format").n_pairs == 2 * n


@pytest.mark.parametrize("column", ["seen", "presented", "displayed"])
def test_flags_of_rows_that_were_shown_name_no_sides(column):
    rows = [
        {"response_0": f"x {i}", "response_1": f"y {i}", "winner": ("first", "second")[i % 2]}
        | {column: int(i % 3 > 0)}
        for i in range(8)
    ]
    assert load_pairs(rows, featuriser="format").swapped.tolist() == [False, True] * 4


def test_people_may_be_called_so_beside_others():
    rows = [
        {"response_a": f"x {i}", "response_b": f"y {i}"}
        | {f"label_{who}": "AB"[(i + k) % 2] for k, who in enumerate(("ab", "ba", "cd"))}
        for i in range(6)
    ]
    assert {*load_pairs(rows, featuriser="format").raters} == {"ab", "ba", "cd"}


@pytest.mark.parametrize(
    ("label", "votes"),
    [
        ("labels", {"labels": ["left", "right"]}),
        ("votes", {"votes": {"ann": "right", "ben": "left"}}),
        ("label_ann", {"label_ann": "left", "label_ben": "right"}),
    ],
)
def test_votes_of_several_raters_may_name_places(label, votes):
    rows = [{"response_a": f"x {i}", "response_b": f"y {i}", "swapped": i % 2} | votes for i in range(6)]
    with pytest.raises(
        ValueError, match=f"column swapped says .* {label} may name .* give --first-is left if"
    ):
        load_pairs(rows, featuriser="format")
    assert load_pairs(rows, columns=Columns(first_is="left"), featuriser="format").n_pairs == 12
    for row in rows:
        row["swapped"] = 0
    assert load_pairs(rows, featuriser="format").n_pairs == 12


def test_sides_that_changed_places_in_every_row_are_asked_about():
    rows = [
        {"response_a": f"x {i}", "response_b": f"y {i}", "swapped": 1, "winner": "left"} for i in range(4)
    ]
    with pytest.raises(ValueError, match="column swapped says in which rows"):
        load_pairs(rows, featuriser="format")


def test_votes_for_the_second_place_alone_are_asked_about():
    rows = [
        {"response_a": f"x {i}", "response_b": f"y {i}", "swapped": i % 2, "votes": ["right", "right"]}
        for i in range(4)
    ]
    with pytest.raises(ValueError, match="votes may name places or columns: write there which side won"):
        load_pairs(rows, featuriser="format")


@pytest.mark.parametrize(
    "said",
    [
        ("order", (0, 1)),
        ("presentation_order", ("1", "2")),
        ("mirrored", (False, True)),
        ("inverted", ("no", "yes")),
    ],
)
def test_two_numbers_of_an_order_and_more_words_for_turned_sides_are_asked_about(said):
    name, cells = said
    rows = [
        {"response_a": f"x {i}", "response_b": f"y {i}", "verdict": "AB"[i % 3 > 0], name: cells[i % 2]}
        for i in range(12)
    ]
    with pytest.raises(ValueError, match=f"column {name} says in which rows the sides changed places"):
        load_pairs(rows, featuriser="format")
    rows = [row | {name: i} if name.endswith("order") else row | {name: False} for i, row in enumerate(rows)]
    assert load_pairs(rows, featuriser="format").n_pairs == 12


@pytest.mark.parametrize("n", [20, 5000])
@pytest.mark.parametrize(
    "name",
    ["randomized", "Randomised", "is_randomized", "random_order", "rand_order", "order_randomized", "counterbalanced",
     "permuted", "switch", "randomized_order"],
)  # fmt: skip
def test_rows_in_which_the_order_was_drawn_are_asked_about(name, n):
    rows = [
        {"response_a": f"x {i}", "response_b": f"y {i}", "winner": "AB"[i % 3 > 0], name: i % 2 > 0}
        for i in range(n)
    ]
    with pytest.raises(ValueError, match=f"column {name} may say in which rows .* give --label winner if"):
        load_pairs(rows, featuriser="format")
    assert load_pairs(rows, columns=Columns(label="winner"), featuriser="format").n_pairs == n
    every = [row | {name: True} for row in rows]
    assert load_pairs(every, featuriser="format").swapped.tolist() == [i % 3 > 0 for i in range(n)]


@pytest.mark.parametrize("name", ["random", "rand", "random_sample", "randomization_group", "seed"])
def test_other_flags_of_chance_are_none_of_places(name):
    rows = [
        {"response_a": f"x {i}", "response_b": f"y {i}", "winner": "AB"[i % 3 > 0], name: i % 2 > 0}
        for i in range(9)
    ]
    assert load_pairs(rows, featuriser="format").swapped.tolist() == [i % 3 > 0 for i in range(9)]
