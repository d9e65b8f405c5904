"""Results of matches: chess, football, and scores of two systems."""

import pytest

from robust_rlhf_jax.io import load_pairs
from robust_rlhf_jax.leaderboard import read_votes
from robust_rlhf_jax.leaderboard.match_results import read_results


def outcomes(tmp_path, header: str, *rows: str) -> list[int]:
    (tmp_path / "games.csv").write_text("\n".join([header, *rows]))
    return read_votes(tmp_path / "games.csv").outcome.tolist()


def test_games_of_chess(tmp_path):
    rows = ["1,Ann,Ben,1-0", "2,Ben,Ann,0-1", "3,Ann,Cem,1/2-1/2", "4,Cem,Ben,½-½"]
    assert outcomes(tmp_path, "Round,White,Black,Result", *rows) == [1, -1, 0, 0]


@pytest.mark.parametrize(
    ("columns", "rows"),
    [("home_goals,away_goals", ("2,1", "0,3", "1,1")), ("FTR", "HAD"), ("result", ("2:1", "0-3", "1 – 1")),
     ("result", ("Home win", "Away win", "Draw")), ("result", "12X")],
)  # fmt: skip
@pytest.mark.parametrize("sides", ["home,away", "HomeTeam,AwayTeam"])
def test_matches(tmp_path, columns, rows, sides):
    if "goals" in columns and sides != "home,away":
        columns = "HomeTeam_goals,AwayTeam_goals"
    matches = (f"{two},{row}" for two, row in zip(("A,B", "B,C", "C,A"), rows, strict=True))
    assert outcomes(tmp_path, f"{sides},{columns}", *matches) == [1, -1, 0]


def test_mean_opinion_scores_of_systems(tmp_path):
    rows = ["x,y,4.5,3", "y,z,2,3.5", "x,z,3,3"]
    assert outcomes(tmp_path, "system_a,system_b,mos_a,mos_b", *rows) == [1, -1, 0]


def test_an_unfinished_game_is_asked_about(tmp_path):
    with pytest.raises(ValueError, match=r"row 2, column Result holds the unknown label '\*'"):
        outcomes(tmp_path, "White,Black,Result", "Ann,Ben,1-0", "Ben,Ann,*", "Ann,Cem,0-1")


def test_words_for_sides_stay_as_they_are():
    assert read_results(["A", "B", "tie"], ("model_a", "model_b")) == ["A", "B", "tie"]


@pytest.mark.parametrize(
    ("row", "said"),
    [({"White": "Ann", "Black": "Ben", "Result": "1-0"}, "says in White and Black what .* leaderboard FILE rates them"),
     ({"home": "Ann", "away": "Ben", "home_goals": 1, "away_goals": 2}, "says in home and away what was compared"),
     ({"system_a": "Ann", "system_b": "Ben", "mos_a": 1, "mos_b": 2}, "leaderboard rates what system_a and system_b"),
     ({"image_left": 3, "image_right": 12, "choice": "left"}, "--model-a image_left --model-b image_right rates")],
)  # fmt: skip
def test_a_file_of_pairs_without_anything_of_the_two_is_sent_to_the_leaderboard(row, said):
    with pytest.raises(ValueError, match=said):
        load_pairs([row] * 4)
