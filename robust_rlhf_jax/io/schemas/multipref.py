"""MultiPref with all its annotations of a pair in one row (Miranda et al. 2024)."""

from ..columns import Columns
from ..labels import word_rule
from ..table import Table
from .base import Judged, Mapped, has, of_rows, records

NAME = "MultiPref"
LISTS = ("normal_worker_annotations", "expert_worker_annotations")
SIDES = ("completion_a", "completion_b")


def recognise(table: Table) -> bool:
    return has(table, *SIDES) and any(has(table, name) for name in LISTS)


def map(table: Table, asked: Columns) -> Mapped:
    """A pair for each annotation, by its `overall_pref`; `evaluator` is the rater."""
    lists = [name for name in LISTS if has(table, name)]
    prompt = next((name for name in ("text", "prompt") if has(table, name)), None)
    prompts = [None] * table.n_rows if prompt is None else table.cells(prompt)
    rule = word_rule(SIDES)
    first, second = (table.cells(name) for name in SIDES)
    annotations = list(zip(*(table.cells(name) for name in lists), strict=True))

    def rows():
        for row, cells in enumerate(annotations):
            judged, unknown = [], ""
            for number, entry in enumerate(entry for cell in cells for entry in records(cell)):
                told = entry.get("overall_pref")
                value = None if told is None else rule.value(told)
                unknown = unknown or (
                    f"holds the unknown overall_pref {told!r}" if value is None and told else ""
                )
                if value is not None:
                    judged.append(
                        Judged(
                            first[row],
                            second[row],
                            value,
                            str(entry.get("evaluator") or f"annotator {number + 1}"),
                        )
                    )
            yield row, prompts[row], unknown or judged or "holds no overall_pref"

    said = {
        "chosen": "completion_a or completion_b",
        "label": f"overall_pref in {' and '.join(lists)}",
        "rater": "evaluator",
    }
    used = (*lists, *SIDES, *((prompt,) if prompt else ()))
    return of_rows(table, NAME, rows(), used, said, asked)
