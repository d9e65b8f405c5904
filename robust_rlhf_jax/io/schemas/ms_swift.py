"""A conversation that was chosen, and what was rejected in place of its last message, as ms-swift has them."""

from typing import Any

from ..columns import Columns
from ..table import Table
from .base import Judged, Mapped, of_rows, structured
from .plain import check_asked
from .sides import chosen_sides, holds_texts, named, open_sides, with_rater

NAME = "messages and what was rejected"
ORDER = 45
CHOSEN = ("messages", "conversations", "conversation")
REJECTED = ("rejected_response", "rejected_messages")


def recognise(table: Table) -> bool:
    messages, rejected = named(table, CHOSEN), named(table, REJECTED)
    if chosen_sides(table) or open_sides(table) or messages is None or rejected is None:
        return False
    return isinstance(structured(table.first(messages)), list) and holds_texts(
        structured(table.first(rejected))
    )


def map(table: Table, asked: Columns) -> Mapped:
    """The messages that both begin with are the prompt.

    **Raises:** ValueError for a column that is asked for and not there.
    """
    check_asked(table, asked)
    names = named(table, CHOSEN), named(table, REJECTED)
    cells = zip(*(table.cells(name) for name in names), strict=True)
    rows = (
        (row, None, _pair(structured(messages), structured(rejected)))
        for row, (messages, rejected) in enumerate(cells)
    )
    said = {"prompt": f"in {names[0]}", "chosen": names[0], "rejected": names[1]}
    return of_rows(table, NAME, rows, names, said, with_rater(asked, table))


def _pair(messages: Any, rejected: Any) -> list[Judged] | str:
    if messages == []:
        return "holds no messages"
    return [Judged(messages, _instead(messages, rejected), 1.0)]


def _instead(messages: Any, rejected: Any) -> Any:
    """The messages with another one at their end, where that alone is given."""
    if not isinstance(rejected, str) or not isinstance(messages, list) or not isinstance(messages[-1], dict):
        return rejected
    content = "value" if "value" in messages[-1] else "content"
    return [
        *messages[:-1],
        {name: cell for name, cell in messages[-1].items() if name in ("role", "from")} | {content: rejected},
    ]
