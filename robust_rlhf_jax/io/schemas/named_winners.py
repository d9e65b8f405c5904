"""Labels that name the winner by its id or its model, or that repeat its text."""

import itertools
from typing import Any

from ..labels import Rule, is_missing, suffixes, word, word_rule
from ..table import Table
from .numbers import FIRST_CELLS, is_number, mostly_numbers
from .sides import BEFORE, WHOSE, by_plain_name, plain_name

# Columns that name the winner by its id, where there is an id of each side.
WINNERS_IDS = (
    "winner_id", "winning_id", "chosen_id", "selected_id", "preferred_id", "best_id", "winner_response_id",
    "chosen_response_id", "preferred_response_id",
)  # fmt: skip
MODELS = ("model", "model_name", "generator", "system", "policy", "llm", "engine", "method", "variant", "bot")
# What both sides may come from; of features called so, both sides may have the same.
ARMS = ("arm", "condition", "treatment", "source", "author", "group")


def resolved(
    table: Table,
    cells: list,
    sides: tuple[str, str],
    tie_is: str | None,
    by_text: bool = True,
    ids_of: str = "",
) -> list:
    """Labels that name the winner by its id or its model, or repeat its text, as "first" and "second".

    `ids_of`: the name of their column.
    """
    rule = word_rule(sides, tie_is)
    for first, second in ids_of_winners(table, ids_of, cells, sides):
        return [_by_id(cell, a, b, rule) for cell, a, b in zip(cells, first, second, strict=True)]
    unknown = {
        word(cell) for cell in cells if isinstance(cell, str) and cell.strip() and rule.value(cell) is None
    }
    if not unknown or all(is_number(w) for w in unknown):
        return cells
    texts = by_text and all(name in table.columns for name in sides)
    for pair in (*beside(table, sides, (*MODELS, *ARMS)), *((sides,) if texts else ())):
        first, second = (table.cells(name) for name in pair)
        made = [_which(cell, a, b, rule) for cell, a, b in zip(cells, first, second, strict=True)]
        found = sum(a in ("first", "second") and a != b for a, b in zip(made, cells, strict=True))
        if 2 * found > sum(isinstance(c, str) and rule.value(c) is None for c in cells):
            return made
    return cells


def _which(cell: Any, first, second, rule: Rule):
    if not isinstance(cell, str) or rule.value(cell) is not None or first == second:
        return cell
    return "first" if cell == first else "second" if cell == second else cell


def _by_id(cell: Any, first: str, second: str, rule: Rule):
    """A word for a side that is no id says nothing among ids."""
    if word(cell) in (first, second) and first != second:
        return "first" if word(cell) == first else "second"
    return f"id {cell}" if rule.value(cell) else cell


def ids_of_winners(
    table: Table, label: str, cells: list, sides: tuple[str, str]
) -> list[tuple[list[str], list[str]]]:
    """The ids of both sides, as words, where most labels name the winner by them, and, in a column that is not called
    so, no other label names a side; numbers up to 2 are those of sides."""
    rule, found = word_rule(sides), []
    there = [row for row, cell in enumerate(cells) if not is_missing(cell)]
    for names in beside(table, sides, ("id",)):
        columns = [cells, *(table.cells(name) for name in names)]
        decided = itertools.islice((row for row in there if rule.value(cells[row]) != 0), FIRST_CELLS)
        if not any(word(cells[row]) in [word(ids[row]) for ids in columns[1:]] for row in decided):
            continue
        words, first, second = ([word(cell) for cell in column] for column in columns)
        others = [row for row in there if (words[row] == first[row]) == (words[row] == second[row])]
        called = plain_name(label) in WINNERS_IDS
        clear = not any(rule.value(cells[row]) for row in others) and not {*first, *second} <= {"0", "1", "2"}
        if 2 * len(others) < len(there) and (called or clear):
            found.append((first, second))
    return found


def beside(table: Table, sides: tuple[str, str], what: tuple[str, ...]) -> list[tuple[str, str]]:
    """Columns of something of both sides: model_a and model_b, who wrote response_a and response_b."""
    lower = by_plain_name(table)
    whose, before = (
        [match["token"].casefold() if (match := pattern.match(side)) else "" for side in sides]
        for pattern in (WHOSE, BEFORE)
    )
    a, b = whose if "" not in whose else suffixes(sides)
    a, b = before if not a and "" not in before else (a, b)  # left_response, right_response
    names = [(f"{m}{s}{a}", f"{m}{s}{b}") for m in what for s in ("_", "")]
    names += [(f"model_{a}_name", f"model_{b}_name")] if "model_name" in what else []
    names += [(f"{side[0]}_{m}", f"{side[1]}_{m}") for m in what for side in ((a, b), sides)]
    return [(lower[x], lower[y]) for x, y in names if x in lower and y in lower]


def models_of(table: Table, sides: tuple[str, str]) -> tuple[str, str] | None:
    """The columns of words that name the model of each side, if any."""
    found = beside(table, sides, MODELS)
    return next(
        (names for names in found if not any(mostly_numbers(table.some(name)) for name in names)), None
    )
