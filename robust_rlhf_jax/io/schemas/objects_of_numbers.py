"""Sides that are objects of numbers: `{"chosen": {"price": 24, "time": 60}, "rejected": {…}}`."""

import dataclasses
from typing import Any

from ..columns import Columns
from ..labels import is_missing
from ..table import Table
from . import plain
from .base import Mapped, structured
from .numbers import is_number
from .sides import PROMPTS, chosen_sides, named

NAME = "objects of numbers"
ORDER = 95
ANY_LABEL = True


def recognise(table: Table) -> bool:
    sides = chosen_sides(table)
    if sides is None:
        return False
    cells = [cell for side in sides for cell in table.some(side) if not is_missing(cell)]
    objects = [_features(cell) for cell in cells]
    return not _are_answers(table, cells, objects) and sum(bool(one) for one in objects) > 0.9 * len(cells)


def _are_answers(table: Table, cells: list, objects: list[dict]) -> bool:
    """Whether the objects are answers in JSON to a prompt of some words: where a table has types, texts are texts, and
    in one of texts alone features have the same names in every row.
    """
    prompts = [str(cell) for cell in _some_of(table, named(table, PROMPTS))]
    prose = 2 * sum(len(prompt.split()) > 2 for prompt in prompts) > len(prompts)
    if not prose or not any(isinstance(cell, str) for cell in cells):
        return False
    return not table.source.only_texts or len({tuple(sorted(one)) for one in objects}) > 1


def _some_of(table: Table, name: str | None) -> list:
    return [] if name is None else [cell for cell in table.some(name) if not is_missing(cell)]


def map(table: Table, asked: Columns) -> Mapped:
    """Each number is read as a column chosen_<name> or rejected_<name>; one that a row lacks is missing."""
    sides = chosen_sides(table)
    assert sides is not None
    cells = [[_features(cell) for cell in table.cells(side)] for side in sides]
    names = dict.fromkeys(name for side in cells for row in side for name in row)
    columns = {name: column for name, column in table.columns.items() if name not in sides}
    for side, rows in zip(("chosen", "rejected"), cells, strict=True):
        columns |= {f"{side}_{name}": [row.get(name) for row in rows] for name in names}
    found = plain.map(dataclasses.replace(table, columns=columns), asked)
    said = found.roles.said | {"chosen": f"{sides[0]}, by name", "rejected": f"{sides[1]}, by name"}
    return dataclasses.replace(
        found, schema=NAME, used=sides, roles=dataclasses.replace(found.roles, said=said)
    )


def _features(cell: Any) -> dict[str, Any]:
    """The numbers by name; {} of anything else."""
    cell = structured(cell)
    return (
        cell if isinstance(cell, dict) and cell and all(_is_number(value) for value in cell.values()) else {}
    )


def _is_number(value: Any) -> bool:
    return value is None or (is_number(value) and not isinstance(value, str))
