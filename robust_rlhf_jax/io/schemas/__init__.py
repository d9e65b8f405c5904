"""How preferences are written in tables: one module for each way, all alike (`Schema` in `base.py`).

A new one is a module with `NAME`, `recognise` and `map`, which is discovered, and its test; a data set whose pairs are
rows is an entry in `known_columns.py`. The first that recognises a table maps it; the last takes every table.
"""

import dataclasses
from types import ModuleType

from robust_rlhf_jax.collected import modules_with

from ..columns import Columns
from ..table import Table
from . import plain, wide_choices
from .base import SAYING_WHO_WON, Mapped, Roles
from .decimal_commas import with_decimal_points
from .directions import with_directions
from .inputs import input_of, with_inputs
from .named_answers import with_lists
from .words import with_words

# `plain` takes every table, and comes after all others.
SCHEMAS: tuple[ModuleType, ...] = (
    *(schema for schema in modules_with(__name__, "NAME", "recognise", "map") if schema is not plain),
    plain,
)


def map_table(table: Table, asked: Columns) -> Mapped:
    """What the table's schema makes of it, with features of words where they are asked for; sides that are named by
    hand come before every schema but those that read such sides.

    **Raises:** ValueError for what cannot be decided, with the flag that helps.
    """
    _check_alternatives(asked)
    table, note = with_decimal_points(table, asked.label)
    made = with_lists(with_inputs(table, asked), asked)
    mapped = with_directions(table, _mapped(made, asked))
    joined = tuple(name for name in table.names if name not in made.columns)
    notes = (*mapped.notes, note) if note else mapped.notes
    mapped = dataclasses.replace(mapped, used=(*mapped.used, *joined), notes=notes)
    beside = input_of(table, asked)
    if beside is not None and mapped.roles.text is not None:
        mapped = _with_input(mapped, *beside)
    if asked.alternatives is not None and mapped.schema != wide_choices.NAME:
        first, *_ = asked.alternatives
        raise ValueError(
            f"--alternatives {' '.join(asked.alternatives)} is for columns that are called after all of these, such as "
            f"time_{first}, and a label that names or numbers them: here columns are not called so, or more than a "
            "twentieth of the labels are something else"
        )
    _check_that_all_is_read(mapped, asked)
    return with_words(mapped) if asked.words else mapped


def _with_input(mapped: Mapped, instruction: str, beside: str) -> Mapped:
    """What a description says of a prompt that has its input."""
    said = mapped.roles.said | {"prompt": f"{instruction}, then {beside}"}
    return dataclasses.replace(mapped, roles=dataclasses.replace(mapped.roles, said=said))


def _check_that_all_is_read(mapped: Mapped, asked: Columns) -> None:
    """**Raises:** ValueError for what a caller says of labels where no label is read as they say."""
    for part in SAYING_WHO_WON:
        if getattr(asked, part) is not None and part not in mapped.reads:
            flag = "--" + part.replace("_", "-")
            why = mapped.roles.said.get("label", "").removeprefix("none: ")
            because = f" ({why})" if why else ""
            raise ValueError(
                f"{flag} changes nothing here, where the file itself says who won{because}: leave it out"
            )


def _check_alternatives(asked: Columns) -> None:
    """**Raises:** ValueError for fewer than two, and for one that stands twice."""
    if asked.alternatives is not None:
        different = {name.strip().casefold() for name in asked.alternatives}
        if len(different) < max(2, len(asked.alternatives)):
            raise ValueError("--alternatives needs two or more names of options, each once")


def _mapped(table: Table, asked: Columns) -> Mapped:
    by_hand = asked.chosen is not None or asked.rejected is not None
    for schema in SCHEMAS:
        if by_hand and not getattr(schema, "OWN_SIDES", False):
            continue
        if _recognises(schema, table, asked) and not _other_label(schema, table, asked):
            return schema.map(table, asked)
    return plain.map(table, asked)


def _recognises(schema: ModuleType, table: Table, asked: Columns) -> bool:
    asking = getattr(schema, "recognise_asked", None) if asked != Columns() else None
    return schema.recognise(table) or (asking is not None and asking(table, asked))


def _other_label(schema: ModuleType, table: Table, asked: Columns) -> bool:
    """Whether another label is asked for than the schema's, which the columns' own names then read."""
    if asked.label is None or getattr(schema, "ANY_LABEL", False):
        return False
    reads = getattr(schema, "reads_label", None)
    return reads is None or not reads(table, asked.label)


__all__ = ["SCHEMAS", "Mapped", "Roles", "map_table"]
