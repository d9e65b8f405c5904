"""MultiPref with all its annotations of a pair in one row (Miranda et al. 2024)."""

from ..columns import Columns
from ..labels import word_rule
from ..table import Table
from .base import Mapped, has, judged_by, of_rows, records

NAME = "MultiPref"
ORDER = 60
LISTS = ("normal_worker_annotations", "expert_worker_annotations")
SIDES = ("completion_a", "completion_b")


def recognise(table: Table) -> bool:
    return has(table, *SIDES) and any(has(table, name) for name in LISTS)


def map(table: Table, asked: Columns) -> Mapped:
    """A pair for each annotation, by its `overall_pref`; `evaluator` is the rater."""
    lists = [name for name in LISTS if has(table, name)]
    prompt = next((name for name in ("text", "prompt") if has(table, name)), None)
    prompts = table.cells(prompt)
    rule = word_rule(SIDES)
    first, second = (table.cells(name) for name in SIDES)
    annotations = zip(*(table.cells(name) for name in lists), strict=True)

    def rows():
        for row, cells in enumerate(annotations):
            entries = enumerate(entry for cell in cells for entry in records(cell))
            votes = [
                (str(e.get("evaluator") or f"annotator {i + 1}"), e.get("overall_pref")) for i, e in entries
            ]
            told = ((who, vote, rule) for who, vote in votes if vote is not None and vote != "")
            judged = judged_by(told, first[row], second[row], "overall_pref")
            yield row, prompts[row], judged or "holds no overall_pref"

    said = {
        "chosen": "completion_a or completion_b",
        "label": f"overall_pref in {' and '.join(lists)}",
        "rater": "evaluator",
    }
    return of_rows(table, NAME, rows(), (*lists, *SIDES, prompt), said, asked)
