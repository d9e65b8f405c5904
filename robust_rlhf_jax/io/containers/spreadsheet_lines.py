"""Lines that programs add around the rows of a table: further lines of names, names of rows, and a row of totals."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ..bad_cells import BadCell, shown
from ..labels import number_in
from ..table import Table

# What columns without a name are called.
UNNAMED = re.compile(r"column \d+")
# What a spreadsheet calls a row that sums up those above.
TOTAL = re.compile(
    r"(?:(?:(?:grand|sub)[ -]?)?totals?|sum|average|mean|gesamt(?:summe)?|summe|mittelwert|somme|moyenne|"
    r"totale|somma|media|suma|promedio):?",
    re.I,
)
# What is written where a number is missing.
NOTHING = re.compile(r"|#?n/?a|<na>|nan|null|none|nil|\\n|missing|[.?]|--?", re.I)

# How Qualtrics's third line begins its cells, and what SurveyMonkey's first column is called.
IMPORTED, RESPONDENT = re.compile(r'\s*\{"ImportId":'), re.compile(r"respondent[ _]?id", re.I)


class Around(NamedTuple):
    """`heads`: lines of a survey's program below the names of the columns; `numbered`: whether the rows have numbers of
    which the header says nothing, as R's `write.table` writes them.
    """

    heads: int
    numbered: bool


def around(first: Sequence[Sequence[str]], quoted: bool) -> Around:
    """What stands around the rows, by the first records of a file; `quoted`: all of them begin with a quotation mark,
    as R's do. In others a row may have one cell more because of a comma in a text.
    """
    header, *body = first or [[]]
    if len(body) > 1 and body[1] and all(IMPORTED.match(cell) for cell in body[1]):
        return Around(2, False)
    told = bool(body) and bool(header) and RESPONDENT.fullmatch(header[0].strip()) is not None
    if told and any(body[0]) and not body[0][0].strip() and all(row[0].strip() for row in body[1:]):
        return Around(1, False)
    numbers = [row[0] for row in body if len(row) == len(header) + 1 and row[0].isdecimal()]
    return Around(0, quoted and len(body) > 1 and len({*numbers}) == len(body))


def without_empty_end(records: Iterable[tuple[list[str], str, int]]) -> Iterator[tuple[list[str], str, int]]:
    """The records up to the last that holds anything: spreadsheets save rows that were emptied as delimiters alone."""
    held = []
    for record in records:
        held.append(record)
        if any(record[0]):
            yield from held
            held.clear()


def check_one_header(table: Table) -> None:
    """**Raises:** ValueError for a second line of names, below names that stand for several columns: some columns
    without a name hold a word in the first row, and numbers below it.
    """
    unnamed = [name for name in table.names if not name or UNNAMED.fullmatch(name)]
    if len(unnamed) < 2 or table.n_rows < 2:
        return
    numbers = [name for name in table.names if _numbers_below_a_word(table.cells(name))]
    if {*unnamed[1:]} & {*numbers} and len(numbers) > 1:
        second = ", ".join(shown(table.cells(name)[0]) for name in numbers)
        raise ValueError(
            f"{table.path} names its columns in two lines, of which the second holds {second}: write one line of "
            "names, such as chosen_price for price below chosen."
        )


def totals(table: Table) -> list[BadCell]:
    """The last row, if it holds only numbers and the name of a total or a mean, and its numbers are those of the rows
    above; an answer or a brand may be called so, too.
    """
    last = {name: table.cells(name)[-1] for name in table.names} if table.n_rows > 2 else {}
    words = [cell.strip() for cell in last.values() if cell and cell.strip() and _number(cell) is None]
    if len(words) != 1 or not TOTAL.fullmatch(words[0]):
        return []
    sums = {name: cell for name, cell in last.items() if cell and _number(cell) is not None}
    if sums and all(_sums_up(cell, table.cells(name)[:-1]) for name, cell in sums.items()):
        return [BadCell(table.n_rows - 1, "", "sums up the rows above")]
    return []


def _sums_up(cell: str, above: list) -> bool:
    """Whether a number is the sum or the mean of others, as it is rounded."""
    numbers = [number for number in map(_number, filter(None, above)) if number is not None]
    whole, decimals = _number(cell), len(cell.replace(",", ".").partition(".")[2])
    assert whole is not None
    sums = (sum(numbers), sum(numbers) / max(len(numbers), 1))
    return any(abs(whole - one) <= 0.51 * 10.0**-decimals + 1e-9 * abs(one) for one in sums)


def _numbers_below_a_word(cells: list) -> bool:
    first, there = (cells[0] or "").strip(), [cell for cell in cells[1:] if cell]
    is_word = not NOTHING.fullmatch(first) and _number(first) is None
    return is_word and bool(there) and all(_number(cell) is not None for cell in there)


def _number(cell: str) -> float | None:
    """What a cell says with a decimal point or a decimal comma."""
    return number_in(cell.replace(",", "."))
