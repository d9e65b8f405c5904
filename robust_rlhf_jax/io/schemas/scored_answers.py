"""One answer a row with a score or a rank, several rows a prompt: HelpSteer2's ratings, best of n in long form."""

from collections import defaultdict
from typing import Any

from ..columns import Columns
from ..table import Table
from .base import Judged, Mapped, of_rows
from .numbers import is_number
from .plain import prompt_of
from .rankings import RANK_KEYS, pairs_of
from .sides import PROMPTS, chosen_sides, holds_texts, named, open_sides

NAME = "scored answers"
ORDER = 130
ANY_LABEL = True
ANSWER = ("response", "completion", "answer", "output", "generation", "text", "reply", "candidate", "summary")
SCORES = ("overall_score", "score", "reward", "rating", "overall", "helpfulness", *RANK_KEYS)


def recognise(table: Table) -> bool:
    if chosen_sides(table) or open_sides(table):
        return False
    found = _columns(table, None)
    return found is not None and len({map_key(c) for c in table.cells(found[0])}) < table.n_rows


def map(table: Table, asked: Columns) -> Mapped:
    """Every two answers to a prompt, the better one by score; the pair is at the row of its first answer."""
    found = _columns(table, asked.label)
    assert found is not None
    prompt, answer, score = found
    prompt = prompt_of(table, asked, (answer,)) or prompt
    prompts, answers, values = (table.cells(name) for name in (prompt, answer, score))
    way = -1.0 if score.casefold() in RANK_KEYS else 1.0
    groups = defaultdict(list)
    for row, (key, value) in enumerate(zip(prompts, values, strict=True)):
        if is_number(value) and answers[row] is not None:
            groups[map_key(key)].append(row)
    first_row = {row: members[0] for members in groups.values() for row in members}
    by_row: dict[int, list[Judged]] = defaultdict(list)
    for members in groups.values():
        made = pairs_of(members, [way * float(values[m]) for m in members])
        for first, second, strength, *_ in made:
            by_row[first].append(Judged(answers[first], answers[second], strength, None, second))
    lost = sum(not (is_number(v) and a is not None) for v, a in zip(values, answers, strict=True))
    notes = (f"{lost} answers have no score, and make no pair.",) if lost else ()
    rows = ((row, prompts[row], pairs) for row, pairs in sorted(by_row.items()))
    best = "the lowest is the best" if way < 0 else "the highest is the best"
    said = {"chosen": f"{answer} of two rows with the same {prompt}", "label": f"{score}: {best}"}
    keys = [first_row.get(row, row) for row in range(table.n_rows)]
    return of_rows(table, NAME, rows, (answer, prompt, score), said, asked, groups=keys, notes=notes)


def map_key(cell: Any) -> str:
    return cell if isinstance(cell, str) else repr(cell)


def _columns(table: Table, asked: str | None) -> tuple[str, str, str] | None:
    prompt, answer = named(table, PROMPTS), named(table, ANSWER)
    score = asked or named(table, SCORES)
    if (
        prompt is None
        or answer is None
        or score is None
        or prompt == answer
        or not holds_texts(table.first(answer))
    ):
        return None
    return (prompt, answer, score) if score in table.columns and is_number(table.first(score)) else None
