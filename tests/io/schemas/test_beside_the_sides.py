"""What stands beside the two sides and says which one won: scores, ranks, draws, and flags that are no features."""

import pytest

from robust_rlhf_jax.io import Columns, load_pairs


@pytest.mark.parametrize("names", [("score_chosen", "score_rejected"), ("chosen_reward", "rejected_reward")])
@pytest.mark.parametrize("wrong", [20, 17])
def test_scores_of_the_rejected_side_that_are_always_higher_are_asked_about(names, wrong):
    rows = [
        {"prompt": f"p {i}", "chosen": f"x {i}", "rejected": f"y {i}"}
        | {names[0]: 1.5, names[1]: 2.0 if i < wrong else 1.0}
        for i in range(20)
    ]
    if wrong == 20:
        with pytest.raises(
            ValueError, match=rf"{names[0]} is below {names[1]} in nearly all rows, .* give --chosen"
        ):
            load_pairs(rows, featuriser="format")
    asked = Columns(chosen="chosen", rejected="rejected") if wrong == 20 else None
    assert load_pairs(rows, columns=asked, featuriser="format").texts.chosen[0] == "x 0"


@pytest.mark.parametrize("names", [("chosen_rank", "rejected_rank"), ("rank_chosen", "rank_rejected")])
def test_ranks_of_the_chosen_side_that_are_always_higher_are_asked_about(names):
    rows = [
        {"prompt": f"p {i}", "chosen": f"x {i}", "rejected": f"y {i}", names[0]: 1 + i % 3, names[1]: 5}
        for i in range(12)
    ]
    assert load_pairs(rows, featuriser="format").texts.chosen[0] == "x 0"
    for row in rows:
        row |= {names[0]: row[names[1]], names[1]: row[names[0]]}
    with pytest.raises(
        ValueError, match=f"{names[0]} is above {names[1]} in nearly all rows, .* give --chosen"
    ):
        load_pairs(rows, featuriser="format")
    asked = Columns(chosen="chosen", rejected="rejected")
    assert load_pairs(rows, columns=asked, featuriser="format").texts.chosen[0] == "x 0"


@pytest.mark.parametrize("of", ["toxicity", "perplexity", "length"])
def test_scores_of_one_quality_may_be_lower_for_the_chosen_side(of):
    rows = [
        {"prompt": f"p {i}", "chosen": f"x {i}", "rejected": f"y {i}"}
        | {f"chosen_score_{of}": 1.5, f"rejected_score_{of}": 2.0}
        for i in range(12)
    ]
    assert load_pairs(rows, featuriser="format").texts.chosen[0] == "x 0"


@pytest.mark.parametrize(
    ("cells", "ties"),
    [((True, False, False), 2), (("yes", "no", "no"), 2), ((1, 0, 0), 0), ((3, 1, 2), 0), ((1, 1, 1), 0)],
)
def test_a_draw_beside_chosen_and_rejected_is_a_tie_unless_it_is_a_number(cells, ties):
    """Numbers may be those of a lottery."""
    rows = [{"chosen_x": i, "rejected_x": 3, "draw": cells[i % 3]} for i in range(6)]
    found = load_pairs(rows)
    assert (found.strength == 0).sum() == ties
    told = {"draw": "may say which pairs are ties: --tie draw reads it so"}
    assert found.unused == (
        {} if ties else {"draw": "no role is known for this name"} if 3 in cells else told
    )
    if {*cells} == {0, 1}:
        assert (load_pairs(rows, columns=Columns(tie="draw")).strength == 0).any()


@pytest.mark.parametrize(("label", "ties"), [("a", 0), ("", 2), ("tie", 2)])
@pytest.mark.parametrize("numbers", [True, False])
def test_a_draw_beside_a_label_is_a_tie_unless_the_label_says_who_won(label, ties, numbers):
    def sides(i):
        texts = {"response_a": f"x {i}", "response_b": f"y {i}"}
        return {"price_a": i, "price_b": 3, "time_a": i % 4, "time_b": 2} if numbers else texts

    rows = [sides(i) | {"winner": "ba"[i % 2] if i % 3 else label, "draw": int(i % 3 == 0)} for i in range(6)]
    assert (load_pairs(rows, featuriser="format").strength == 0).sum() == ties


@pytest.mark.parametrize("winner", ["chosen", "winner"])
def test_columns_that_say_which_side_was_chosen_are_no_features(winner):
    loser = {"chosen": "rejected", "winner": "loser"}[winner]
    rows = [
        {f"{winner}_price": i, f"{loser}_price": 3, f"{winner}_eco": 1, f"{loser}_eco": int(i == 7),
         f"{winner}_label": 1, f"{loser}_label": 0}
        for i in range(20)
    ]  # fmt: skip
    found = load_pairs(rows)
    assert found.names == ("price", "eco")
    assert found.unused == dict.fromkeys(
        (f"{winner}_label", f"{loser}_label"), "says which option was chosen"
    )
    assert load_pairs(rows[:7]).names == ("price", "eco", "label")  # by chance, it may be


def test_a_table_of_nothing_but_what_says_which_side_was_chosen_is_refused():
    with pytest.raises(ValueError, match="differ in no column but those that say which one was chosen"):
        load_pairs([{"chosen_won": 1, "rejected_won": 0}] * 20)
