"""Lists of answers with scores or ranks and, beside, the best one: read by the numbers if the two agree."""

import dataclasses
from collections import defaultdict

import numpy as np

from ..columns import Columns
from ..table import Table
from . import answer_columns, rankings, several_answers
from .base import Mapped

NAME = "scores beside the best answer"
ORDER = 115


def recognise(table: Table) -> bool:
    return answer_columns.find_best(table, Columns()) is not None and rankings.recognise(table)


def map(table: Table, asked: Columns) -> Mapped:
    """**Raises:** ValueError where another answer of a row has better numbers than the best one."""
    made = rankings.map(table, asked)
    found = answer_columns.find_best(table, Columns())
    assert found is not None
    try:
        best = several_answers.map(table, dataclasses.replace(asked, label=found.by[0]))
    except ValueError:  # which answer a number counts is not known
        return made
    check_best(made, best)
    return made


def check_best(numbers: Mapped, best: Mapped) -> None:
    """**Raises:** ValueError where numbers are for one of two answers, and what is said of the best for the other."""
    said = _ways(best)
    torn = next((pair for pair, way in _ways(numbers).items() if way * said.get(pair, 0.0) < 0), None)
    if torn is not None:
        names = [mapped.roles.said["label"].rpartition(": ")[0] for mapped in (best, numbers)]
        raise ValueError(
            f"{' and '.join(names)} both say which answer is the better one, and disagree in row {torn[0] + 1}: "
            f"choose by --label {' or --label '.join(names)}"
        )


def _ways(mapped: Mapped) -> dict[tuple[int, str, str], float]:
    """Above 0 where the first answer of (row, first, second) is the better one; summed over answers that come again."""
    origin = range(mapped.table.n_rows) if mapped.origin is None else np.asarray(mapped.origin).tolist()
    cells = (mapped.table.cells(name) for name in ("first", "second", "strength"))
    ways: dict[tuple[int, str, str], float] = defaultdict(float)
    for row, first, second, way in zip(origin, *cells, strict=True):
        a, b = repr(first), repr(second)
        ways[row, min(a, b), max(a, b)] += way if a <= b else -way
    return ways
