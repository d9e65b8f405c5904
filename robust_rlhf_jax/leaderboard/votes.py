"""Votes between two models, from a file: who stood on either side, who won, who voted."""

import os
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from robust_rlhf_jax.io import Columns, Pairs, read_table
from robust_rlhf_jax.io.bad_cells import BadCell, check_skip_bad, usable_rows
from robust_rlhf_jax.io.given_arrays import other_parts, same_parts
from robust_rlhf_jax.io.label_rules import rule_for
from robust_rlhf_jax.io.labels import is_missing, number_in, read_labels, read_ties, suffixes
from robust_rlhf_jax.io.missing_sides import PLAYERS
from robust_rlhf_jax.io.schemas.answer_names import Answers, beside
from robust_rlhf_jax.io.schemas.rankings import SCORE_KEYS
from robust_rlhf_jax.io.schemas.sides import RATERS, by_plain_name, named, plain_name
from robust_rlhf_jax.io.table import Table
from robust_rlhf_jax.io.unnamed_raters import each_named, name_of, named_in
from robust_rlhf_jax.memory import check_room
from robust_rlhf_jax.row_order import check_rows
from robust_rlhf_jax.terminal import counted

from .match_results import read_results
from .winners import read_names

# Columns of the two models, of the winner and of who voted, where nobody says, as `plain_name` has them.
SIDES = (
    ("model_a", "model_b"), ("model_1", "model_2"), ("model1", "model2"), ("modela", "modelb"), ("left", "right"),
    ("winner", "loser"), *PLAYERS,
)  # fmt: skip
THIRD = ("model_c", "model_3", "model3", "modelc")
WINNERS = ("winner", "label", "vote", "preference", "choice", "result", "ftr", "full_time_result")
JUDGES = ("judge", "judge_id", *RATERS, "user")
FLAGS, TIES = ("winner_model_a", "winner_model_b"), "winner_tie"
# Columns of each side's score; a rating may be Elo's, of the model.
SCORES = (*(key for key in SCORE_KEYS if key != "rating"), "mos", "goals")
COUNTS = ("count", "counts", "n_votes", "num_votes", "vote_count", "frequency")
# Columns of these names may hold what a vote counts, or something else.
WEIGHTS = ("weight", "weights", "vote_weight")
NAMED_BY = {"models": "--model-a and --model-b", "winners": "--winner", "raters": "--rater"}
# Bytes that rating takes for each vote, most of them in `fit_reward`.
BYTES = 3_000
# Names of models that a representation lists.
SHOWN = 6


class Votes(NamedTuple):
    """N votes on M models: `first`, `second` [N]: numbers of the models; `outcome` [N]: 1 where the first won, −1 the
    second, 0 a tie; `names` [M]; `raters` [N] (any values, None where nobody knows) or None; `skipped`: unusable rows
    of the file; `unused`: its column of weights. A vote of a model against itself says nothing, and counts as a tie.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax.leaderboard import Votes
    >>> votes = Votes(np.array([0, 0]), np.array([1, 1]), np.array([1, 0]), ("a", "b"))
    >>> votes.wins().tolist(), votes.pairs().differences().tolist()
    ([[0, 1], [0, 0]], [[1.0, -1.0], [1.0, -1.0]])
    """

    first: Int[np.ndarray, " N"]
    second: Int[np.ndarray, " N"]
    outcome: Int[np.ndarray, " N"]
    names: tuple[str, ...]
    raters: Any = None
    skipped: int = 0
    unused: str | None = None

    __eq__, __ne__ = same_parts, other_parts

    def __repr__(self) -> str:
        """How many votes on how many models."""
        some = ", ".join(map(str, self.names[:SHOWN])) + (", …" if len(self.names) > SHOWN else "")
        by = "" if self.raters is None else "; with raters"
        return (
            f"Votes({counted(len(self.outcome), 'vote')} on {counted(len(self.names), 'model')} ({some}){by})"
        )

    def wins(self, weights: Float[np.ndarray, " N"] | None = None) -> np.ndarray:
        """[M, M]: how often model i won over model j, each vote counting 1 or as its weight says.

        **Raises:** ValueError for outcomes other than −1, 0 and 1, for numbers of models that `names` lacks, for two
        models of one name, for columns of different lengths or of the same index in another order, and for another
        number of raters than votes, here and in `pairs`; for another number of weights.
        """
        votes = self._checked()
        weights = np.asarray(np.ones(len(votes.outcome), int) if weights is None else weights)
        if weights.shape != votes.outcome.shape or weights.dtype.kind not in "biuf":
            raise ValueError(f"weights must be {len(votes.outcome)} numbers, one for each vote.")
        weights = weights.astype(float if weights.dtype.kind == "f" else int)  # sums outgrow narrow types
        found = np.zeros((len(votes.names), len(votes.names)), weights.dtype)
        winner, loser = np.where(votes.outcome > 0, (votes.first, votes.second), (votes.second, votes.first))
        decided = votes.outcome != 0
        np.add.at(found, (winner[decided], loser[decided]), weights[decided])
        return found

    def decided(self) -> "Votes":
        """Those that are no tie.

        **Raises:** as `wins`.
        """
        votes = self._checked()
        at = votes.outcome != 0
        raters = None if votes.raters is None else votes.raters[at]
        return votes._replace(
            first=votes.first[at], second=votes.second[at], outcome=votes.outcome[at], raters=raters
        )

    def pairs(self) -> Pairs:
        """The votes as pairs of one-hot options, ties among them."""
        votes = self._checked()
        turned = votes.outcome < 0
        chosen, rejected = np.where(turned, (votes.second, votes.first), (votes.first, votes.second))
        one_hot: Float[np.ndarray, "M M"] = np.eye(len(votes.names), dtype=np.float32)
        strength = np.where(votes.outcome == 0, 0.0, 1.0)
        return Pairs(
            one_hot[chosen],
            one_hot[rejected],
            swapped=turned,
            strength=strength,
            names=votes.names,
            raters=votes.raters,
        )

    def _checked(self) -> "Votes":
        """The votes as arrays, a model against itself as a tie, each vote without a name with a rater of its own."""
        check_rows(first=self.first, second=self.second, outcome=self.outcome, raters=self.raters)
        first, second, outcome = (np.asarray(part) for part in self[:3])
        if outcome.ndim != 1 or not first.shape == second.shape == outcome.shape:
            raise ValueError(
                f"first has shape {first.shape}, second {second.shape} and outcome {outcome.shape}: give one entry for "
                "each vote."
            )
        if outcome.dtype.kind not in "iuf" or not np.isin(outcome, (-1, 0, 1)).all():
            raise ValueError(
                "outcome must be 1 where the first model won, -1 where the second, and 0 for a tie."
            )
        twice = next((name for name, count in Counter(self.names).items() if count > 1), None)
        if twice is not None:
            raise ValueError(f"names has {twice!r} twice: give each model one name and one number.")
        for side, models in (("first", first), ("second", second)):
            if models.dtype.kind not in "iu" or ((models < 0) | (models >= len(self.names))).any():
                raise ValueError(f"{side} must hold numbers of models, from 0 to {len(self.names) - 1}.")
        raters = None if self.raters is None else each_named(self.raters)
        if raters is not None and raters.shape != outcome.shape:
            raise ValueError(
                f"raters has shape {raters.shape}: give one rater for each of the {len(outcome)} votes."
            )
        return self._replace(
            first=first, second=second, outcome=np.where(first == second, 0, outcome), raters=raters
        )


def read_votes(
    path: str | os.PathLike,
    *,
    model_a: str | None = None,
    model_b: str | None = None,
    winner: str | None = None,
    rater: str | None = None,
    first_is: str | None = None,
    tie_is: str | None = None,
    scale: tuple[float, float] | None = None,
    skip_bad: float = 0,
) -> Votes:
    """The votes of a file in any container: two columns of models and one of the winner, named if they are not usual.

    The winner is a word for a side ("model_a", "B"), for a tie, or the name of the model; or 1 in one of the columns
    winner_model_a and winner_model_b; or the higher of score_a and score_b; or the two columns are `winner` and
    `loser`. `first_is`: the label that means the first side; a model of that name does not matter then. `scale`: the
    numbers of the label that mean the first and the second side for sure; the middle is a tie. Votes of a model against
    itself are left out. `skip_bad`: how many rows may lack a model or a winner (below 1: which share of them) before
    the file is refused; they are left out. A column called count, n_votes or frequency says how many votes each row
    stands for.

    **Raises:** as `io.read_table` and `io.load_pairs`; ValueError for columns that are missing, three models a row,
    labels that say nothing, or that are both a side's and the other model's name, scores that are the models' own, or
    fewer than two models.

    **Example:**

    >>> import pathlib, tempfile
    >>> from robust_rlhf_jax.leaderboard import read_votes
    >>> file = pathlib.Path(tempfile.mkdtemp(), "votes.csv")
    >>> _ = file.write_text("model_a,model_b,winner\\nx,y,model_a\\ny,z,tie\\nz,x,B\\n")
    >>> votes = read_votes(file)
    >>> votes.names, votes.outcome.tolist()
    (('x', 'y', 'z'), [1, 0, -1])
    """
    table = read_table(path)
    sides, models, nameless = _models(table, model_a, model_b)
    outcome, bad = _outcomes(table, sides, models, winner, first_is, tie_is, scale)
    counts, uncounted = _counts(table)
    check_skip_bad(skip_bad)
    usable = usable_rows(table.path, table.n_rows, [*nameless, *bad, *uncounted], skip_bad)
    rater = rater or named(table, JUDGES)
    raters = None if rater is None else _people(table, _column(table, rater, None, "raters"))
    rows = np.repeat(usable, counts[usable])
    names, numbers = np.unique(
        np.array([[cells[row] for row in rows] for cells in models]), return_inverse=True
    )
    first, second = numbers.reshape(2, -1)
    kept = first != second
    _check_votes(table, len(names), outcome[rows][kept])
    raters, skipped = None if raters is None else raters[rows][kept], table.n_rows - len(usable)
    votes = Votes(first[kept], second[kept], outcome[rows][kept], tuple(map(str, names)), raters, skipped)
    return votes._replace(unused=None if named(table, COUNTS) else named(table, WEIGHTS))


def _check_votes(table: Table, models: int, outcome: Int[np.ndarray, " N"]) -> None:
    """**Raises:** ValueError for no vote between two models, and for ties alone."""
    if models < 2 or not len(outcome):
        raise ValueError(f"{table.path} has no vote between two different models: a leaderboard needs some.")
    if not outcome.any():
        raise ValueError(f"{table.path} has ties alone: no vote says which model is better.")


def _sides(table: Table, model_a: str | None, model_b: str | None) -> tuple[str, str]:
    """The columns of the two models.

    **Raises:** ValueError for none, and for three.
    """
    plain = by_plain_name(table)
    first, second = next(((plain[a], plain[b]) for a, b in SIDES if {a, b} <= plain.keys()), (None, None))
    sides = _column(table, model_a, first, "models"), _column(table, model_b, second, "models")
    third = named(table, THIRD)
    asked = model_a is not None or model_b is not None
    if third is not None and not asked and not all(map(is_missing, table.cells(third))):
        raise ValueError(
            f"{table.path} has three models a row ({', '.join(sides)}, {third}), and a vote is between two: write a "
            "row for each two of them, or name two by --model-a and --model-b."
        )
    return sides


def _models(
    table: Table, model_a: str | None, model_b: str | None
) -> tuple[tuple[str, str], list[list[str | None]], list[BadCell]]:
    """The columns of both models, the names in each, and the cells without one."""
    sides = _sides(table, model_a, model_b)
    models = [[None if is_missing(cell) else name_of(cell) for cell in table.cells(name)] for name in sides]
    nameless = [
        BadCell(row, name, "is missing")
        for name, cells in zip(sides, models, strict=True)
        for row, cell in enumerate(cells)
        if cell is None
    ]
    return sides, models, nameless


def _column(table: Table, asked: str | None, found: str | None, what: str) -> str:
    name = asked or found
    if name is None or name not in table.names:
        missing = f"no column {name}" if name else f"no columns of {what} known by name"
        raise ValueError(
            f"{table.path} has {missing}: name it by {NAMED_BY[what]} (there are {', '.join(table.names)})."
        )
    return name


def _outcomes(
    table: Table,
    sides: tuple[str, str],
    models: list[list[str | None]],
    winner: str | None,
    first_is: str | None,
    tie_is: str | None,
    scale: tuple[float, float] | None,
) -> tuple[Int[np.ndarray, " N"], list[BadCell]]:
    """Who won each vote, and the cells that do not say."""
    plain = by_plain_name(table)
    if winner is None and plain.keys() >= set(FLAGS):
        return _by_flags(table, [plain[name] for name in (*FLAGS, TIES) if name in plain])
    found = named(table, WINNERS)
    if winner is None and found is None:
        called = (Answers(sides, False, names) for names in (suffixes(sides), sides))
        scores = next((names for answers in called if (names := beside(table, answers, SCORES))), None)
        if scores is not None:
            _check_unlabelled(scores, first_is=first_is, tie_is=tie_is, scale=scale)
            return _by_scores(table, scores, models)
    name = _column(table, winner, found, "winners")
    if name in sides:
        return np.full(table.n_rows, 1 if name == sides[0] else -1), []
    cells = list(table.cells(name))
    if scale is None:
        cells = read_results(cells, sides) if first_is is None else cells
        cells = read_names(cells, name, sides, models, first_is, tie_is)
    rule = rule_for(cells, name, sides, Columns(first_is=first_is, tie_is=tie_is, scale=scale))
    strength, bad = read_labels(cells, name, rule)
    return np.sign(strength).astype(int), list(bad)


def _by_flags(table: Table, names: list[str]) -> tuple[Int[np.ndarray, " N"], list[BadCell]]:
    """1 where the first flag is set, −1 the second, 0 neither, and the cells that leave it open."""
    flags, wrong = zip(*(_flags(table, name) for name in names), strict=True)
    bad = [cell for of_flag in wrong for cell in of_flag]
    said = np.sum(flags, axis=0)
    unclear = np.flatnonzero((said != 1) if len(names) > len(FLAGS) else said > 1).tolist()
    bad += [BadCell(row, names[0], f"has not exactly one 1 among {', '.join(names)}") for row in unclear]
    return flags[0] - flags[1], bad


def _flags(table: Table, name: str) -> tuple[Int[np.ndarray, " N"], list[BadCell]]:
    """1 for yes, 0 for no, and the cells that say neither; an empty one among ties is no tie."""
    flags, bad = read_ties(table.cells(name), name)
    cells = [] if plain_name(name) == TIES else table.cells(name)
    missing = [BadCell(row, name, "is missing") for row, cell in enumerate(cells) if is_missing(cell)]
    return flags.astype(int), [*missing, *bad]


def _check_unlabelled(scores: tuple[str, ...], **said: Any) -> None:
    """**Raises:** ValueError for what a caller says of labels where scores say who won."""
    flag = next((name for name, value in said.items() if value is not None), None)
    if flag is not None:
        raise ValueError(
            f"--{flag.replace('_', '-')} changes nothing here, where the higher of {' and '.join(scores)} won: leave "
            "it out"
        )


def _by_scores(
    table: Table, names: tuple[str, ...], models: list[list[str | None]]
) -> tuple[Int[np.ndarray, " N"], list[BadCell]]:
    """1 where the first side has the higher score, −1 the second, 0 a tie, and the cells that are no number.

    **Raises:** ValueError where models that come again have the same score in every row.
    """
    scores = [[number_in(cell) for cell in table.cells(name)] for name in names]
    bad = [
        BadCell(row, name, f"is {cell!r}, no score")
        for name, numbers in zip(names, scores, strict=True)
        for row, (cell, number) in enumerate(zip(table.cells(name), numbers, strict=True))
        if number is None
    ]
    seen = Counter(pair for sides in zip(models, scores, strict=True) for pair in zip(*sides, strict=True))
    if len({model for model, _ in seen}) == len(seen) < seen.total():
        raise ValueError(
            f"{' and '.join(names)} are the same for a model in every row, and say nothing of single votes: name the "
            "column of the winner by --winner"
        )
    first, second = np.array([[number or 0.0 for number in numbers] for numbers in scores])
    return np.sign(first - second).astype(int), bad


def _counts(table: Table) -> tuple[Int[np.ndarray, " N"], list[BadCell]]:
    """How many votes each row stands for, and the cells that do not say.

    **Raises:** ValueError for more than there is memory for.
    """
    name = named(table, COUNTS)
    counts, bad = [1] * table.n_rows, []
    for row, cell in enumerate(table.cells(name) if name is not None else ()):
        number = number_in(cell)
        if number is None or number < 0 or number % 1:
            bad.append(BadCell(row, name or "", f"is {cell!r}, not how many votes the row stands for"))
        else:
            counts[row] = int(number)
    votes = sum(counts)
    if name is not None:
        check_room(
            f"rating the {votes:,} votes of column {name}", BYTES * votes, "give a random sample of them"
        )
    return np.array(counts, int), bad


def _people(table: Table, name: str) -> np.ndarray:
    """Who voted; a vote without a name has a voter of its own."""
    return named_in(table.cells(name))
