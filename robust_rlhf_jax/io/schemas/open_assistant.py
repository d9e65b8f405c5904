"""OpenAssistant's messages, whose ranked replies are preferences: a tree a row, or a message a row.

Source: the data card of oasst1 (huggingface.co/datasets/OpenAssistant/oasst1): of several replies to a message, that of
rank 0 is the most preferred one. As where OpenAssistant trains rewards, replies to a prompter alone are compared.
"""

import dataclasses
from collections import defaultdict
from typing import Any, NamedTuple

from ..columns import Columns
from ..labels import is_missing, number_in, yes_or_no
from ..table import Table
from .base import Judged, Mapped, has, of_rows, structured
from .plain import check_asked
from .rankings import pairs_of

NAME = "OpenAssistant"
ORDER = 37
FLAT = ("message_id", "parent_id", "text", "role", "rank")
ROLES = {"prompter": "user", "assistant": "assistant"}


class Message(NamedTuple):
    """A message in `row`; `parent`: the place of the one that it answers; `set`: what it shares with its siblings, None
    for a root.
    """

    row: int
    text: Any
    role: Any
    rank: float | None
    deleted: bool
    parent: int | None
    set: Any


def recognise(table: Table) -> bool:
    return has(table, *FLAT) or (has(table, "prompt") and _is_tree(structured(table.first("prompt"))))


def reads_label(table: Table, label: str) -> bool:
    return label == "rank"


def map(table: Table, asked: Columns) -> Mapped:
    """Every two ranked replies of the assistant to one message; the prompt is all that was said before.

    **Raises:** ValueError for a column that is asked for and not there, and where no reply is ranked.
    """
    flat = has(table, *FLAT)
    check_asked(table, asked if flat else dataclasses.replace(asked, label=None))
    messages = _of_rows(table) if flat else _of_trees(table)
    sets = _ranked(messages)
    found = [
        (first.row, _said(messages, _way(messages, first.parent)), _pairs(messages, replies))
        for replies in sets
        for first in [messages[replies[0]]]
    ]
    if not any(pairs for _, _, pairs in found):
        raise ValueError("no message has two ranked replies of the assistant that differ, which make a pair")
    used = (*FLAT, *(("deleted",) if has(table, "deleted") else ())) if flat else ("prompt",)
    said = {
        "prompt": "all messages before",
        "chosen": f"{'text' if flat else 'replies'} of the assistant to one message, pair by pair",
        "label": "rank: the lowest is the best",
    }
    notes = _notes(messages, sets)
    made = of_rows(table, NAME, found, used, said, asked, _trees(messages) if flat else None, notes)
    authors = {"user_id": "names who wrote a message, and no rater"} if flat and asked.rater is None else {}
    return dataclasses.replace(made, roles=dataclasses.replace(made.roles, ignored=authors))


def _is_tree(cell: Any) -> bool:
    return isinstance(cell, dict) and {"text", "role", "replies"} <= cell.keys()


def _message(row: int, of: dict, parent: int | None, siblings: Any) -> Message:
    deleted = yes_or_no(of.get("deleted")) is True
    return Message(row, of.get("text"), of.get("role"), number_in(of.get("rank")), deleted, parent, siblings)


def _of_trees(table: Table) -> list[Message]:
    """The messages of all trees, each after the one that it answers."""
    found: list[Message] = []
    for row, cell in enumerate(table.cells("prompt")):
        waiting: list[tuple[Any, int | None]] = [(structured(cell), None)]
        while waiting:
            node, parent = waiting.pop()
            if isinstance(node, dict):
                found.append(_message(row, node, parent, parent))
                waiting += [(reply, len(found) - 1) for reply in reversed(node.get("replies") or [])]
    return found


def _of_rows(table: Table) -> list[Message]:
    """The messages of all rows, those that come again without what they say."""
    columns = [*FLAT, "deleted"] if has(table, "deleted") else FLAT
    cells = zip(*(table.cells(name) for name in columns), strict=True)
    rows = [dict(zip(columns, of_row, strict=True)) for of_row in cells]
    place: dict[str, int] = {}
    for row, of in enumerate(rows):
        place.setdefault(str(of["message_id"]), row)
    found = []
    for row, of in enumerate(rows):
        root = is_missing(of["parent_id"])
        siblings = None if root else str(of["parent_id"])
        again = {} if place[str(of["message_id"])] == row else {"rank": None}
        found.append(_message(row, of | again, None if root else place.get(str(of["parent_id"])), siblings))
    return found


def _ranked(messages: list[Message]) -> list[list[int]]:
    """The ranked replies of the assistant to each message, where there are two or more."""
    sets: dict[Any, list[int]] = defaultdict(list)
    for i, message in enumerate(messages):
        of_assistant = message.role == "assistant" and message.set is not None
        if of_assistant and message.rank is not None and not message.deleted and not is_missing(message.text):
            sets[message.set].append(i)
    return sorted(replies for replies in sets.values() if len(replies) > 1)


def _pairs(messages: list[Message], replies: list[int]) -> list[Judged]:
    """The pairs of different replies to one message."""
    worth = [-(messages[i].rank or 0.0) for i in replies]
    pairs = ((messages[a], messages[b], way) for a, b, way, *_ in pairs_of(replies, worth))
    return [Judged(a.text, b.text, way, None, b.row) for a, b, way in pairs if a.text != b.text]


def _way(messages: list[Message], last: int | None) -> list[int]:
    """The places of the messages from the root to this one; of a message that the file lacks none."""
    places: dict[int, None] = {}
    while last is not None and last not in places:  # a message may claim to follow its own replies
        places[last] = None
        last = messages[last].parent
    return [*places][::-1]


def _said(messages: list[Message], places: list[int]) -> list[dict] | None:
    return [
        {"role": ROLES.get(m.role, m.role), "content": "" if is_missing(m.text) else str(m.text)}
        for m in (messages[place] for place in places)
    ] or None


def _trees(messages: list[Message]) -> list[str]:
    """The root of each message, or what the root answers, where the file lacks that."""
    roots = (_way(messages, i)[0] for i in range(len(messages)))
    return [f"row {root}" if messages[root].set is None else messages[root].set for root in roots]


def _notes(messages: list[Message], sets: list[list[int]]) -> tuple[str, ...]:
    """What is said of ranked messages that make no pair, and of pairs without a prompt."""
    ranked = [message for message in messages if message.rank is not None]
    numbers = {
        "Ranked messages of prompters, which make no pair": sum(
            m.role in ("prompter", "user") for m in ranked
        ),
        "Ranked messages that were deleted, which make no pair": sum(m.deleted for m in ranked),
        "Sets of replies without a prompt, whose message the file lacks": sum(
            messages[replies[0]].parent is None for replies in sets
        ),
    }
    return tuple(f"{what}: {number:,}." for what, number in numbers.items() if number)
