"""Files that look like a known data set, and whose labels mean something else."""

import json

import pytest

from robust_rlhf_jax.io import Columns, describe, load_pairs

HELPSTEER = "prompt,response_1,response_2,{label}preference_strength\n"


def read(folder, text, **columns):
    file = folder / "pairs.csv"
    file.write_text(text)
    return load_pairs(file, columns=Columns(**columns), featuriser="format")


def test_helpsteers_strengths_are_read_where_some_are_below_0(tmp_path):
    pairs = read(tmp_path, HELPSTEER.format(label="") + "Hi,Yes.,No,-2\nBye,So long,What?,3\n")
    assert (pairs.schema, pairs.labels.tolist()) == ("HelpSteer2", [1, -1])


@pytest.mark.parametrize(("label", "words"), [("preferred", "12"), ("winner", "AB")])
def test_strengths_beside_a_label_are_how_strong_it_is(tmp_path, label, words):
    first, second = words
    text = (
        HELPSTEER.format(label=f"{label},")
        + f"Hi,Yes.,No,{first},3\nBye,So long,What?,{second},1\nA,B?,C,{first},2\n"
    )
    assert read(tmp_path, text).labels.tolist() == [1, -1, 1]


@pytest.mark.parametrize("wrong", [True, False])
def test_strengths_that_statements_contradict_are_asked_about(wrong):
    said = ("Response 1 is slightly better than Response 2", "Response 2 is better than Response 1")
    rows = [
        {"prompt": f"p{i}", "response_1": f"x {i}", "response_2": f"y {i}", "preference_strength": (-1, 2)[i % 2],
         "preference_statement": said[i % 2 - wrong]}
        for i in range(12)
    ]  # fmt: skip
    if wrong:
        with pytest.raises(
            ValueError, match=r"preference_statement name different sides .* --label preference_statement"
        ):
            load_pairs(rows, featuriser="format")
        for asked in (Columns(label="preference_statement"), Columns(scale=(3, -3))):
            assert load_pairs(rows, columns=asked, featuriser="format").swapped.tolist() == [True, False] * 6
    else:
        assert load_pairs(rows, featuriser="format").swapped.tolist() == [False, True] * 6


@pytest.mark.parametrize("number", [int, float, str])
def test_strengths_that_the_number_of_the_chosen_side_contradicts_are_asked_about(number):
    rows = [
        {"prompt": f"p{i}", "response_1": f"x {i}", "response_2": f"y {i}", "preference_strength": (1, -2)[i % 2],
         "chosen": number(1 + i % 2)}
        for i in range(12)
    ]  # fmt: skip
    with pytest.raises(ValueError, match=r"and chosen name different sides .* --label chosen"):
        load_pairs(rows, featuriser="format")
    for asked in (Columns(label="chosen"), Columns(scale=(2, -2))):
        assert load_pairs(rows, columns=asked, featuriser="format").swapped.tolist() == [False, True] * 6


@pytest.mark.parametrize("more", [{}, {"split": "train"}, {"preference_statement": "-"}])
def test_a_description_asks_to_check_the_sign_of_strengths_that_only_names_of_columns_tell(more):
    rows = [
        {
            "prompt": f"p{i}",
            "response_1": f"x {i}",
            "response_2": f"y {i}",
            "preference_strength": (1, -2)[i % 2],
        }
        | more
        for i in range(12)
    ]
    text = str(describe(rows))
    assert "preference_strength: below 0 the first response is better, above 0 the second" in text
    assert ("CHECK THE SIGN of preference_strength" in text) == ("preference_statement" not in more)
    assert ("if above 0 is for response_1 in this file, give --scale 2 -2" in text) == (
        "preference_statement" not in more
    )


def test_strengths_above_0_alone_are_asked_about(tmp_path):
    with pytest.raises(ValueError, match=r"preference_strength.*--scale"):
        read(tmp_path, HELPSTEER.format(label="") + "Hi,Yes.,No,2\nBye,So long,What?,3\nA,B?,C,1\n")


ALPACA = "instruction,output_1,output_2,preference\n"


def test_alpacafarms_1_and_2_are_read_and_0_and_1_are_asked_about(tmp_path):
    assert read(tmp_path, ALPACA + "Hi,Yes.,No,1\nBye,So long,What?,2\nA,B?,C,0\n").labels.tolist() == [
        1,
        -1,
        0,
    ]
    zero_one = ALPACA + "Hi,Yes.,No,0\nBye,So long,What?,1\n"
    with pytest.raises(ValueError, match="--first-is 0 or --first-is 1"):
        read(tmp_path, zero_one)
    assert read(tmp_path, zero_one, first_is="0").labels.tolist() == [1, -1]


def test_a_tie_is_told_beside_a_known_label(tmp_path):
    text = HELPSTEER.format(label="") + "Hi,Yes.,No,-2\nBye,So long,What?,unsure\n"
    assert read(tmp_path, text, tie_is="unsure").labels.tolist() == [1, 0]


@pytest.mark.parametrize("as_text", [False, True])
def test_each_turn_of_mt_bench_has_the_answers_that_were_judged(as_text):
    """Both turns of a dialogue are rows of their own, with the whole dialogue."""

    def dialogue(answer):
        said = [("user", "q"), ("assistant", answer), ("user", "more"), ("assistant", f"{answer} again")]
        said = [{"role": role, "content": text} for role, text in said]
        return json.dumps(said) if as_text else said

    rows = [
        {
            "question_id": i,
            "model_a": "m",
            "model_b": "n",
            "winner": ("model_a", "model_b")[turn % 2],
            "turn": turn,
        }
        | {"conversation_a": dialogue(f"x {i}"), "conversation_b": dialogue(f"y {i}")}
        for i in range(3)
        for turn in (1, 2)
    ]
    texts = load_pairs(rows, featuriser="format").texts
    assert texts.chosen[:2] == ["y 0", "x 0\n\nmore\n\nx 0 again"]
    assert texts.prompt == ["q"] * 6
    # Which turn 1 is of 0 and 1, nobody says.
    from_0 = load_pairs([row | {"turn": row["turn"] - 1} for row in rows], featuriser="format").texts
    assert from_0.chosen[1] == "x 0\n\nmore\n\nx 0 again"
    # In the arena's file it is how many turns there are.
    whole = load_pairs([row | {"turn": 2} for row in rows], featuriser="format").texts
    assert whole.chosen[0] == "y 0\n\nmore\n\ny 0 again"
