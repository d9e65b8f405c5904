"""Lists of answers with scores or ranks and, beside, the best one, or the chosen and the rejected: read by the numbers
if the two agree."""

import dataclasses
from collections import defaultdict
from typing import Any

import numpy as np

from ..columns import Columns
from ..table import Table
from . import answer_columns, rankings, several_answers
from .base import Mapped
from .sides import chosen_sides

NAME = "scores beside the best answer"
ORDER = 115


def recognise(table: Table) -> bool:
    best = answer_columns.find_best(table, Columns()) is not None or chosen_sides(table) is not None
    return best and rankings.recognise(table)


def map(table: Table, asked: Columns) -> Mapped:
    """**Raises:** ValueError where another answer of a row, or the rejected one, has better numbers than the best."""
    made = rankings.map(table, asked)
    sides = chosen_sides(table)
    if sides is not None:
        texts = zip(table.cells(sides[0]), table.cells(sides[1]), strict=True)
        _check(made, dict(_one_way(row, *both, 1.0) for row, both in enumerate(texts)), sides)
    found = answer_columns.find_best(table, Columns())
    if found is None:
        return made
    try:
        best = several_answers.map(table, dataclasses.replace(asked, label=found.by[0]))
    except ValueError:  # which answer a number counts is not known
        return made
    check_best(made, best)
    return made


def check_best(numbers: Mapped, best: Mapped) -> None:
    """**Raises:** ValueError where numbers are for one of two answers, and what is said of the best for the other."""
    _check(numbers, _ways(best), (_label(best),))


def _check(numbers: Mapped, said: dict[tuple[int, str, str], float], by: tuple[str, ...]) -> None:
    """**Raises:** ValueError where numbers are for one of two answers, and what the columns `by` say for the other."""
    torn = next((pair for pair, way in _ways(numbers).items() if way * said.get(pair, 0.0) < 0), None)
    if torn is not None:
        names = " and ".join((*by, _label(numbers)))
        choice = f"--label {by[0]}" if len(by) == 1 else f"--chosen {by[0]} --rejected {by[1]}"
        raise ValueError(
            f"{names} both say which answer is the better one, and disagree in row {torn[0] + 1}: "
            f"choose by {choice} or --label {_label(numbers)}"
        )


def _label(mapped: Mapped) -> str:
    return mapped.roles.said["label"].rpartition(": ")[0]


def _ways(mapped: Mapped) -> dict[tuple[int, str, str], float]:
    """Above 0 where the first answer of (row, first, second) is the better one; summed over answers that come again."""
    origin = range(mapped.table.n_rows) if mapped.origin is None else np.asarray(mapped.origin).tolist()
    cells = (mapped.table.cells(name) for name in ("first", "second", "strength"))
    ways: dict[tuple[int, str, str], float] = defaultdict(float)
    for row, *judged in zip(origin, *cells, strict=True):
        pair, way = _one_way(row, *judged)
        ways[pair] += way
    return ways


def _one_way(row: int, first: Any, second: Any, way: float) -> tuple[tuple[int, str, str], float]:
    a, b = repr(first), repr(second)
    return ((row, a, b), way) if a <= b else ((row, b, a), -way)
