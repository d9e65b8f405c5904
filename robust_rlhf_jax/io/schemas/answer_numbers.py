"""What numbers in cells count: the answers of a row from 0 or from 1, or the ends of their columns' names."""

import re

from ..columns import Columns
from .answer_names import Answers

# Names of columns in which 0 and 1 count two answers; in others 1 may mean that the first one won.
COUNTS = re.compile(
    r"(?:idx|index|id|number|position)$|^(?:best|most|top|winner|chosen|selected|picked)", re.I
)
INDEX = re.compile(r"(?:idx|index)$", re.I)


def counted_from(
    answers: Answers, column: str, numbers: set[int], many: int, asked: Columns, of_best: bool
) -> dict[str, int]:
    """{number: answer} of a `column` with these numbers; {} where the columns' own names say it.

    **Arguments:** `many`: answers of a row at most; `of_best`: whether the column names the best answer alone.

    **Raises:** ValueError where numbers could count from 0 or from 1, or 1 could mean the first of two, and the caller
        does not say; and for a first number that is neither 0 nor 1.
    """
    if asked.first_is is not None:
        return _as_told(asked.first_is, numbers, many)
    if answers.numbered:
        _check_names(answers, column, numbers)
        return {}
    doubtful = many == 2 and numbers == {0, 1} and of_best and not COUNTS.search(column)
    if not numbers or (numbers == {*range(many)} and not doubtful):
        return _from(0, many)
    if 0 not in numbers and many in numbers:
        return _from(1, many)
    raise ValueError(_asking(column, numbers, f"{many} answers"))


def _check_names(answers: Answers, column: str, numbers: set[int]) -> None:
    """**Raises:** ValueError for numbers that are not those of the columns, or an index that may count from 0."""
    ends = {int(name) for name in answers.names}
    of_index = INDEX.search(column) and min(ends) == 1 and max(ends) not in numbers
    if numbers and (not numbers <= ends or of_index):
        raise ValueError(_asking(column, numbers, f"answers {min(ends)} to {max(ends)}"))


def _asking(column: str, numbers: set[int], of: str) -> str:
    listed = ", ".join(f"{n}" for n in sorted(numbers)[:6])
    flags = "--first-is 0 or --first-is 1"
    return f"column {column} holds {listed}, of {of}: say whether the first one is 0 or 1, by {flags}"


def _as_told(first: str, numbers: set[int], many: int) -> dict[str, int]:
    if first not in ("0", "1"):
        raise ValueError(f"--first-is {first}: the number of the first answer is 0 or 1")
    if many == 2 and first == "1" and 0 in numbers:  # 1 is the first of two, 0 the second
        return {"1": 0, "0": 1}
    return _from(int(first), many)


def _from(first: int, many: int) -> dict[str, int]:
    return {f"{first + i}": i for i in range(many)}
