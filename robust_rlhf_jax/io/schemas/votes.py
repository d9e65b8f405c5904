"""Two open sides and one column with the votes of all raters: a list, an object by rater, or a list of objects."""

from typing import Any

from ..columns import Columns
from ..label_rules import rule_for
from ..labels import Rule
from ..table import Table
from .base import Judged, Mapped, of_rows, records, structured
from .plain import prompt_of
from .sides import IDS, chosen_sides, named, open_sides

NAME = "votes in one column"
COLUMNS = ("votes", "annotations", "labels", "preferences", "judgments", "judgements", "annotators", "ratings",
"choices",
           "individual_preferences", "all_labels", "raw_labels", "responses_by_rater")  # fmt: skip
WHO = (
    "rater",
    "annotator",
    "user",
    "user_id",
    "worker",
    "worker_id",
    "evaluator",
    "annotator_id",
    "rater_id",
    "judge",
    "name",
)
WHAT = (
    "label",
    "preference",
    "choice",
    "vote",
    "winner",
    "preferred",
    "overall_pref",
    "value",
    "answer",
    "selected",
)


def recognise(table: Table) -> bool:
    return not chosen_sides(table) and len(open_sides(table)) == 2 and _column(table) is not None


def map(table: Table, asked: Columns) -> Mapped:
    """A pair for each vote."""
    (first, second), name = open_sides(table)[:2], _column(table)
    assert name is not None
    prompt = prompt_of(table, asked, (first, second))
    prompts = [None] * table.n_rows if prompt is None else table.cells(prompt)
    votes = [list(_votes(cell)) for cell in table.cells(name)]
    rule = rule_for([vote for row in votes for _, vote in row], name, (first, second), asked)
    sides = list(zip(table.cells(first), table.cells(second), strict=True))
    rows = ((row, prompts[row], _judged(votes[row], sides[row], rule)) for row in range(table.n_rows))
    said = {
        "chosen": f"{first} or {second}",
        "label": f"votes in {name}: {rule.says}",
        "rater": "as the votes say, or their place",
    }
    return of_rows(
        table,
        NAME,
        rows,
        (name, first, second, *((prompt,) if prompt else ())),
        said,
        asked,
        ids=named(table, IDS),
    )


def _judged(votes: list[tuple[str, Any]], sides: tuple[Any, Any], rule: Rule) -> list[Judged] | str:
    values = [(who, vote, rule.value(vote)) for who, vote in votes]
    unknown = next((vote for _, vote, value in values if value is None), None)
    if unknown is not None:
        return f"holds the unknown label {unknown!r}"
    return [Judged(*sides, value, who) for who, _, value in values if value is not None] or "holds no vote"


def _column(table: Table) -> str | None:
    return next((n for n in COLUMNS if n in table.columns and list(_votes(table.first(n)))), None)


def _votes(cell: Any):
    """(rater, vote) of a cell; nothing if it holds no votes."""
    cell = structured(cell)
    if isinstance(cell, dict) and all(isinstance(v, str | int | float) for v in cell.values()):
        yield from ((str(who), vote) for who, vote in cell.items())
    elif isinstance(cell, list) and all(isinstance(v, str | int | float) for v in cell):
        yield from ((f"annotator {i + 1}", vote) for i, vote in enumerate(cell))
    else:
        for i, entry in enumerate(records(cell)):
            what = next((entry[k] for k in WHAT if entry.get(k) is not None), None)
            who = next((entry[k] for k in WHO if entry.get(k) is not None), f"annotator {i + 1}")
            if isinstance(what, str | int | float):
                yield str(who), what
