"""Sides that are objects of numbers: `{"chosen": {"price": 24, "time": 60}, "rejected": {…}}`, or called `a` and `b`
beside a label."""

import dataclasses
from typing import Any

from ..columns import Columns
from ..labels import is_missing
from ..table import Table
from . import numbers_of_two_sides, plain
from .base import Mapped, structured
from .numbers import is_number
from .sides import PROMPTS, TOKENS, by_plain_name, chosen_sides, named

NAME = "objects of numbers"
ORDER = 95
ANY_LABEL = True


def recognise(table: Table) -> bool:
    found = _sides(table)
    if found is None:
        return False
    sides, _ = found
    cells = [cell for side in sides for cell in table.some(side) if not is_missing(cell)]
    objects = [_features(cell) for cell in cells]
    if _are_answers(table, cells, objects) or sum(bool(one) for one in objects) <= 0.9 * len(cells):
        return False
    return chosen_sides(table) is not None or numbers_of_two_sides.recognise(_with_columns(table, *found))


def map(table: Table, asked: Columns) -> Mapped:
    """Each number is read as a column chosen_<name> or rejected_<name>, or <name>_a or <name>_b beside a label; one
    that a row lacks is missing.

    **Raises:** as the schemas of such columns.
    """
    found = _sides(table)
    assert found is not None
    sides, _ = found
    schema = plain if chosen_sides(table) else numbers_of_two_sides
    mapped = schema.map(_with_columns(table, *found), asked)
    said = mapped.roles.said | {"chosen": f"{sides[0]}, by name", "rejected": f"{sides[1]}, by name"}
    if schema is numbers_of_two_sides:
        said |= {"chosen": f"{sides[0]} or {sides[1]}, by name", "rejected": "the other one"}
    return dataclasses.replace(
        mapped, schema=NAME, used=sides, roles=dataclasses.replace(mapped.roles, said=said)
    )


def _with_columns(table: Table, sides: tuple[str, str], forms: tuple[str, str]) -> Table:
    cells = [[_features(cell) for cell in table.cells(side)] for side in sides]
    names = dict.fromkeys(name for side in cells for row in side for name in row)
    columns = {name: column for name, column in table.columns.items() if name not in sides}
    for form, rows in zip(forms, cells, strict=True):
        columns |= {form.format(name): [row.get(name) for row in rows] for name in names}
    return dataclasses.replace(table, columns=columns)


def _sides(table: Table) -> tuple[tuple[str, str], tuple[str, str]] | None:
    """The columns of both sides, and what those of a number are called: chosen and rejected, or `a` and `b`,
    `option_1` and `option_2` and the like."""
    named_sides = chosen_sides(table)
    if named_sides is not None:
        return named_sides, ("chosen_{}", "rejected_{}")
    lower = by_plain_name(table)
    for a, b in TOKENS:
        for what in ("", "option_", "option"):
            if f"{what}{a}" in lower and f"{what}{b}" in lower:
                return (lower[f"{what}{a}"], lower[f"{what}{b}"]), (f"{{}}_{a}", f"{{}}_{b}")
    return None


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


def _features(cell: Any) -> dict[str, Any]:
    """The numbers by name; {} of anything else."""
    cell = structured(cell)
    return (
        cell if isinstance(cell, dict) and cell and all(_is_number(value) for value in cell.values()) else {}
    )


def _is_number(value: Any) -> bool:
    return value is None or (is_number(value) and not isinstance(value, str))
