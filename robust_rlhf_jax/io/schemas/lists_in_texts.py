"""Several votes in a cell that is no list: `A;B;A`, `1|2|1`, `A, tie`, `ann: A; ben: B`."""

import re
from typing import Any

from ..labels import Rule, is_missing
from .base import structured
from .numbers import is_number
from .questions import is_question

SEPARATORS = (";", "|", ",", "/")
NAMED = re.compile(r"(?P<rater>[^:=]+?)\s*[:=]\s*(?P<vote>[^:=]+)")


def entries(cell: Any, separator: str | None) -> list:
    """What a cell lists, as a list or with a separator between, as objects where it names the raters; [] of what is
    missing, or of anything else.
    """
    cell = structured(cell)
    if isinstance(cell, list):
        return cell
    if separator is None or is_missing(cell) or not isinstance(cell, str | int | float):
        return []
    parts = [part.strip().strip("\"'") for part in str(cell).split(separator)]
    votes = [match.groupdict() for part in parts if (match := NAMED.fullmatch(part))]
    people = {vote["rater"] for vote in votes}
    named = len(people) == len(parts) and not any(map(is_question, people))
    return votes if named else parts


def separator_of(cells: list, rule: Rule) -> str | None:
    """What stands between votes in all cells; None where they are not certainly votes of several raters."""
    texts = [
        str(cell)
        for cell in cells
        if isinstance(structured(cell), str | int | float) and not is_missing(cell)
    ]
    if not texts or len(texts) < sum(not is_missing(cell) for cell in cells):
        return None
    if any(rule.value(text) is not None for text in texts if any(one in text for one in SEPARATORS)):
        return None  # "tie / both bad" is one vote
    found = (one for one in SEPARATORS if any(one in text for text in texts))
    listed = ((one, [entries(text, one) for text in texts]) for one in found)
    return next((one for one, rows in listed if are_votes(rows, rule) or _are_named_votes(rows, rule)), None)


def are_votes(rows: list[list], rule: Rule) -> bool:
    """Whether all entries name a side or a tie, and no row's could be ranks, an order of the sides or a flag for each.

    More entries than sides in a row are none of these, nor is one word twice.
    """
    told = [entry for row in rows for entry in row]
    if not told or any(isinstance(entry, dict | list) or rule.value(entry) is None for entry in told):
        return False
    words = not all(map(is_number, told))
    ways = [[*map(rule.value, row)] for row in rows]
    return any(any(of) and (len(of) > 2 or (words and len(of) == 2 and len({*of}) == 1)) for of in ways)


def _are_named_votes(rows: list[list], rule: Rule) -> bool:
    """Whether all entries are votes of people, and some row has several; names of sides are counted for."""
    told = [entry for row in rows for entry in row]
    if not all(isinstance(entry, dict) for entry in told):
        return False
    ways = [(rule.value(entry["rater"]), rule.value(entry["vote"])) for entry in told]
    return any(len(row) > 1 for row in rows) and all(who is None and way is not None for who, way in ways)
