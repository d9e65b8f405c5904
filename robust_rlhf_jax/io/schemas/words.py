"""Columns of words for each side, such as a brand: a feature for each word, where that is asked for."""

import dataclasses
from typing import Any

from .base import Mapped

# A column of more different words is no attribute of the options but says something of each.
MOST_WORDS = 20
# Letters of a word, at most: what is longer is a text.
LONGEST = 60


def word_of(cell: Any) -> str:
    return str(cell).strip()


def are_words(cells: list) -> bool:
    """Whether the cells are a few short words, or true and false."""
    there = [cell for cell in cells if cell is not None and cell != ""]
    if not there or not all(isinstance(cell, str | bool) and len(word_of(cell)) <= LONGEST for cell in there):
        return False
    different = {word_of(cell) for cell in there}
    return len(different) <= min(MOST_WORDS, len(there) // 2)


def with_words(mapped: Mapped) -> Mapped:
    """Numbers for `roles.words`: a column for each word but the first of the alphabet, with which the others are
    compared. It is 1 where the side has the word and 0 elsewhere.

    **Raises:** ValueError where there are none.
    """
    roles, table = mapped.roles, mapped.table
    if not roles.words:
        raise ValueError(
            "--words reads words beside numbers, and finds no such column for both sides that holds a few short words."
        )
    numeric, columns = dict(roles.numbers.get("numeric", {})), dict(table.columns)
    cells_of = dict(mapped.cells_of)
    for feature, sides in roles.words.items():
        cells = [[_or_none(cell) for cell in table.cells(side)] for side in sides]
        words = sorted({cell for side in cells for cell in side if cell is not None})
        for word in words[1:]:
            names = f"{sides[0]}={word}", f"{sides[1]}={word}"
            numeric[f"{feature}={word}"] = names
            for name, side, read in zip(names, sides, cells, strict=True):
                columns[name] = [None if cell is None else float(cell == word) for cell in read]
                cells_of[name] = mapped.cells_of.get(side, (side, False))
    return dataclasses.replace(
        mapped,
        table=dataclasses.replace(table, columns=columns),
        roles=dataclasses.replace(roles, numbers=roles.numbers | {"numeric": numeric}),
        used=(*mapped.used, *columns_of(roles.words)),
        cells_of=cells_of,
    )


def columns_of(words: dict[str, tuple[str, str]]) -> list[str]:
    """The file's columns; of one option a row that of a feature has its name."""
    return [name for feature, sides in words.items() for name in (feature, *sides)]


def _or_none(cell: Any) -> str | None:
    return None if cell is None or cell == "" else word_of(cell)
