"""Which columns of choices are features of the options: numbers and words that differ, no names, places or answers."""

import re
from typing import NamedTuple

from ..table import Table
from .numbers import (
    MANY_CHOICES,
    NO_FEATURE,
    ONE_AND_ZERO,
    TELLING,
    are_marked,
    is_number,
    marked,
    mostly_numbers,
    name_things,
)
from .sides import plain_name
from .words import are_words

# Which option of the choice a row is, by number: no feature.
PLACES = (
    "alt", "alt_id", "altid", "alternative", "alternative_id", "option", "option_id", "profile", "position", "pos",
    "opt", "concept", "profile_id", "profile_no", "card", "order", "rank", "ranking", "alt_number", "alt_no",
    "alternative_number", "option_number", "option_no",
)  # fmt: skip
# Whether an option was offered.
AVAILABLE = ("av", "avail", "available", "availability")
# What is said of an option once it is chosen or not.
ANSWERED = ("chosen", "choice", "best", "worst", "most", "least", "rejected", "votes")
# Labels of those who wanted none.
NEITHER = {"none", "neither", "optout", "opt_out", "opt-out", "opt out", "nothing", "no choice", "no_choice"}
HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class Choice(NamedTuple):
    """The rows of a choice, and which of them was chosen; None where not exactly one of several was."""

    rows: list[int]
    chosen: int | None


class Features(NamedTuple):
    """{feature: its columns} of `numbers` and of `words`; why other columns are none; columns of numbers with marks."""

    numbers: dict[str, tuple[str, str]]
    words: dict[str, tuple[str, str]]
    ignored: dict[str, str]
    marked: list[str]


def features_of(table: Table, taken: tuple[str | None, ...], choices: list[Choice]) -> Features:
    """Those among the columns that are not `taken`."""
    found = Features({}, {}, {}, [])
    for name in table.names:
        if name in taken or is_no_feature(name):
            continue
        cells, sides = table.cells(name), (f"chosen_{name}", f"rejected_{name}")
        number = mostly_numbers(cells)
        why = _why_not(cells, number, choices)
        if not why and number and name_things(table, name, (name,)):
            why = f"says which {name} an option is: call it otherwise if it is a feature"
        if why:
            found.ignored[name] = why
        elif number:
            found.numbers[name] = sides
        elif are_marked(cells):
            found.marked.append(name)
        elif are_words(cells):
            found.words[name] = sides
    return found


def check_features(table: Table, found: Features, words: bool) -> None:
    """**Raises:** ValueError for numbers with marks, for no feature at all, and for features of words alone without
    `words`.
    """
    for name in found.marked:
        raise ValueError(marked(table, name))
    if not found.numbers and not found.words:
        raise ValueError("the options of a choice differ in no column that could be a feature")
    if not found.numbers and not words:
        name = next(iter(found.words))
        raise ValueError(
            f"the options of a choice differ in words alone, such as {table.first(name)} in column {name}: make a "
            "feature of each by --words"
        )


def notes_of(unclear: int) -> tuple[str, ...]:
    """What is said of choices that make no pair."""
    if not unclear:
        return ()
    choices, make = ("choice", "makes") if unclear == 1 else ("choices", "make")
    return (f"{unclear} {choices} without exactly one chosen option {make} no pair.",)


def is_no_feature(name: str) -> bool:
    """Whether a name is that of an id, a time, the place of an option, or of nothing: `profileID`, `Unnamed: 0`."""
    parted = HUMP.sub("_", name)
    return (
        not name.strip()
        or name.startswith("Unnamed:")
        or NO_FEATURE.search(parted) is not None
        or parted.casefold().endswith("rowpos")
        or {plain_name(name), plain_name(parted)} & {*PLACES, *AVAILABLE, *ANSWERED} != set()
    )


def same_in_each(cells: list, choices: list[Choice]) -> bool:
    return all(cells[row] == cells[choice.rows[0]] for choice in choices for row in choice.rows)


def _why_not(cells: list, number: bool, choices: list[Choice]) -> str:
    if same_in_each(cells, choices):
        return "is the same for all options of a choice"
    clear = [choice for choice in choices if choice.chosen is not None]
    if number and len(cells) >= MANY_CHOICES and _counts(cells):
        return "counts the rows"
    if len(clear) < MANY_CHOICES:
        return ""
    # For two options, 0 and 1 may as well say what they are.
    several = max(len(choice.rows) for choice in clear) > 2
    if number and several and all(_counts([cells[row] for row in sorted(choice.rows)]) for choice in clear):
        return "counts the options of a choice"
    if _tells(cells, clear):
        return TELLING
    return ""


def _counts(cells: list) -> bool:
    """Whether numbers rise by 1 from one to the next, from 0 or 1."""
    first = cells[0]
    if not is_number(first) or float(first) not in (0.0, 1.0):
        return False
    return all(is_number(cell) and float(cell) == float(first) + i for i, cell in enumerate(cells))


def _tells(cells: list, choices: list[Choice]) -> bool:
    """Whether a column is 1 for all chosen options and 0 for all others, or one word for each of these."""
    first = choices[0]
    chosen = cells[first.rows[0] if first.chosen is None else first.chosen]
    other = next((cells[row] for row in first.rows if row != first.chosen), chosen)
    if chosen == other or (is_number(chosen) and (str(chosen), str(other)) not in ONE_AND_ZERO):
        return False
    return all(
        cells[row] == (chosen if row == choice.chosen else other) for choice in choices for row in choice.rows
    )
