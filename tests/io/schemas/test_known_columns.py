"""Files that look like a known data set, and whose labels mean something else."""

import pytest

from robust_rlhf_jax.io import Columns, load_pairs

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
