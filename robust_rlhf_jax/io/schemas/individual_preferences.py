"""HelpSteer2 and HelpSteer3 with each annotator's own preference (Wang et al. 2024, 2025)."""

from ..columns import Columns
from ..table import Table
from .base import Judged, Mapped, has, of_rows, records

NAME = "HelpSteer, annotator by annotator"
ORDER = 70
# (prompt, first, second, list of annotations, its key)
LISTS = (
    ("context", "response1", "response2", "individual_preference", "score"),
    ("prompt", "response_1", "response_2", "all_preferences_unprocessed", "strength"),
)


def recognise(table: Table) -> bool:
    return _lists(table) is not None


def map(table: Table, asked: Columns) -> Mapped:
    """-3 … 3, below 0 where the first response is better; annotators are told apart by their place in the list."""
    found = _lists(table)
    assert found is not None
    prompt, first, second, name, key = found
    cells = [table.cells(column) for column in (prompt, first, second, name)]

    def rows():
        for row, (asked_for, a, b, annotations) in enumerate(zip(*cells, strict=True)):
            scores = [entry.get(key) for entry in records(annotations)]
            if any(not isinstance(s, int | float) or not -3 <= s <= 3 for s in scores if s is not None):
                yield row, asked_for, f"holds a {key} that is not between -3 and 3"
                continue
            judged = [
                Judged(a, b, -float(s), f"annotator {i + 1}") for i, s in enumerate(scores) if s is not None
            ]
            yield row, asked_for, judged or "holds no preference"

    said = {
        "chosen": f"{first} or {second}",
        "label": f"{key} in {name}: below 0 the first response is better, above 0 the second",
        "rater": "the place in the list: not the same people in every row",
    }  # fmt: skip
    return of_rows(table, NAME, rows(), (name, prompt, first, second), said, asked)


def _lists(table: Table):
    return next((e for e in LISTS if has(table, *e[:4]) and any(records(c) for c in table.some(e[3]))), None)
