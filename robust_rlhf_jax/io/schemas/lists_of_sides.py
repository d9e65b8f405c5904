"""Several chosen or rejected answers in a row (RewardBench 2, rerankers), or both sides in one list (LLaMA-Factory)."""

from typing import Any

from ..columns import Columns
from ..table import Table
from .base import Judged, Mapped, has, of_rows
from .plain import check_asked, prompt_of
from .sides import by_plain_name, with_rater

NAME = "lists of chosen and rejected"
ORDER = 90


# Names of the lists of each side, chosen first.
SIDES = (
    ("chosen", "rejected"), ("pos", "neg"), ("positive", "negative"), ("positives", "negatives"),
    ("positive", "negatives"),
    ("chosen_responses", "rejected_responses"), ("preferred", "dispreferred"), ("better", "worse"),
)  # fmt: skip


def recognise(table: Table) -> bool:
    if _sides(table) is not None:
        return True
    return has(table, "instruction", "output") and all(
        len(_list(c)) == 2 and _texts(c) for c in table.some("output") if c
    )


def map(table: Table, asked: Columns) -> Mapped:
    """Every chosen answer with every rejected one, grouped by row."""
    check_asked(table, asked)
    names = _sides(table) or ("output",)
    two = len(names) == 2
    prompt = prompt_of(table, asked, names)
    prompts = table.cells(prompt)
    sides = zip(*(table.cells(name) for name in names), strict=True)

    def rows():
        for row, cells in enumerate(sides):
            lists = [[cell] if two and isinstance(cell, str) else _list(cell) for cell in cells]
            good, bad = lists if two else ([lists[0][:1], lists[0][1:2]])
            yield (
                row,
                prompts[row],
                [Judged(a, b, 1.0) for a in good for b in bad] or "holds no pair of answers",
            )

    said = {"chosen": f"{names[0]}, each with every one of {names[1]}" if two else "the first of output"}
    name = NAME if two else "LLaMA-Factory ranking"
    return of_rows(table, name, rows(), (*names, prompt), said, with_rater(asked, table))


def _sides(table: Table) -> tuple[str, str] | None:
    """The columns of both sides, where one of them holds lists of texts, and the other such lists or texts."""
    lower = by_plain_name(table)
    for chosen, rejected in ((lower[a], lower[b]) for a, b in SIDES if a in lower and b in lower):
        cells = [table.first(name) for name in (chosen, rejected)]
        if any(_texts(cell) for cell in cells) and all(isinstance(c, str) or _texts(c) for c in cells):
            return chosen, rejected
    return None


def _list(cell: Any) -> list:
    """Lists alone: a text that is JSON may be the answer itself."""
    return cell if isinstance(cell, list) else []


def _texts(cell: Any) -> bool:
    found = _list(cell)
    return bool(found) and all(isinstance(entry, str) for entry in found)
