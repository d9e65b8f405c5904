"""Two answers with a score each and no label: WebGPT's comparisons, exports of reward models."""

import re
from typing import Any

from ..columns import Columns
from ..labels import suffixes
from ..table import Table
from .base import Judged, Mapped, of_rows
from .numbers import is_number
from .plain import check_asked, prompt_of
from .sides import LABELS, chosen_sides, named, open_sides, with_rater

NAME = "two scored sides"
ORDER = 100
SCORE = re.compile(r"^(?:(?:.*_)?(?:score|rating|reward|overall_score)s?)$", re.I)


def recognise(table: Table) -> bool:
    return not chosen_sides(table) and named(table, LABELS) is None and _columns(table) is not None


def map(table: Table, asked: Columns) -> Mapped:
    """The side with the higher score wins."""
    check_asked(table, asked)
    found = _columns(table)
    assert found is not None
    sides, scores = found
    prompt = prompt_of(table, asked, sides)
    prompts = [_question(cell) for cell in table.cells(prompt)]
    cells = [table.cells(name) for name in (*sides, *scores)]

    def rows():
        for row, (a, b, x, y) in enumerate(zip(*cells, strict=True)):
            if not is_number(x) or not is_number(y):
                yield row, prompts[row], "has no number as the score of a side"
            else:
                gap = float(x) - float(y)
                yield row, prompts[row], [Judged(a, b, 0.0 if gap == 0 else 1.0 if gap > 0 else -1.0)]

    said = {"chosen": f"{sides[0]} or {sides[1]}", "label": f"the higher of {scores[0]} and {scores[1]}"}
    return of_rows(table, NAME, rows(), (*sides, *scores, prompt), said, with_rater(asked, table))


def _columns(table: Table) -> tuple[tuple[str, str], tuple[str, str]] | None:
    sides = open_sides(table)
    if len(sides) != 2:
        return None
    a, b = suffixes((sides[0], sides[1]))
    found = {}
    for name in table.names:
        for token in (a, b):
            stem = re.sub(rf"[_\-. ]?{token}$|^{token}[_\-. ]", "", name, flags=re.I) if token else name
            if stem != name and SCORE.match(stem) and is_number(table.first(name)):
                found.setdefault(stem.casefold(), {})[token] = name
    both = [pair for pair in found.values() if a in pair and b in pair]
    return ((sides[0], sides[1]), (both[0][a], both[0][b])) if len(both) == 1 else None


def _question(cell: Any):
    """WebGPT's questions are objects with their full text."""
    return cell.get("full_text", cell) if isinstance(cell, dict) else cell
