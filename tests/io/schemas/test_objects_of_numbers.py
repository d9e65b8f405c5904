"""Sides that are objects of numbers; `test_wild.py` and its neighbours read these files, too."""

import pytest
from wild import stores, worlds
from wild.case import Case
from wild.chosen import each

from robust_rlhf_jax.io import load_pairs

FEATURES = ("price", "time", "changes", "comfort", "delay")


@each
def objects(i, item):
    chosen, rejected = (dict(zip(FEATURES, side, strict=True)) for side in (item.chosen, item.rejected))
    return {"trip": f"t{i}", "chosen": chosen, "rejected": rejected}


@each
def labelled(i, item):
    first, second = (dict(zip(FEATURES, side, strict=True)) for side in (item.a, item.b))
    return {"chosen": first, "rejected": second, "label": int(item.vote > 0)}


def open_sides(first, second):
    @each
    def encode(i, item):
        sides = {
            first: dict(zip(FEATURES, item.a, strict=True)),
            second: dict(zip(FEATURES, item.b, strict=True)),
        }
        return {"user": f"u{i % 5}", **sides, "winner": first if item.vote > 0 else second}

    return encode


CASES = (
    Case("objects_of_open_sides", open_sides("a", "b"), world=worlds.voted_vectors, facts=("row",)),
    Case("objects_of_numbered_sides", open_sides("Option 1", "Option 2"), stores.parquet(),
         world=worlds.voted_vectors, facts=("row",)),
    Case("objects_of_numbers", objects, world=worlds.vectors, facts=("row",)),
    Case("objects_of_numbers_parquet", objects, stores.parquet(), world=worlds.vectors, facts=("row",)),
    Case("objects_of_numbers_labelled", labelled, world=worlds.voted_vectors, facts=("row",),
         refused="column label could be the label", flags={"--label": "label", "--first-is": "1"}),
)  # fmt: skip


def test_features_have_the_names_of_the_numbers():
    pairs = load_pairs(objects(CASES[0].items()))
    assert pairs.names == FEATURES
    assert pairs.unused == {"trip": "no role is known for this name"}


def test_a_number_that_one_row_lacks_is_missing():
    rows = objects(CASES[0].items())
    del rows[4]["rejected"]["time"]
    with pytest.raises(ValueError, match=r"row 5, column rejected_time is missing"):
        load_pairs(rows)
    assert load_pairs(rows, skip_bad=1).n_pairs == len(rows) - 1


@pytest.mark.parametrize("prompt", [False, True])
def test_single_numbers_are_no_texts_unless_they_answer_a_prompt(prompt):
    rows = [
        {"chosen": str(i), "rejected": str(i + 1)} | ({"prompt": f"{i} + 0"} if prompt else {})
        for i in range(20)
    ]
    if prompt:
        assert load_pairs(rows, featuriser="format").texts.chosen[3] == "3"
    else:
        with pytest.raises(ValueError, match="columns chosen and rejected hold single numbers"):
            load_pairs(rows)


def test_one_feature_of_numbered_sides_is_refused_unless_a_choice_counts_them():
    rows = [{"1": {"price": i}, "2": {"price": 3}, "choice": 1 + i % 2} for i in range(9)]
    assert load_pairs(rows).labels.tolist() == [1, -1, 1, -1, 1, -1, 1, -1, 1]
    with pytest.raises(ValueError, match="has no column chosen_<name>"):
        load_pairs(
            [{"label" if name == "choice" else name: cell for name, cell in row.items()} for row in rows]
        )
