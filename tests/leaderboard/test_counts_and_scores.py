"""Files of votes with a count for each row, three models a row, or a score for each model."""

import pytest

from robust_rlhf_jax.leaderboard import read_votes
from robust_rlhf_jax.leaderboard.command import described


def reading(folder, text, **asked):
    path = folder / "votes.csv"
    path.write_text(text, encoding="utf-8")
    return read_votes(path, **asked)


@pytest.mark.parametrize("count", ["1000000000000", "1e30"])
def test_more_votes_than_memory_holds_are_refused(count, tmp_path):
    with pytest.raises(
        ValueError, match=r"rating the .* votes of column count needs .* give a random sample"
    ):
        reading(tmp_path, f"model_a,model_b,winner,count\nx,y,A,3\ny,x,A,{count}\n")


@pytest.mark.parametrize("said", ["model_c", "model_a"])
def test_three_models_a_row_are_no_vote(said, tmp_path):
    text = f"model_a,model_b,model_c,winner\nx,y,z,model_a\ny,z,x,model_b\nz,x,y,{said}\n"
    with pytest.raises(ValueError, match=r"three models a row .*model_c.* write a row for each two of them"):
        reading(tmp_path, text)


def test_an_empty_column_of_third_models_is_none(tmp_path):
    votes = reading(tmp_path, "model_a,model_b,model_c,winner\nx,y,,A\ny,z,,B\n")
    assert votes.outcome.tolist() == [1, -1]


@pytest.mark.parametrize("names", ["score_a,score_b", "model_a_score,model_b_score", "reward_a,reward_b"])
def test_the_higher_score_wins(names, tmp_path):
    text = f"model_a,model_b,{names}\nx,y,3,1\ny,x,2,2\nz,x,1.5,2\ny,z,,1\n"
    with pytest.raises(ValueError, match=r"row 4, column \w+ is '', no score"):
        reading(tmp_path, text)
    votes = reading(tmp_path, text, skip_bad=1)
    assert votes.outcome.tolist() == [1, 0, -1]


@pytest.mark.parametrize(
    ("flag", "asked"), [("first", {"first_is": "B"}), ("tie", {"tie_is": "0"}), ("scale", {"scale": (5, 1)})]
)
def test_what_is_said_of_labels_is_refused_beside_scores(flag, asked, tmp_path):
    text = "model_a,model_b,score_a,score_b\nx,y,3,1\nz,x,1,2\n"
    with pytest.raises(
        ValueError, match=f"--{flag}.* changes nothing here, where the higher of score_a and score_b"
    ):
        reading(tmp_path, text, **asked)


def test_a_winner_comes_before_scores(tmp_path):
    votes = reading(tmp_path, "model_a,model_b,score_a,score_b,winner\nx,y,3,1,B\ny,x,3,1,B\n")
    assert votes.outcome.tolist() == [-1, -1]


def test_scores_of_models_are_no_votes(tmp_path):
    text = "model_a,model_b,score_a,score_b\nx,y,1100,1000\ny,x,1000,1100\nx,z,1100,900\n"
    with pytest.raises(ValueError, match="score_a and score_b are the same for a model in every row"):
        reading(tmp_path, text)
    with pytest.raises(ValueError, match="no columns of winners"):
        reading(tmp_path, text.replace("score", "rating"))


@pytest.mark.parametrize(
    ("columns", "cells", "said"), [("weight", "2", True), ("weight,count", "2,3", False)]
)
def test_a_column_of_weights_that_is_not_used_is_told_of(tmp_path, columns, cells, said):
    votes = reading(tmp_path, f"model_a,model_b,winner,{columns}\nx,y,A,{cells}\ny,x,A,{cells}\n")
    assert ("Column weight is not used" in described(votes)) == said
