"""Prodigy's choice tasks: `options` with ids and texts, and `accept` with the ids that were ticked."""

from typing import Any

from ..columns import Columns
from ..labels import TIE, word
from ..table import Table
from .base import Judged, Mapped, has, of_rows, records, structured
from .plain import check_asked, prompt_of
from .sides import named

NAME = "Prodigy"
ORDER = 35
TEXTS = ("text", "content", "html")
WHO = ("_annotator_id", "_session_id")


def recognise(table: Table) -> bool:
    return has(table, "options", "accept") and bool(_options(table.first("options")))


def map(table: Table, asked: Columns) -> Mapped:
    """The ticked option with each other one; an option that says "tie" is none.

    **Raises:** ValueError for a column that is asked for and not there.
    """
    check_asked(table, asked)
    prompt = prompt_of(table, asked, ("options",)) or named(table, ("text", "html"))
    who = named(table, WHO)
    answer = "answer" if has(table, "answer") else None
    cells = zip(*(table.cells(name) for name in (prompt, "options", "accept", answer, who)), strict=True)
    found = [
        (row, question, _judged(_options(options), structured(accept), answered, person))
        for row, (question, options, accept, answered, person) in enumerate(cells)
    ]
    lost = sum(not judged for _, _, judged in found)
    notes = (f"{lost} tasks without exactly one ticked option make no pair.",) if lost else ()
    said = {"chosen": "the option in accept", "rejected": "each other one", "label": "accept"}
    said |= {"rater": who} if who else {}
    used = ("accept", "options", prompt, answer, who)
    return of_rows(table, NAME, found, used, said, asked, notes=notes)


def _options(cell: Any) -> list[tuple[str, Any]]:
    """(id, text) of each option; [] for what is something else."""
    key = next((k for k in TEXTS if any(k in entry for entry in records(cell))), "")
    return [(str(e["id"]), e[key]) for e in records(cell) if key in e and "id" in e]


def _judged(options: list, accept: Any, answered: Any, person: Any) -> list[Judged]:
    ticked = {str(one) for one in accept} if isinstance(accept, list) else set()
    if len(ticked) != 1 or answered not in (None, "accept"):
        return []
    ties = [name for name, text in options if word(text) in TIE or word(name) in TIE]
    sides = [(name in ticked, text) for name, text in options if name not in ties]
    rater = None if person is None else str(person)
    if ticked & {*ties}:
        return [Judged(sides[0][1], sides[1][1], 0.0, rater)] if len(sides) == 2 else []
    best = next((i for i, (is_best, _) in enumerate(sides) if is_best), None)
    pairs = [] if best is None else [(min(best, i), max(best, i)) for i in range(len(sides)) if i != best]
    return [Judged(sides[i][1], sides[j][1], 1.0 if i == best else -1.0, rater) for i, j in pairs]
