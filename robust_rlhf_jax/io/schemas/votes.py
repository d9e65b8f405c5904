"""Two open sides and one column with the votes of all raters: a list, an object by rater, or a list of objects."""

import dataclasses
from typing import Any

from robust_rlhf_jax.terminal import counted

from ..columns import Columns
from ..label_rules import rule_for
from ..labels import is_missing, word, word_rule
from ..table import Table
from .base import OF_LABELS, Mapped, judged_by, of_rows, records, structured
from .numbers import is_number
from .plain import prompt_of
from .shown_places import check_places_of_votes
from .sides import IDS, RATERS, chosen_sides, named, open_sides, plain_name

NAME = "votes in one column"
ORDER = 110
COLUMNS = (
    "votes", "annotations", "labels", "preferences", "judgments", "judgements", "ratings", "choices",
    "individual_preferences", "all_labels", "raw_labels", "responses_by_rater", "annotators",
)  # fmt: skip
# Two numbers that may name both sides or count their votes, and rows in all of which two raters do not disagree by
# chance.
COUNTS, FEWEST = ({"0", "1"}, {"1", "2"}), 10
# What raters are called of whom a list of two says no more.
PLACES = ["annotator 1", "annotator 2"]
WHO = (*RATERS, "user", "name", "created_by", "author", "email")
WHAT = (
    "label", "preference", "choice", "vote", "winner", "preferred", "overall_pref", "value", "answer", "selected",
)  # fmt: skip


def recognise(table: Table) -> bool:
    return not chosen_sides(table) and len(open_sides(table)) == 2 and _column(table) is not None


def map(table: Table, asked: Columns) -> Mapped:
    """A pair for each vote.

    **Raises:** ValueError for numbers of votes by side, for votes that may name places, and for more or fewer names of
        raters than votes.
    """
    (first, second), name = open_sides(table)[:2], _column(table)
    assert name is not None
    prompt = prompt_of(table, asked, (first, second))
    prompts = table.cells(prompt)
    votes = [list(_votes(cell)) for cell in table.cells(name)]
    people = _people(table, name, asked.rater)
    if people is not None:
        votes = _with_names(table, votes, name, people)
        asked = dataclasses.replace(asked, rater=None)
    _check_that_none_counts(votes, name, (first, second))
    given = [vote for row in votes for _, vote in row]
    if asked.first_is is None and asked.scale is None:
        check_places_of_votes(table, name, given, (first, second))
    rule = rule_for(given, name, (first, second), asked)
    cells = zip(prompts, votes, table.cells(first), table.cells(second), strict=True)
    rows = (
        (row, asked_for, judged_by(((who, vote, rule) for who, vote in of_row), a, b) or "holds no vote")
        for row, (asked_for, of_row, a, b) in enumerate(cells)
    )
    said = {
        "chosen": f"{first} or {second}",
        "label": f"votes in {name}: {rule.says}",
        "rater": people or "as the votes say, or their place",
    }
    used = (name, first, second, prompt, people)
    return of_rows(table, NAME, rows, used, said, asked, ids=named(table, IDS), reads=OF_LABELS)


def _people(table: Table, votes: str, asked: str | None) -> str | None:
    """The column that lists who gave the votes, as the caller names it, or called after raters: `annotators` beside
    `labels`."""
    entries = _entries(table.first(votes))
    if not entries or any(isinstance(entry, dict) for entry in entries):  # they say it themselves
        return None
    names = {rater + end for rater in (*RATERS, "user") for end in ("", "s")}
    columns = [name for name in table.names if plain_name(name) in names] if asked is None else [asked]
    return next((n for n in columns if n != votes and _entries(table.first(n))), None)


def _with_names(table: Table, votes: list[list], name: str, people: str) -> list[list]:
    """**Raises:** ValueError for a row with more or fewer names than votes."""
    named_votes = []
    for row, (given, cell) in enumerate(zip(votes, table.cells(people), strict=True)):
        who = _entries(cell)
        if given and len(who) != len(given):
            raise ValueError(
                f"row {row + 1} has {counted(len(given), 'vote')} in column {name} and "
                f"{counted(len(who), 'name')} of raters in column {people}: write as many, in the same order"
            )
        said = (None if is_missing(each) else str(each) for each in who)
        named_votes.append([(each, vote) for each, (_, vote) in zip(said, given, strict=False)])
    return named_votes


def _entries(cell: Any) -> list:
    """The entries of a cell that holds a list; [] of anything else."""
    cell = structured(cell)
    return cell if isinstance(cell, list) else []


def _check_that_none_counts(votes: list[list], name: str, sides: tuple[str, str]) -> None:
    """**Raises:** ValueError for an object that counts the votes of each side, which are no labels of raters; raters
    may be called A and B, and say 1 or 2 of sides that are called so; and for lists of two numbers that would be two
    raters of whom each always says the opposite of the other.
    """
    rule, names = word_rule(sides), {word(side) for side in sides}
    opposite = [
        [who for who, _ in row] == PLACES and {word(vote) for _, vote in row} in COUNTS
        for row in votes
        if row
    ]
    said = [(rule.value(who), who, vote) for row in votes for who, vote in row]
    counts = len(opposite) >= FEWEST and all(opposite)
    if not counts and not all(way is not None and is_number(vote) for way, _, vote in said):
        return
    if counts or any(way == 0 or word(who) in names or rule.value(vote) is None for way, who, vote in said):
        raise ValueError(
            f"column {name} counts the votes of each side: write who won most of them into a column of its own"
        )


def _column(table: Table) -> str | None:
    return next((n for n in COLUMNS if n in table.columns and list(_votes(table.first(n)))), None)


def _votes(cell: Any):
    """(rater, vote) of a cell; nothing if it holds no votes."""
    cell = structured(cell)
    plain = isinstance(cell, dict) and all(isinstance(v, str | int | float) for v in cell.values())
    if plain and not {*WHAT} & {plain_name(str(key)) for key in cell}:
        yield from ((str(who), vote) for who, vote in cell.items())
    elif isinstance(cell, list) and all(isinstance(v, str | int | float) for v in cell):
        yield from ((f"annotator {i + 1}", vote) for i, vote in enumerate(cell))
    else:
        for i, entry in enumerate(records(cell)):
            said = {plain_name(str(key)): value for key, value in entry.items() if value is not None}
            what = next((said[k] for k in WHAT if k in said), None)
            who = next((said[k] for k in WHO if k in said), f"annotator {i + 1}")
            if isinstance(what, str | int | float):
                yield str(who), what
