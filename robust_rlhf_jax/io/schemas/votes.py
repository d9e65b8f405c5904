"""Two open sides and one column with the votes of all raters: a list, an object by rater, or a list of objects."""

from typing import Any

from ..columns import Columns
from ..label_rules import rule_for
from ..labels import word, word_rule
from ..table import Table
from .base import OF_LABELS, Mapped, judged_by, of_rows, records, structured
from .numbers import is_number
from .plain import prompt_of
from .sides import IDS, RATERS, chosen_sides, named, open_sides, plain_name

NAME = "votes in one column"
ORDER = 110
COLUMNS = (
    "votes", "annotations", "labels", "preferences", "judgments", "judgements", "annotators", "ratings", "choices",
    "individual_preferences", "all_labels", "raw_labels", "responses_by_rater",
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

    **Raises:** ValueError for numbers of votes by side.
    """
    (first, second), name = open_sides(table)[:2], _column(table)
    assert name is not None
    prompt = prompt_of(table, asked, (first, second))
    prompts = table.cells(prompt)
    votes = [list(_votes(cell)) for cell in table.cells(name)]
    _check_that_none_counts(votes, name, (first, second))
    rule = rule_for([vote for row in votes for _, vote in row], name, (first, second), asked)
    cells = zip(prompts, votes, table.cells(first), table.cells(second), strict=True)
    rows = (
        (row, asked_for, judged_by(((who, vote, rule) for who, vote in given), a, b) or "holds no vote")
        for row, (asked_for, given, a, b) in enumerate(cells)
    )
    said = {
        "chosen": f"{first} or {second}",
        "label": f"votes in {name}: {rule.says}",
        "rater": "as the votes say, or their place",
    }
    return of_rows(
        table, NAME, rows, (name, first, second, prompt), said, asked, ids=named(table, IDS), reads=OF_LABELS
    )


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
