"""Raw logs of FastChat's arena: a vote a line, with both conversations in `states`; other lines are no votes."""

import collections
import dataclasses
from typing import Any

from ..columns import Columns
from ..table import Table
from .base import Judged, Mapped, has, of_rows, records, structured
from .plain import check_asked

NAME = "FastChat's logs"
ORDER = 36
VOTES = {"leftvote": 1.0, "rightvote": -1.0, "tievote": 0.0, "bothbad_vote": 0.0}
ROLES = ("user", "assistant")


def recognise(table: Table) -> bool:
    return has(table, "type", "states") and any(_is_vote(kind) for kind in table.cells("type"))


def map(table: Table, asked: Columns) -> Mapped:
    """The left conversation with the right one; who voted is known by `ip`.

    **Raises:** ValueError for a column that is asked for and not there.
    """
    check_asked(table, asked)
    kinds, states = table.cells("type"), table.cells("states")
    found = [
        (row, None, _judged(kind, state))
        for row, (kind, state) in enumerate(zip(kinds, states, strict=True))
        if _is_vote(kind)
    ]
    others = collections.Counter(str(kind) for kind in kinds if not _is_vote(kind))
    lines = ", ".join(f"{many} {kind}" for kind, many in sorted(others.items()))
    notes = (f"Lines that are no votes make no pair: {lines}.",) if others else ()
    said = {
        "chosen": "the left or the right conversation in states",
        "label": "type: leftvote is the left one",
    }
    if has(table, "ip"):
        asked = dataclasses.replace(asked, rater=asked.rater or "ip")
    return of_rows(table, NAME, found, ("type", "states"), said, asked, notes=notes)


def _is_vote(kind: Any) -> bool:
    return isinstance(kind, str) and kind in VOTES


def _judged(kind: str, states: Any) -> list[Judged] | str:
    sides = [_messages(state) for state in records(states)]
    if len(sides) != 2 or not all(sides):
        return "holds no two conversations"
    return [Judged(sides[0], sides[1], VOTES[kind])]


def _messages(state: dict) -> list[dict]:
    """What the user and the model said in turn, from the offset on: examples stand before it."""
    messages = structured(state.get("messages")) or []
    texts = [text for _, text in messages[state.get("offset") or 0 :] if text is not None]
    return [{"role": ROLES[i % 2], "content": text} for i, text in enumerate(texts)]
