"""Single answers with a thumb up or down (KTO): refused, since nothing says which answers belong together."""

from typing import Any

from ..columns import Columns
from ..table import Table
from .base import Mapped
from .sides import chosen_sides, named, open_sides

NAME = "unpaired answers"
ORDER = 140
ANSWER = ("completion", "response", "answer", "output", "messages", "conversations")
LABELS = ("label", "kto_tag", "thumbs_up", "desirable", "is_good")


def recognise(table: Table) -> bool:
    if chosen_sides(table) or open_sides(table):
        return False
    label = named(table, LABELS)
    return named(table, ANSWER) is not None and label is not None and _is_truth(table.first(label))


def map(table: Table, asked: Columns) -> Mapped:
    """**Raises:** ValueError, with the reason."""
    label = named(table, LABELS)
    raise ValueError(
        f"{table.path} holds single answers with a thumb up or down in {label} (KTO), and no pairs: give a file "
        "with chosen and rejected, or name two columns of answers by --chosen and --rejected."
    )


def _is_truth(cell: Any) -> bool:
    return isinstance(cell, bool) or str(cell).strip().casefold() in ("true", "false", "0", "1", "0.0", "1.0")
