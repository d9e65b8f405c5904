"""Several chosen or rejected answers in a row (RewardBench 2), or both sides in one list (LLaMA-Factory)."""

from typing import Any

from ..columns import Columns
from ..table import Table
from .base import Judged, Mapped, has, of_rows
from .plain import check_asked, prompt_of

NAME = "lists of chosen and rejected"
ORDER = 90


def recognise(table: Table) -> bool:
    if has(table, "chosen", "rejected"):
        cells = [table.first(name) for name in ("chosen", "rejected")]
        return any(_texts(cell) for cell in cells) and all(
            isinstance(cell, str) or _texts(cell) for cell in cells
        )
    return has(table, "instruction", "output") and all(
        len(_list(c)) == 2 and _texts(c) for c in table.some("output") if c
    )


def map(table: Table, asked: Columns) -> Mapped:
    """Every chosen answer with every rejected one, grouped by row."""
    check_asked(table, asked)
    two = has(table, "chosen", "rejected")
    prompt = prompt_of(table, asked, ("chosen", "rejected"))
    prompts = table.cells(prompt)
    more = table.cells("input" if prompt == "instruction" and has(table, "input") else None)
    names = ("chosen", "rejected") if two else ("output",)
    sides = zip(*(table.cells(name) for name in names), strict=True)

    def rows():
        for row, cells in enumerate(sides):
            lists = [[cell] if two and isinstance(cell, str) else _list(cell) for cell in cells]
            good, bad = lists if two else ([lists[0][:1], lists[0][1:2]])
            said = "\n".join(str(t) for t in (prompts[row], more[row]) if t)
            yield row, said, [Judged(a, b, 1.0) for a in good for b in bad] or "holds no pair of answers"

    said = {"chosen": "chosen, each with every one rejected" if two else "the first of output"}
    used = (*names, prompt, "input" if any(more) else None)
    return of_rows(table, NAME if two else "LLaMA-Factory ranking", rows(), used, said, asked)


def _list(cell: Any) -> list:
    """Lists alone: a text that is JSON may be the answer itself."""
    return cell if isinstance(cell, list) else []


def _texts(cell: Any) -> bool:
    found = _list(cell)
    return bool(found) and all(isinstance(entry, str) for entry in found)
