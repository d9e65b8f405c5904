"""Columns of numbers of two sides that are no features, and those that are though their names are like such."""

import pytest

from robust_rlhf_jax.io import Columns, load_pairs


@pytest.mark.parametrize(
    "name", ["choix", "votes", "sku", "shown_at", "item_id", "user", "session", "zip_code", "order_no", "PLZ"]
)
def test_ids_times_and_votes_are_no_features_and_the_reason_is_told(name):
    rows = [
        {"price_a": i % 5, "price_b": 3, f"{name}_a": 7 * i % 13, f"{name}_b": i, "winner": "ab"[i % 2]}
        for i in range(9)
    ]
    found = load_pairs(rows)
    assert found.names == ("price",)
    assert found.unused[f"{name}_b"] == (
        f"{name} may be an id, a place, a time or the answer: call it otherwise if it is a feature"
    )


@pytest.mark.parametrize(
    "name",
    [
        "n_votes",
        "num_votes",
        "vote_count",
        "vote_share",
        "opens",
        "open_rate",
        "clicks",
        "total_likes",
        "ctr",
    ],
)
@pytest.mark.parametrize("decide", [True, False])
@pytest.mark.parametrize("sides", [("price_a", "price_b"), ("chosen_price", "rejected_price")])
def test_numbers_of_votes_are_features_unless_they_decide(name, decide, sides):
    """A film has votes of its own."""
    chosen = sides[0] == "chosen_price"
    votes = [side.replace("price", name) for side in sides]
    rows = []
    for i in range(12):
        won = chosen or i % 2 == 0
        more = won if decide else i % 3 > 0
        rows.append({sides[0]: i % 5, sides[1]: 3, votes[0]: 2 + more, votes[1]: 3 - more})
        rows[-1] |= {} if chosen else {"winner": "a" if won else "b"}
    found = load_pairs(rows)
    assert found.names == (("price",) if decide else ("price", name))
    assert not decide or {*votes} <= {*found.unused}


@pytest.mark.parametrize("name", ["rating", "quality", "score"])
def test_ratings_of_options_are_features_that_people_may_not_follow(name):
    """Where the cheap option always wins."""
    rows = [
        {"price_1": 3 + i % 2, "price_2": 4 - i % 2, f"{name}_1": 1 + i % 2, f"{name}_2": 2 - i % 2}
        | {"choice": 1 + i % 2}
        for i in range(12)
    ]
    assert load_pairs(rows).names == ("price", name)


def test_times_of_what_is_chosen_are_features():
    rows = [{"chosen_started_at": 8 + i % 3, "rejected_started_at": 9} for i in range(6)]
    assert load_pairs(rows).names == ("started_at",)


@pytest.mark.parametrize("wrong", [False, True])
def test_flags_beside_the_label_are_no_features(wrong):
    rows = [
        {"price_a": i % 5, "price_b": 3, "time_a": 2, "time_b": i % 7, "choice": "ab"[i % 2]}
        | {"chosen_a": int((i % 2 == 0) != wrong), "chosen_b": int((i % 2 == 1) != wrong)}
        for i in range(12)
    ]
    if wrong:
        with pytest.raises(ValueError, match="choice and chosen_a and chosen_b both say which side won"):
            load_pairs(rows)
    else:
        found = load_pairs(rows)
        assert (found.names, found.swapped.tolist()) == (("price", "time"), [False, True] * 6)


@pytest.mark.parametrize("label", ["chosen_option", "Chosen side", "chosen-option"])
def test_which_side_was_chosen_is_no_feature_of_one_side(label):
    rows = [{"price_1": i, "price_2": 3, "eco_1": 1, "eco_2": i % 2, label: 1 + i % 2} for i in range(6)]
    found = load_pairs(rows)
    assert found.names == ("price", "eco")
    assert found.swapped.tolist() == [False, True] * 3


def test_places_of_options_are_no_features():
    rows = [
        {"price_a": i, "price_b": 3, "pos_a": 1 + i % 2, "pos_b": 2 - i % 2, "choice": "ab"[i % 2]}
        for i in range(6)
    ]
    assert load_pairs(rows).names == ("price",)


def emails(labelled: bool = True, **more) -> list[dict]:
    """Two subject lines, of which the one with more opens won."""
    return [
        {"subject_a": f"Sale {i}", "subject_b": f"Deal {i}", "opens_a": 30 + i % 2, "opens_b": 31 - i % 2}
        | ({"winner": "BA"[i % 2]} if labelled else {})
        | more
        for i in range(20)
    ]


def test_what_people_did_with_the_sides_is_no_feature():
    found = load_pairs([row | {"length_a": i % 5, "length_b": 3} for i, row in enumerate(emails())])
    assert found.names == ("length",)
    assert {"opens_a", "opens_b"} <= {*found.unused}
    with pytest.raises(ValueError, match=r"if subject_a and subject_b are answers, .* with --label winner"):
        load_pairs(emails())
    asked = Columns(chosen="subject_a", rejected="subject_b", label="winner")
    assert load_pairs(emails(), columns=asked, featuriser="format").swapped.tolist() == [True, False] * 10


def test_what_people_did_without_a_label_is_asked_about():
    with pytest.raises(
        ValueError, match="if the side with more opens won, write into a column winner which one"
    ):
        load_pairs(emails(labelled=False))


def test_options_of_words_and_votes_alone_have_no_numbers():
    made = [{"subject_a": f"S {i}", "subject_b": f"D {i}", "votes_a": i, "votes_b": 9, "winner": "AB"[i % 2]}
            for i in range(20)]  # fmt: skip
    with pytest.raises(
        ValueError, match=r"no feature of the options a, b has numbers alone .* --label winner"
    ):
        load_pairs(made)


@pytest.mark.parametrize(
    "name", ["stimulus", "image", "Img", "video", "player", "number", "stimulus_number", "card_nr"]
)
@pytest.mark.parametrize(("sides", "words"), [(("left", "right"), ("left", "right")), (("1", "2"), (1, 2))])
def test_numbers_that_say_which_thing_it_is_are_no_features(name, sides, words):
    made = [
        {f"{name}_{sides[0]}": 7 * i % 5, f"{name}_{sides[1]}": i % 3, f"x_{sides[0]}": i, f"x_{sides[1]}": 4}
        | {f"y_{sides[0]}": i % 4, f"y_{sides[1]}": 1, "winner": words[i % 2]}
        for i in range(20)
    ]
    found = load_pairs(made)
    assert found.names == ("x", "y")
    assert "may be an id" in found.unused[f"{name}_{sides[0]}"]


@pytest.mark.parametrize("name", ["product", "object", "design", "code"])
@pytest.mark.parametrize("levels", [2, 40])
def test_many_whole_numbers_of_things_say_which_it_is(name, levels):
    """A few are levels of a design."""
    made = [
        {f"{name}_a": 7 * i % levels, f"{name}_b": 3 * i % levels, "x_a": i, "x_b": 4, "winner": "ab"[i % 2]}
        for i in range(60)
    ]
    assert load_pairs(made).names == ((name, "x") if levels == 2 else ("x",))
    of_options = [
        {"task": i // 2, name: 7 * i % levels, "x": i % 9, "chosen": int(i % 2 == i // 2 % 2)}
        for i in range(120)
    ]
    assert load_pairs(of_options).names == ((name, "x") if levels == 2 else ("x",))
    named = [
        {f"chosen_{name}": 7 * i % levels, f"rejected_{name}": 3 * i % levels, "chosen_x": i, "rejected_x": 4}
        for i in range(60)
    ]
    assert load_pairs(named).names == ((name, "x") if levels == 2 else ("x",))
