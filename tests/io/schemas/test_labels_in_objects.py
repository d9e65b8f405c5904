"""Labels that are objects; `test_wild.py` reads these files, too."""

import json

import pytest
from wild import stores
from wild.arenas import word
from wild.case import Case
from wild.chosen import each

from robust_rlhf_jax.io import Columns, load_pairs


@each
def label_of_an_object(i, item):
    told = {"winner": word(item.vote, "A", "B", "tie"), "reason": "It answers what was asked."}
    return {"prompt": item.prompt, "response_a": item.a, "response_b": item.b, "result": told}


@each
def label_of_a_text(i, item):
    sides = {"prompt": item.prompt, "response_a": item.a, "response_b": item.b}
    return sides | {
        "label": json.dumps({"preferred": "response_a" if item.vote > 0 else "response_b", "sure": 3})
    }


CASES = (
    Case("label_in_an_object", label_of_an_object, options={"ties": True}),
    Case("label_in_an_object_parquet", label_of_an_object, stores.parquet(), options={"ties": True}),
    Case("label_in_an_object_in_a_text", label_of_a_text, stores.table()),
)


def rows(first, second, n=20, label="label"):
    return [
        {"prompt": f"p{i}", "response_a": f"x {i}", "response_b": f"y {i}", label: second if i % 2 else first}
        for i in range(n)
    ]


@pytest.mark.parametrize("n", [20, 5000])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"winner": "A"}, {"winner": "B"}),
        ({"loser": "B", "winner": "A"}, {"winner": "B", "loser": "A"}),
        ({"confidence": 3, "preferred": "response_a"}, {"preferred": "response_b"}),
        ({"choice": "left", "choice_text": "x"}, {"choice": "right", "choice_text": "y"}),
    ],
)
def test_the_entry_that_says_who_won_is_read(first, second, n):
    found = load_pairs(rows(first, second, n), featuriser="format")
    assert found.swapped.tolist() == [False, True] * (n // 2)
    assert "in its objects" in found.description.roles["label"]


def test_a_number_in_an_object_is_asked_about_and_told():
    numbers = rows({"winner": 1}, {"winner": 2})
    with pytest.raises(ValueError, match="--first-is 1 or --first-is 2"):
        load_pairs(numbers, featuriser="format")
    found = load_pairs(numbers, columns=Columns(first_is="1"), featuriser="format")
    assert found.swapped.tolist() == [False, True] * 10


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"loser": "A"}, {"loser": "B"}),
        ({"winner": "A", "preference": "B"}, {"winner": "B", "preference": "A"}),
        ({"helpfulness": "A", "safety": "B"}, {"helpfulness": "B", "safety": "A"}),
    ],
)
def test_objects_of_which_no_single_entry_says_it_are_refused(first, second):
    with pytest.raises(ValueError, match="write the one that does into a column winner"):
        load_pairs(rows(first, second), featuriser="format")


@pytest.mark.parametrize("cell", [{"winner": "rejected"}, '{"winner": "rejected", "sure": 2}'])
def test_an_object_that_speaks_against_the_chosen_side_is_asked_about(cell):
    pairs = [
        {"prompt": f"p{i}", "chosen": f"x {i}", "rejected": f"y {i}", "label": {"winner": "chosen"}}
        for i in range(20)
    ]
    assert load_pairs(pairs, featuriser="format").n_pairs == 20
    with pytest.raises(ValueError, match="give --label label"):
        load_pairs([pairs[0] | {"label": cell}, *pairs[1:]], featuriser="format")


@pytest.mark.parametrize("n", [20, 5000])
@pytest.mark.parametrize("name", ["swapped", "is_flipped", "randomized"])
@pytest.mark.parametrize("inside", [True, False])
def test_what_says_where_the_sides_were_shown_is_heeded_inside_of_an_object_and_beside_it(name, inside, n):
    found = rows({"winner": "A"}, {"winner": "B"}, n)
    for i, row in enumerate(found):
        flag = {name: i % 3 == 0}
        row |= {"label": row["label"] | flag} if inside else flag
    with pytest.raises(ValueError, match=f"column {name} .* --label label"):
        load_pairs(found, featuriser="format")
    told = load_pairs(found, columns=Columns(label="label"), featuriser="format")
    assert told.swapped.tolist() == [False, True] * (n // 2)
