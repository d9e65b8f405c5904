"""What is said of files in which no two sides are found."""

import pytest

from robust_rlhf_jax.io import Columns, load_pairs


@pytest.mark.parametrize("title", ["Study of kettles", "Study of kettles,,,", "Study of kettles,,,\n,,,"])
def test_a_title_above_the_header_is_named(title, tmp_path):
    file = tmp_path / "pairs.csv"
    rows = [f"p{i},x {i},y {i},{'AB'[i % 2]}" for i in range(8)]
    file.write_text("\n".join([title, "prompt,response_a,response_b,preference", *rows]) + "\n")
    with pytest.raises(ValueError, match="one column with a name, 'Study of kettles': if that is a title"):
        load_pairs(file)


def test_a_file_of_one_column_has_no_title(tmp_path):
    file = tmp_path / "pairs.csv"
    file.write_text("prompt\np\nq\n")
    with pytest.raises(ValueError, match="has no column chosen_<name>"):
        load_pairs(file)


def test_objects_in_which_nobody_is_known_to_win_are_named():
    stars = [{"from_name": "stars", "type": "rating", "value": {"rating": 4}}]
    rows = [
        {"id": i, "data": {"items": [{"id": "x", "body": "p"}]}, "annotations": [{"result": stars}]}
        for i in range(4)
    ]
    with pytest.raises(
        ValueError, match=r"has objects in data and annotations, .* columns of their own, a pair a row"
    ):
        load_pairs(rows)


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ({"responses": ["x", "y"], "rejected_idx": 1}, "has several answers a row in column responses"),
        ({"chosen_id": 5, "rejected_id": 7}, "has no column chosen_<name>"),
        (
            {"winner": "gpt", "loser": "llama"},
            "names of models in winner and loser, .* robust-rlhf leaderboard",
        ),
        (
            {"delta_price": 2.5, "time diff": -1, "choice": 1},
            "differences .* delta_price, time diff: .*of_differences",
        ),
        ({"chosen_brand": "vw", "rejected_brand": "bmw"}, "column chosen_brand holds 'vw' and the like"),
    ],
)
def test_what_a_file_holds_instead_of_sides_is_named(row, sentence):
    with pytest.raises(ValueError, match=sentence):
        load_pairs([row] * 4)


def test_columns_of_more_sides_than_two_that_stand_in_the_way_are_named():
    rows = [
        {"Q_1": 1, "Q_2": i % 5, "Q_3": 4, "price_1": i, "price_2": 7 - i, "time_1": 3, "time_2": i % 3,
         "choice": 1 + i % 2}
        for i in range(8)
    ]  # fmt: skip
    sentence = (
        "two sides in price_1, price_2, time_1, time_2, and Q_1, Q_2, Q_3 are called as if they were of more"
    )
    with pytest.raises(ValueError, match=sentence):
        load_pairs(rows)
    renamed = [{f"{k[0]}{k[2]}_answer" if k[0] == "Q" else k: v for k, v in row.items()} for row in rows]
    assert load_pairs(renamed).names == ("price", "time")


def test_long_names_of_columns_are_cut():
    question = "Which of the two answers do you like better, all things considered?"
    with pytest.raises(ValueError, match=r"\(it has Which of the two answers do you like bet…, n\)"):
        load_pairs([{question: "x", "n": 1}] * 3)


@pytest.mark.parametrize("tie", ["tie", "baseline"])
def test_a_label_that_names_two_columns_says_which_sides_to_give(tie):
    made = [
        {
            "prompt": f"p {i}",
            "baseline": f"x {i}",
            "candidate": f"y {i}",
            "winner": ("baseline", "candidate", tie)[i % 3],
        }
        for i in range(9)
    ]
    with pytest.raises(
        ValueError, match="--chosen baseline --rejected candidate --label winner that these are the"
    ):
        load_pairs(made)
    asked = Columns(chosen="baseline", rejected="candidate", label="winner")
    assert load_pairs(made, columns=asked, featuriser="format").swapped.tolist() == [False, True, False] * 3
