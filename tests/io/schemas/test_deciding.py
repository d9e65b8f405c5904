"""Columns that are called as labels are, beside sides whose names say who won."""

import json

import pytest

from robust_rlhf_jax.io import Columns, load_pairs


def read(tmp_path, column, cells, **columns):
    path = tmp_path / "pairs.jsonl"
    rows = [
        {"prompt": f"p{i}", "chosen": f"x {i}", "rejected": f"y {i}", column: c} for i, c in enumerate(cells)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return load_pairs(path, featuriser="format", columns=Columns(**columns))


@pytest.mark.parametrize(
    "cells",
    [
        [None, "rejected"],
        ["", "rejected", ""],
        ["rejected", "rejected"],
        ["b", "b"],
        ["chosen", "tie"],
        ["a", "tie", None],
        [*["ok"] * 250, *["rejected"] * 50],
        ["chosen", "rejected"],
    ],
)
def test_a_label_that_speaks_against_the_chosen_side_anywhere_is_asked_about(tmp_path, cells):
    with pytest.raises(ValueError, match=r"column winner could be the label .* give --label winner"):
        read(tmp_path, "winner", cells)
    assert read(tmp_path, "winner", cells, label="none").n_pairs == len(cells)


@pytest.mark.parametrize(
    "cells", [["chosen", "chosen"], ["chosen", None], [1, 1], ["ok", "fine"], ["tie", "tie"]]
)
def test_one_that_says_nothing_against_it_is_ignored(tmp_path, cells):
    assert read(tmp_path, "winner", cells).strength.tolist() == [1.0] * len(cells)


@pytest.mark.parametrize("name", ["tie", "is_tie"])
def test_a_column_of_ties_is_read(tmp_path, name):
    assert read(tmp_path, name, [True, False, False]).strength.tolist() == [0.0, 1.0, 1.0]
    assert read(tmp_path, name, ["silk", "wool", "red"]).strength.tolist() == [1.0, 1.0, 1.0]
