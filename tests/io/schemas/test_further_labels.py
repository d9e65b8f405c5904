"""Labels that another column settles, numbers that may be grades, and names of labels beside open sides."""

import pytest

from robust_rlhf_jax.io import Columns, load_pairs


def sides(i):
    return {"prompt": f"p {i}", "response_a": f"x {i}", "response_b": f"y {i}"}


@pytest.mark.parametrize(
    "names", [("winner", "final_winner"), ("label", "adjudicated_label"), ("vote", "vote_revised")]
)
def test_a_label_that_a_final_one_contradicts_is_asked_about(names):
    first, final = names
    rows = [sides(i) | {first: "AB"[i % 2], final: "AB"[(i + (i == 5)) % 2]} for i in range(12)]
    with pytest.raises(ValueError, match=f"{first} and {final} both could be the label and disagree"):
        load_pairs(rows, featuriser="format")
    for name in names:
        found = load_pairs(rows, columns=Columns(label=name), featuriser="format")
        assert found.swapped[5] == (name == first)
    # What one rater said of several may well be another thing.
    of_raters = [row | {"annotator": "uvw"[i % 3]} for i, row in enumerate(rows)]
    assert load_pairs(of_raters, featuriser="format").swapped[5]


@pytest.mark.parametrize(
    ("name", "numbers", "scale"),
    [("margin", (-2, 1.5), (2, -2)), ("score_diff", (-0.3, 0.3), (0.3, -0.3)), ("p_a_wins", (0.2, 0.9), (1, 0)),
     ("rating", (2, 7), (7, 1))],
)  # fmt: skip
def test_numbers_that_may_say_how_much_better_one_side_is_are_named_with_their_flags(name, numbers, scale):
    rows = [sides(i) | {name: numbers[i % 2]} for i in range(12)]
    with pytest.raises(ValueError, match=rf"if {name} says it, give --label {name}, and by --scale"):
        load_pairs(rows, featuriser="format")
    found = load_pairs(rows, columns=Columns(label=name, scale=scale), featuriser="format")
    assert found.swapped.tolist() == [True, False] * 6


@pytest.mark.parametrize(
    "of_row",
    [lambda i: {"left_response": f"x {i}", "right_response": f"y {i}",
                "vote_type": ("leftvote", "rightvote", "tievote", "bothbad_vote")[i % 4]},
     lambda i: sides(i) | {"best_response": (f"x {i}", f"y {i}", "tie", "tie")[i % 4]},
     lambda i: sides(i) | {"chosen_model_name": ("m", "n", None, None)[i % 4], "model_a_name": "m", "model_b_name": "n",
                           "both_equal": i % 4 > 1},
     lambda i: {"response_1": f"x {i}", "response_2": f"y {i}", "preferred_index": (1, 2, "tie", "tie")[i % 4]}],
    ids=["votes", "text", "models", "index"],
)  # fmt: skip
def test_further_names_of_labels_are_read_beside_open_sides(of_row):
    rows = [of_row(i) for i in range(24)]
    assert load_pairs(rows, featuriser="format").labels.tolist() == [1, -1, 0, 0] * 6
