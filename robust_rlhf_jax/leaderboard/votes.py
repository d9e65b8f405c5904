"""Votes between two models, from a file: who stood on either side, who won, who voted."""

import os
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from robust_rlhf_jax.io import Columns, Pairs, read_table
from robust_rlhf_jax.io.bad_cells import BadCell, check_skip_bad, usable_rows
from robust_rlhf_jax.io.label_rules import rule_for
from robust_rlhf_jax.io.labels import is_missing, number_in, read_labels, read_ties
from robust_rlhf_jax.io.nobody import each_named, name_of, named_in
from robust_rlhf_jax.io.schemas.sides import RATERS, by_plain_name, named, plain_name
from robust_rlhf_jax.io.table import Table
from robust_rlhf_jax.terminal import counted

from .winners import read_names

# Columns of the two models, of the winner and of who voted, where nobody says, as `plain_name` has them.
SIDES = (
    ("model_a", "model_b"), ("model_1", "model_2"), ("model1", "model2"), ("modela", "modelb"), ("left", "right"),
    ("winner", "loser"),
)  # fmt: skip
WINNERS = ("winner", "label", "vote", "preference", "choice", "result")
JUDGES = ("judge", "judge_id", *RATERS, "user")
FLAGS, TIES = ("winner_model_a", "winner_model_b"), "winner_tie"
COUNTS = ("count", "counts", "n_votes", "num_votes", "vote_count", "frequency")
# Names of models that a representation lists.
SHOWN = 6


class Votes(NamedTuple):
    """N votes on M models: `first`, `second` [N]: numbers of the models; `outcome` [N]: 1 where the first won, −1 the
    second, 0 a tie; `names` [M]; `raters` [N] (any values, None where nobody knows) or None; `skipped`: unusable rows
    of the file. A vote of a model against itself says nothing, and counts as a tie.

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

    def __repr__(self) -> str:
        """How many votes on how many models."""
        some = ", ".join(map(str, self.names[:SHOWN])) + (", …" if len(self.names) > SHOWN else "")
        by = "" if self.raters is None else "; with raters"
        return (
            f"Votes({counted(len(self.outcome), 'vote')} on {counted(len(self.names), 'model')} ({some}){by})"
        )

    def wins(self, weights: Float[np.ndarray, " N"] | None = None) -> np.ndarray:
        """[M, M]: how often model i won over model j, each vote counting 1 or as its weight says.

        **Raises:** ValueError for outcomes other than −1, 0 and 1, for numbers of models that `names` lacks, and for
        another number of raters than votes, here and in `pairs`; for another number of weights.
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
        first, second, outcome = (np.asarray(part) for part in self[:3])
        if outcome.dtype.kind not in "iuf" or not np.isin(outcome, (-1, 0, 1)).all():
            raise ValueError(
                "outcome must be 1 where the first model won, -1 where the second, and 0 for a tie."
            )
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
    winner_model_a and winner_model_b; or the two columns are `winner` and `loser`. `first_is`: the label that means the
    first side; a model of that name does not matter then. `scale`: the numbers of the label that mean the first and the
    second side for sure; the middle is a tie. Votes of a model against itself are left out. `skip_bad`: how many rows
    may lack a model or a winner (below 1: which share of them) before the file is refused; they are left out. A column
    called count, n_votes or frequency says how many votes each row stands for.

    **Raises:** as `io.read_table` and `io.load_pairs`; ValueError for columns that are missing, labels that say
    nothing, or that are both a side's and the other model's name, or fewer than two models.

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
    plain = by_plain_name(table)
    usual = next(((plain[a], plain[b]) for a, b in SIDES if {a, b} <= plain.keys()), (None, None))
    sides = tuple(
        _column(table, asked, found, "models") for asked, found in zip((model_a, model_b), usual, strict=True)
    )
    models = [[None if is_missing(cell) else name_of(cell) for cell in table.cells(name)] for name in sides]
    nameless = [
        BadCell(row, name, "is missing")
        for name, cells in zip(sides, models, strict=True)
        for row, cell in enumerate(cells)
        if cell is None
    ]
    outcome, bad = _outcomes(table, (sides[0], sides[1]), models, winner, first_is, tie_is, scale)
    counts, uncounted = _counts(table)
    check_skip_bad(skip_bad)
    usable = usable_rows(table.path, table.n_rows, [*nameless, *bad, *uncounted], skip_bad)
    skipped, usable = table.n_rows - len(usable), np.repeat(usable, counts[usable])
    rater = rater or named(table, JUDGES)
    raters = None if rater is None else _people(table, _column(table, rater, None, "raters"))
    outcome, raters = outcome[usable], None if raters is None else raters[usable]
    names, numbers = np.unique(
        np.array([[cells[row] for row in usable] for cells in models]), return_inverse=True
    )
    first, second = numbers.reshape(2, -1)
    kept = first != second
    if len(names) < 2 or not kept.any():
        raise ValueError(f"{path} has no vote between two different models: a leaderboard needs some.")
    if not outcome[kept].any():
        raise ValueError(f"{path} has ties alone: no vote says which model is better.")
    return Votes(
        first[kept],
        second[kept],
        outcome[kept],
        tuple(map(str, names)),
        None if raters is None else raters[kept],
        skipped,
    )


def _column(table: Table, asked: str | None, found: str | None, what: str) -> str:
    name = asked or found
    if name is None or name not in table.names:
        missing = f"no column {name}" if name else f"no columns of {what} known by name"
        raise ValueError(f"{table.path} has {missing}: name it (there are {', '.join(table.names)}).")
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
        names = [plain[name] for name in (*FLAGS, TIES) if name in plain]
        flags, wrong = zip(*(_flags(table, name) for name in names), strict=True)
        bad = [cell for of_flag in wrong for cell in of_flag]
        said = np.sum(flags, axis=0)
        unclear = np.flatnonzero((said != 1) if len(names) > len(FLAGS) else said > 1).tolist()
        bad += [BadCell(row, names[0], f"has not exactly one 1 among {', '.join(names)}") for row in unclear]
        return flags[0] - flags[1], bad
    name = _column(table, winner, named(table, WINNERS), "winners")
    if name in sides:
        return np.full(table.n_rows, 1 if name == sides[0] else -1), []
    cells = list(table.cells(name))
    if scale is None:
        cells = read_names(cells, name, sides, models, first_is, tie_is)
    rule = rule_for(cells, name, sides, Columns(first_is=first_is, tie_is=tie_is, scale=scale))
    strength, bad = read_labels(cells, name, rule)
    return np.sign(strength).astype(int), list(bad)


def _flags(table: Table, name: str) -> tuple[Int[np.ndarray, " N"], list[BadCell]]:
    """1 for yes, 0 for no, and the cells that say neither; an empty one among ties is no tie."""
    flags, bad = read_ties(table.cells(name), name)
    cells = [] if plain_name(name) == TIES else table.cells(name)
    missing = [BadCell(row, name, "is missing") for row, cell in enumerate(cells) if is_missing(cell)]
    return flags.astype(int), [*missing, *bad]


def _counts(table: Table) -> tuple[Int[np.ndarray, " N"], list[BadCell]]:
    """How many votes each row stands for, and the cells that do not say."""
    name = named(table, COUNTS)
    counts, bad = np.ones(table.n_rows, int), []
    if name is None:
        return counts, bad
    for row, cell in enumerate(table.cells(name)):
        number = number_in(cell)
        if number is None or number < 0 or number % 1:
            bad.append(BadCell(row, name, f"is {cell!r}, not how many votes the row stands for"))
        else:
            counts[row] = int(number)
    return counts, bad


def _people(table: Table, name: str) -> np.ndarray:
    """Who voted; of a vote without a name, nobody else."""
    return named_in(table.cells(name))
