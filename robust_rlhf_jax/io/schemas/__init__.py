"""How preferences are written in tables: one module for each way, all alike (`Schema` in `base.py`).

A new one is a module with `NAME`, `recognise` and `map`, its place in `SCHEMAS` and its test; a data set whose pairs
are rows is an entry in `known_columns.py`. The first that recognises a table maps it; the last takes every table.
"""

from types import ModuleType

from ..columns import Columns
from ..table import Table
from . import (
    argilla,
    individual_preferences,
    kaggle,
    known_columns,
    label_studio,
    lists_of_sides,
    multipref,
    openai,
    plain,
    rankings,
    scored_answers,
    scored_sides,
    summarize_from_feedback,
    unpaired,
    votes,
)
from .base import Mapped, Roles

SCHEMAS: tuple[ModuleType, ...] = (
    kaggle, label_studio, argilla, openai, summarize_from_feedback, multipref, individual_preferences, known_columns,
    lists_of_sides, scored_sides, votes, rankings, scored_answers, unpaired, plain,
)  # fmt: skip
# Which read a table whose sides, or whose label, a caller names.
OWN_SIDES = (label_studio,)


def map_table(table: Table, asked: Columns) -> Mapped:
    """What the table's schema makes of it; sides that are named by hand come before every schema.

    **Raises:** ValueError for what cannot be decided, with the flag that helps.
    """
    by_hand = asked.chosen is not None or asked.rejected is not None
    for schema in OWN_SIDES if by_hand else SCHEMAS:
        if schema.recognise(table) and not _other_label(schema, table, asked):
            return schema.map(table, asked)
    return plain.map(table, asked)


def _other_label(schema: ModuleType, table: Table, asked: Columns) -> bool:
    """Whether another label is asked for than the schema's, which the columns' own names then read."""
    if asked.label is None or schema in (argilla, rankings, scored_answers, label_studio):
        return False
    if schema is kaggle:
        return asked.label not in kaggle.WINNERS
    if schema is known_columns:
        return asked.label != known_columns.label_of(table)
    return True


__all__ = ["SCHEMAS", "Mapped", "Roles", "map_table"]
