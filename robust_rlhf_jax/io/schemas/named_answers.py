"""Answers in an object by what they are called, `{"a": "Yes.", "b": "No."}`: read as lists of objects are."""

import dataclasses
from typing import Any

from ..columns import Columns
from ..labels import is_missing, number_in
from ..table import Table
from .answer_names import NAME_KEYS
from .base import structured
from .rankings import ANSWER_KEYS, ANSWER_LISTS, RANK_LISTS, SCORE_LISTS
from .sides import by_plain_name, chosen_sides, open_sides


def with_lists(table: Table, asked: Columns) -> Table:
    """The table with its objects of answers as lists of {name, text}, with the score and the rank of each in place of
    columns that hold those by the same names; that of a column that the caller names is called as it is."""
    lower = by_plain_name(table)
    name = next((lower[n] for n in ANSWER_LISTS if n in lower and _are_named(table.some(lower[n]))), None)
    if name is None or chosen_sides(table) or open_sides(table, ()):
        return table
    beside = {
        (lower[n] if lower[n] == asked.label else key): lower[n]
        for key, names in (("score", SCORE_LISTS), ("rank", RANK_LISTS))
        for n in names
        if n in lower and _are_numbers(table.some(lower[n]))
    }
    numbers = {key: [structured(cell) for cell in table.cells(column)] for key, column in beside.items()}
    cells = [
        _listed(structured(cell), {key: column[row] for key, column in numbers.items()})
        for row, cell in enumerate(table.cells(name))
    ]
    gone = {*beside.values()} - {asked.label}
    columns = {n: column for n, column in table.columns.items() if n not in gone}
    return dataclasses.replace(table, columns=columns | {name: cells})


def _are_named(cells: list) -> bool:
    """Whether cells are objects of two answers or more, and no answers themselves."""
    found = [structured(cell) for cell in cells if not is_missing(cell)]
    return bool(found) and all(
        isinstance(cell, dict)
        and not {*ANSWER_KEYS, *NAME_KEYS} & cell.keys()
        and sum(value is not None for value in cell.values()) > 1
        and all(value is None or isinstance(value, str) or _is_answer(value) for value in cell.values())
        for cell in found
    )


def _is_answer(value: Any) -> bool:
    return isinstance(value, dict) and bool({*ANSWER_KEYS} & value.keys())


def _are_numbers(cells: list) -> bool:
    found = [structured(cell) for cell in cells if not is_missing(cell)]
    return bool(found) and all(
        isinstance(cell, dict) and all(v is None or number_in(v) is not None for v in cell.values())
        for cell in found
    )


def _listed(answers: Any, beside: dict[str, Any]) -> Any:
    if not isinstance(answers, dict):
        return answers
    return [
        (value if isinstance(value, dict) else {"text": value})
        | {"name": name}
        | {
            key: numbers[name]
            for key, numbers in beside.items()
            if isinstance(numbers, dict) and name in numbers
        }
        for name, value in answers.items()
        if value is not None
    ]
