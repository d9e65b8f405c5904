"""Files of votes with a count for each row, three models a row, or a score for each model."""

import pytest

from robust_rlhf_jax.leaderboard import read_votes


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
