"""Preference data as OpenAI's fine-tuning takes it: `input`, `preferred_output`, `non_preferred_output`."""

from ..columns import Columns
from ..table import Table
from .base import Judged, Mapped, has, of_rows, structured

NAME = "OpenAI preference fine-tuning"
ORDER = 40
COLUMNS = ("input", "preferred_output", "non_preferred_output")


def recognise(table: Table) -> bool:
    return has(table, *COLUMNS)


def map(table: Table, asked: Columns) -> Mapped:
    """The messages of `input` are the prompt."""
    cells = (table.cells(name) for name in COLUMNS)

    def rows():
        for row, (given, good, bad) in enumerate(zip(*cells, strict=True)):
            given = structured(given)
            prompt = given.get("messages", given) if isinstance(given, dict) else given
            yield row, prompt, [Judged(good, bad, 1.0)]

    said = {"prompt": "messages in input", "chosen": "preferred_output", "rejected": "non_preferred_output"}
    return of_rows(table, NAME, rows(), COLUMNS[1:] + COLUMNS[:1], said, asked)
