"""JSON written back letter by letter: rows are cut out of a document, and keys put at the end of those that stay.

What is parsed and written again loses digits, escapes, repeated keys and indentation.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from .json_documents import Document

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n\ufeff]*")


class Member(NamedTuple):
    """An entry of an object or, with the key "", of an array: where it begins, where its value does, where it ends."""

    key: str
    begin: int
    value: int
    end: int


def spliced(text: str, document: Document, chosen: Sequence[int], extra: dict[str, list]) -> str | None:
    """The `text` of `document` with some of its rows and with further keys; None where its rows do not stand in a piece
    each, as in columns, or cannot be told apart."""
    rows = _rows(text, document)
    if len(rows) != len(document.rows) or not rows:
        return None
    pieces = [text[: rows[0].begin]]
    for place, number in enumerate(chosen):
        row = rows[number]
        pieces.append(text[rows[number - 1].end : row.begin] if place else "")
        cell = _value_of(text, row.value, document.inner) if document.inner else row
        added = {name: column[place] for name, column in extra.items()}
        pieces += [text[row.begin : cell.value], with_keys(text[cell.value : cell.end], added)]
        pieces.append(text[cell.end : row.end])
    return "".join([*pieces, text[rows[-1].end :]])


def with_keys(text: str, added: dict[str, Any]) -> str:
    """The `text` of an object with further keys at its end, in its style; its own of these names go. What is no object
    stays as it is."""
    if not added or not text.startswith("{"):
        return text
    found = members(text, 0)
    if not found:
        return _dumped(added)
    separator = text[found[0].end : found[1].begin] if len(found) > 1 else ", "
    colon = re.search(r"\s*:\s*$", text[found[0].begin : found[0].value])
    pieces = [
        (text[before.end : member.begin] if before else "", text[member.begin : member.end])
        for before, member in zip([None, *found], found, strict=False)
        if member.key not in added
    ]
    between = colon[0] if colon else ": "
    pieces += [(separator, f"{_dumped(key)}{between}{_dumped(value)}") for key, value in added.items()]
    inside = "".join(f"{gap if place else ''}{piece}" for place, (gap, piece) in enumerate(pieces))
    return text[: found[0].begin] + inside + text[found[-1].end :]


def members(text: str, at: int) -> list[Member]:
    """The entries of the object or array that begins at `at`."""
    closing = "]" if text[at] == "[" else "}"
    found, at = [], _after_space(text, at + 1)
    while text[at] != closing:
        if text[at] == ",":
            at = _after_space(text, at + 1)
        begin, key = at, ""
        if closing == "}":
            key, at = _DECODER.raw_decode(text, at)
            at = _after_space(text, _after_space(text, at) + 1)
        _, end = _DECODER.raw_decode(text, at)
        found.append(Member(key, begin, at, end))
        at = _after_space(text, end)
    return found


def _rows(text: str, document: Document) -> list[Member]:
    start = _after_space(text, 0)
    for _, key in document.outer:
        start = _value_of(text, start, key).value
    if document.kind == "array" and text[start] == "{":
        return [Member("", start, start, _DECODER.raw_decode(text, start)[1])]
    if document.kind in ("array", "index"):
        return members(text, start)
    if document.kind.startswith("key "):
        return members(text, _value_of(text, start, document.kind.removeprefix("key ")).value)
    return []


def _value_of(text: str, at: int, key: str) -> Member:
    """The entry that counts of an object that begins at `at`: of a key that comes twice the last one."""
    return [member for member in members(text, at) if member.key == key][-1]


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
