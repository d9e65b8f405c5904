"""Files of votes as people have them, and what the command prints and writes."""

import csv
import json
import sys
from types import SimpleNamespace
from typing import Any

import equinox as eqx
import numpy as np
import pytest

from robust_rlhf_jax.leaderboard import Rating, Votes, believed, read_votes
from robust_rlhf_jax.leaderboard.command import (
    FILES,
    bad_raters,
    described,
    leaderboard_command,
    with_names,
    without_rating,
    write_csv,
)
from robust_rlhf_jax.raters import Rater, RaterTable


def written(tmp_path, text, name="votes.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


WAYS = {
    "sides": "model_a,model_b,winner\nx,y,model_a\ny,z,tie\nz,x,model_b\n",
    "letters": "model_a,model_b,winner\nx,y,A\ny,z,both good\nz,x,B\n",
    "names": "model_a,model_b,winner\nx,y,x\ny,z,tie\nz,x,x\n",
    "flags": "model_a,model_b,winner_model_a,winner_model_b,winner_tie\nx,y,1,0,0\ny,z,0,0,1\nz,x,0,1,0\n",
    "flags with few ties": "model_a,model_b,winner_model_a,winner_model_b,winner_tie\nx,y,1,0,\ny,z,0,0,1\nz,x,0,1,\n",
    "flags in words": "model_a,model_b,winner_model_a,winner_model_b\nx,y,TRUE,FALSE\ny,z,no,no\nz,x,No,Yes\n",
    "letters' size": "Model A,Model B,Winner\nx,y,Model A\ny,z,tie\nz,x,Model B\n",
    "one word": "modelA,modelB,winner\nx,y,modelA\ny,z,tie\nz,x,modelB\n",
    "spaces around names": "model_a,model_b,winner\nx , y,x\ny,z ,tie\n z,x, x \n",
    "other names": "model_1,model_2,vote\nx,y,model_1\ny,z,tie\nz,x,model_2\n",
}


@pytest.mark.parametrize("way", WAYS)
def test_votes_are_read_as_people_write_them(way, tmp_path):
    votes = read_votes(written(tmp_path, WAYS[way]))
    assert votes.names == ("x", "y", "z")
    assert votes.outcome.tolist() == [1, 0, -1]
    assert votes.raters is None
    assert votes.wins().tolist() == [[0, 1, 1], [0, 0, 0], [0, 0, 0]]


def test_winners_beside_losers_are_votes(tmp_path):
    votes = read_votes(written(tmp_path, "Winner,Loser,judge\nA,B,ann\nB,A,ann \nA,C,ben\n"))
    assert votes.names == ("A", "B", "C")
    assert votes.wins().tolist() == [[0, 1, 1], [1, 0, 0], [0, 0, 0]]
    assert votes.raters.tolist() == ["ann", "ann", "ben"]


def test_columns_may_be_named_and_numbers_explained(tmp_path):
    path = written(tmp_path, "left_bot;right_bot;said;who\nx;y;1;Ann\ny;x;0;Ben\n")
    named = {"model_a": "left_bot", "model_b": "right_bot", "winner": "said", "rater": "who"}
    votes = read_votes(path, **named, first_is="1")
    assert votes.outcome.tolist() == [1, -1]
    assert votes.raters.tolist() == ["Ann", "Ben"]


def test_the_judge_is_found_and_a_model_against_itself_left_out(tmp_path):
    path = written(tmp_path, "model_a,model_b,winner,judge\nx,y,A,1\nx,x,A,1\ny,x,B,2\n")
    votes = read_votes(path)
    assert len(votes.outcome) == 2
    assert votes.raters.tolist() == ["1", "2"]


@pytest.mark.parametrize("column", ["Judge", "judge_id", "annotator_id", "WorkerId", "user email"])
def test_judges_are_found_by_the_names_of_raters(column, tmp_path):
    votes = read_votes(written(tmp_path, f"model_a,model_b,winner,{column}\nx,y,A,1\ny,x,B,2\n"))
    assert votes.raters.tolist() == ["1", "2"]


def test_numbers_between_two_ends_are_explained_by_a_scale(tmp_path):
    path = written(tmp_path, "model_a,model_b,winner\nx,y,1\ny,z,0.5\nz,x,0\n")
    with pytest.raises(ValueError, match="--scale"):
        read_votes(path)
    assert read_votes(path, scale=(1, 0)).outcome.tolist() == [1, 0, -1]


def test_models_that_are_numbers_are_one_model_in_any_column(tmp_path):
    """A missing cell makes floats of a column of whole numbers."""
    pandas, path = pytest.importorskip("pandas"), tmp_path / "votes.parquet"
    table = {"model_a": [1.0, 2.0, np.nan], "model_b": [2, 1, 1], "winner": [1.0, 1.0, 1.0]}
    pandas.DataFrame(table).to_parquet(path)
    votes = read_votes(path, first_is="model_a", skip_bad=1)
    assert (votes.names, votes.outcome.tolist()) == (("1", "2"), [1, -1])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n", "has no columns of models known by name: name it by --model-a"),
        ("model_a,model_b\nx,y\n", "has no columns of winners known by name"),
        ("model_a,model_b,winner\nx,,A\n", "row 1, column model_b is missing"),
        ("model_a,model_b,winner\nx,x,A\n", "no vote between two different models"),
        ("model_a,model_b,winner\nx,y,tie\n", "has ties alone"),
        ("model_a,model_b,winner\nx,y,A\nx,y,\n", "row 2, column winner is missing: .* --skip-bad 1"),
        ("model_a,model_b,winner\nx,y,0\nx,y,3\n", "first-is"),
        (
            "model_a,model_b,winner_model_a,winner_model_b\nx,y,1,0\nx,y,,0\n",
            "row 2, column winner_model_a is missing",
        ),
        (
            "model_a,model_b,winner_model_a,winner_model_b\nx,y,1,0\nx,y,0,maybe\n",
            "row 2, column winner_model_b holds",
        ),
        (
            "model_a,model_b,winner_model_a,winner_model_b\nx,y,1,0\nx,y,1,1\n",
            "row 2, column winner_model_a has not exactly one 1 among winner_model_a, winner_model_b: mend",
        ),
        (
            "model_a,model_b,winner_model_a,winner_model_b,winner_tie\nx,y,1,0,0\nx,y,0,0,0\n",
            "row 2, column winner_model_a has not exactly one 1 among winner_model_a, winner_model_b, winner_tie: mend",
        ),
    ],
)
def test_bad_files_are_one_sentence(text, said, tmp_path):
    with pytest.raises(ValueError, match=said):
        read_votes(written(tmp_path, text))


def test_votes_without_a_name_are_nobodys(tmp_path):
    path = written(tmp_path, "model_a,model_b,winner,judge\nx,y,A,Ann\ny,x,A,\nx,y,B,\ny,x,B,Ann\n")
    votes = read_votes(path)
    assert len(np.unique(votes.raters)) == 3
    assert described(votes).startswith("4 votes by 1 rater on 2 models")


def arena(tmp_path):
    rng = np.random.default_rng(0)
    names, theta = ["=cmd()", "b [red]", "c"], np.array([0.6, 0.3, -0.9])
    lines = ["model_a,model_b,winner,judge"]
    for _ in range(900):
        i, j = rng.choice(3, 2, replace=False)
        said = (
            "tie" if rng.random() < 0.2 else "model_a" if rng.logistic() < theta[i] - theta[j] else "model_b"
        )
        lines.append(f"{names[i]},{names[j]},{said},{rng.integers(30)}")
    return written(tmp_path, "\n".join(lines) + "\n")


def test_a_name_with_half_a_character_is_written(tmp_path):
    row = Rating("Ann \ud83d", 1000.0, 990.0, 1010.0, 1, 1, 1000.0, 1000.0, 10, 0.5)
    write_csv(tmp_path / "leaderboard.csv", [row])
    assert "Ann \\ud83d" in (tmp_path / "leaderboard.csv").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_command_prints_and_writes(tmp_path, capsys):
    rows = leaderboard_command(str(arena(tmp_path)), tmp_path / "out")
    printed = " ".join(capsys.readouterr().out.split())
    assert [row.name for row in rows] == ["=cmd()", "b [red]", "c"]
    assert "900 votes by 30 raters on 3 models" in printed
    assert "No evidence of corruption" in printed
    assert "votes dropped (" in printed
    assert "votes flipped (" in printed
    assert "b [red]" in printed
    facts = json.loads((tmp_path / "out" / FILES[1]).read_text(encoding="utf-8"))
    assert {change["how"] for change in facts["changes"]} == {"dropped", "flipped"}
    assert facts["changes"][0]["leader"] == "=cmd()"
    with open(tmp_path / "out" / FILES[0], encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    assert table[0]["name"] == "'=cmd()"  # no spreadsheet runs it
    assert float(table[0]["plain"]) == pytest.approx(rows[0].plain, abs=0.1)
    with open(tmp_path / "out" / "raters.csv", encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == 30


def test_votes_of_nobody_have_no_row_among_raters():
    ann = Rater("ann", 40, 0.9, 0.8, 1.0, 1.0, 0.5, 1.5, 1.0, 1.0, "attentive", 0.0, (), 1.0)
    table = RaterTable((ann._replace(name="nobody, row 3"), ann), np.ones(41))
    assert [row.name for row in with_names(table).rows] == ["ann"]


def test_bad_raters_are_named():
    ann = Rater("ann\x1b[2J", 40, 0.1, 0.05, 0.2, -1.0, -1.5, -0.5, 0.0, 1.0, "contrary", 1.0, (), 0.0)
    rows = (ann, *(ann._replace(name=f"r{i}", kind="random") for i in range(8)), ann._replace(kind="noisy"))
    assert bad_raters(RaterTable(rows, np.ones(10))) == [
        "Raters that look bad: 8 random (r0, r1, r2, r3, r4, r5, …), 1 contrary (ann\\x1b[2J)."
    ]
    assert bad_raters(None) == bad_raters(RaterTable(rows[-1:], np.ones(1))) == []


@pytest.mark.slow
def test_what_the_fit_found_names_models_and_no_function_of_python(tmp_path, capsys):
    """A fifth of the votes contradicts the rest, and only left out ones tell what model m1 is worth."""
    rng, skill = np.random.default_rng(0), np.linspace(1.5, -1.5, 5)
    lines = ["model_a,model_b,winner"]
    for _ in range(1500):
        first, second = rng.choice(5, 2, replace=False)
        said = "model_a" if rng.logistic() < skill[first] - skill[second] else "model_b"
        crowd = rng.random() < 0.2
        lines.append("m4,m0,model_a" if crowd else f"m{first},m{second},{said}")
    leaderboard_command(str(written(tmp_path, "\n".join(lines))))
    assert "tell what feature m1 is worth" in " ".join(capsys.readouterr().out.split())


@pytest.mark.slow
def test_what_the_fit_found_asks_for_no_argument_of_python(tmp_path, capsys, monkeypatch):
    """More votes contradict the rest than the command allows, and it takes no ε."""

    def contradicted(votes):
        found = believed(votes)
        return eqx.tree_at(lambda model: model.interval, found, np.array([0.44, 0.44]))

    monkeypatch.setattr("robust_rlhf_jax.leaderboard.command.believed", contradicted)
    leaderboard_command(str(written(tmp_path, "winner,loser\n" + "a,b\n" * 30 + "b,a\n" * 20)))
    printed = " ".join(capsys.readouterr().out.split())
    assert "At least 44.0 % of the pairs contradict every reward" in printed
    assert "ε." not in printed


@pytest.mark.slow
def test_a_ring_of_three_models_may_be_honest(tmp_path, capsys):
    leaderboard_command(str(written(tmp_path, "winner,loser\n" + "a,b\n" * 30 + "b,c\n" * 30 + "c,a\n" * 30)))
    assert "No evidence of corruption" in capsys.readouterr().out


def test_columns_whose_ratings_are_not_finite_are_told_apart():
    votes = Votes(np.repeat([0, 1], [30, 3]), np.repeat([1, 0], [30, 3]), np.ones(33, int), ("a", "b"))
    every: Any = SimpleNamespace(weights=np.ones(33))
    believed: Any = SimpleNamespace(weights=np.repeat([1.0, 1e-4], [30, 3]))
    assert without_rating(votes, every, None) == []
    (said,) = without_rating(votes, believed, None)
    assert said.startswith("No finite rating without contradicted votes: a, b.")
    (said,) = without_rating(votes, every, believed)
    assert said.startswith("No finite rating without bad raters: a, b.")
    never = votes._replace(outcome=np.repeat([1, 0], [30, 3]))  # then one sentence tells of all columns
    (said,) = without_rating(never, every, None)
    assert said.startswith("No finite rating: a, b.")


@pytest.mark.slow
def test_it_is_a_subcommand(tmp_path, robust_rlhf):
    status, out, _ = robust_rlhf("leaderboard", str(arena(tmp_path)))
    assert status == 0
    assert "places" in out
    status, _, err = robust_rlhf("leaderboard", str(tmp_path / "nothing.csv"))
    assert status == 2
    assert "does not exist" in err
    assert sys.stdout is not None


def test_unusable_rows_are_left_out_where_that_is_asked_for(tmp_path):
    file = tmp_path / "votes.csv"
    file.write_text("model_a,model_b,winner,judge\nx,y,A,ann\n,y,A,bob\ny,x,,ann\nx,y,B,bob\ny,z,tie,ann\n")
    votes = read_votes(file, skip_bad=2)
    assert (votes.outcome.tolist(), votes.names, votes.skipped) == ([1, -1, 0], ("x", "y", "z"), 2)
    assert votes.raters.tolist() == ["ann", "bob", "ann"]
    assert "2 unusable rows left out" in described(votes)
    assert votes.decided().skipped == 2
    for skip_bad, said in ((1, "more than --skip-bad 1"), (0.3, "--skip-bad 0.3"), (-1, "must be 0 or more")):
        with pytest.raises(ValueError, match=said):
            read_votes(file, skip_bad=skip_bad)


BOTH = "model_a,model_b,winner\na,b,a\nb,a,a\nb,c,b\nc,b,tie\nc,b,b\n"


def test_winners_that_name_a_side_and_the_other_model_are_asked_about(tmp_path):
    file = written(tmp_path, BOTH)
    said = "column winner holds 'a' in row 2, .* give --first-is a if it is a word, or give --first-is model_a if"
    with pytest.raises(ValueError, match=said):
        read_votes(file)
    assert read_votes(file, first_is="a").outcome.tolist() == [1, 1, -1, 0, -1]
    assert read_votes(file, first_is="model_a").outcome.tolist() == [1, -1, 1, 0, -1]
    only_second = written(tmp_path, "model_a,model_b,winner\nb,c,b\nc,b,tie\n", "second.csv")
    with pytest.raises(ValueError, match="says two things: write it in other words if it is a word"):
        read_votes(only_second)
    tie = written(tmp_path, "model_a,model_b,winner\ntie,c,model_a\nc,tie,tie\n", "tie.csv")
    with pytest.raises(
        ValueError, match="write it in other words if it is a word, or give --first-is model_a if"
    ):
        read_votes(tie)


def test_models_called_like_sides_are_read_where_it_is_clear(tmp_path):
    """As the sides that both readings name; as names beside a winner that is no side's; and where a side has words."""
    for text, outcome in (
        ("a,b,a\na,b,b\na,b,tie\n", [1, -1, 0]),
        ("a,b,a\nb,a,a\nb,gpt,gpt\n", [1, -1, -1]),
        ("a,b,model_a\nb,a,model_a\n", [1, 1]),
        ("b,draw,b\nb,draw,gone\n", None),
    ):
        file = written(tmp_path, "model_a,model_b,winner\n" + text)
        if outcome is None:
            with pytest.raises(ValueError, match="says two things"):
                read_votes(file, skip_bad=1)
        else:
            assert read_votes(file).outcome.tolist() == outcome
