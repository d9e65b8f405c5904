"""Chatbot Arena as a Kaggle competition has it: three columns of 0 and 1, and turns as lists in texts."""

from typing import Any

from ..columns import Columns
from ..table import Table
from .base import Judged, Mapped, has, of_rows, structured
from .plain import check_asked

NAME = "Arena with three winner columns"
ORDER = 10
WINNERS = ("winner_model_a", "winner_model_b")
COLUMNS = ("response_a", "response_b", *WINNERS)


def recognise(table: Table) -> bool:
    return has(table, *COLUMNS)


def reads_label(table: Table, label: str) -> bool:
    """The columns of winners alone are labels here."""
    return label in WINNERS


def map(table: Table, asked: Columns) -> Mapped:
    """One of winner_model_a, winner_model_b and winner_tie is 1."""
    check_asked(table, asked)
    tie = "winner_tie" if has(table, "winner_tie") else None
    names = [*WINNERS, *([tie] if tie else [])]
    prompt = asked.prompt or ("prompt" if has(table, "prompt") else None)
    flags = [[_flag(cell) for cell in table.cells(name)] for name in names]
    way = -1.0 if _turned(asked) else 1.0
    sides = [[_turns(cell) for cell in table.cells(name)] for name in COLUMNS[:2]]
    prompts = [_turns(cell) for cell in table.cells(prompt)]

    def rows():
        for row, (asked_for, a, b, told) in enumerate(
            zip(prompts, *sides, zip(*flags, strict=True), strict=True)
        ):
            if None in told or sum(told) > 1 or (tie and sum(told) != 1):
                yield row, asked_for, f"has not one 1 among {', '.join(names)}"
            else:
                yield row, asked_for, [Judged(a, b, way * (told[0] - told[1]))]

    reads = ("tie",) if asked.label is None else ("first_is", "tie")
    said = {"chosen": "response_a or response_b", "label": ", ".join(names) + ": the 1 of them"}
    return of_rows(table, NAME, rows(), (*names, *COLUMNS[:2], prompt), said, asked, ids="id", reads=reads)


def _turned(asked: Columns) -> bool:
    """Whether a caller says that the labels mean the other side than their names do."""
    if asked.first_is is None or asked.label is None:
        return False
    return _flag(asked.first_is) == (0 if asked.label == WINNERS[0] else 1)


def _flag(cell: Any) -> int | None:
    return {"1": 1, "0": 0, "true": 1, "false": 0}.get(str(cell).strip().casefold().removesuffix(".0"))


def _turns(cell: Any):
    """A list of turns as one text; null turns are left out."""
    found = structured(cell)
    if isinstance(found, list) and all(turn is None or isinstance(turn, str) for turn in found):
        return "\n\n".join(turn for turn in found if turn)
    return cell
