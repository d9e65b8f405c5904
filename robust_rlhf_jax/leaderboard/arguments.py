"""What `robust-rlhf leaderboard` takes."""

import dataclasses
from pathlib import Path
from typing import Annotated

import tyro


@dataclasses.dataclass(frozen=True)
class LeaderboardArguments:
    """Rate models by votes between two of them, plainly and without votes that the rest contradicts, and say how few
    votes change the first place.

    Args:
        source: a file (CSV, JSON, Parquet, …) with a row for each vote, a folder, or a pattern.
        model_a: the column of the model on one side; model_a, model_1, left, winner and the like if not given.
        model_b: the column of the model on the other side; model_b, model_2, right, loser and the like if not given.
        winner: the column of who won (model_a, B, tie, a model's name); winner, label, vote and the like if not given.
        rater: the column of who voted; judge, rater and the like if not given.
        first_is: the label that means the first side, where labels are numbers or could be names of models.
        tie_is: the label that means a tie, where it is no usual word.
        scale: the numbers of the label at which the first and the second side are surest; the middle is a tie.
        skip_bad: how many rows without a model or a winner are skipped at most: a count, or a share if below 1.
        out: folder for leaderboard.csv, leaderboard.json; where raters are known, raters.csv.
    """

    source: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="FILE")]
    model_a: str | None = None
    model_b: str | None = None
    winner: str | None = None
    rater: str | None = None
    first_is: str | None = None
    tie_is: str | None = None
    scale: tuple[float, float] | None = None
    skip_bad: float = 0
    out: Path | None = None

    def run(self) -> None:
        from .command import leaderboard_command

        names = ("model_a", "model_b", "winner", "rater", "first_is", "tie_is", "scale", "skip_bad")
        leaderboard_command(self.source, self.out, **{name: getattr(self, name) for name in names})
