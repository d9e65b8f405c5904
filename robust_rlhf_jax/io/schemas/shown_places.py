"""Columns that say where the sides of a pair were shown, beside a label that may name places."""

import re

from ..labels import LEFT_AND_RIGHT, is_missing, suffixes, word, word_rule, yes_or_no
from ..table import Table
from .base import structured
from .flags_of_sides import contradict_mostly
from .sides import by_plain_name, plain_name

# Columns that say in which rows the sides were shown the other way round.
TURNED = re.compile(
    r"^(?:(?:is|was|were|ab|position|order|side|display|presentation|responses?)_)*"
    r"(?:swap|swapped|flip|flipped|reverse|reversed|switched|shuffled|mirrored|inverted|transposed|"
    r"exchanged)(?:_(?:ab|order|sides?|positions?|responses?))?$"
)
# Columns that may say so: those that are the same in all rows tell that somebody took care.
MAY_BE_TURNED = re.compile(
    r"^(?:(?:is|was|were|ab|position|order|side|display|presentation|responses?|options?)_)*"
    r"(?:(?:randomi[sz]ed?|permuted|counter_?balanced|scrambled|reordered|switch)"
    r"(?:_(?:ab|orders?|sides?|positions?|responses?|options?|display))?|"
    r"rand(?:om)?_(?:orders?|sides?|positions?|display))$"
)
# Columns that may name the side that was shown first; `seen` alone says of a row that somebody saw it.
WAS_SHOWN, THING = (
    "(?:shown|presented|displayed|seen)",
    "(?:side|option|item|response|answer|output|model|candidate)",
)
SHOWN = re.compile(
    rf"^(?:left|first|(?:left|first)_{THING}|{THING}_(?:{WAS_SHOWN}_)?(?:left|first|on_left)|first_{WAS_SHOWN}|shown|"
    rf"{WAS_SHOWN}_(?:first|left|on_left))$"
)
ORDERED = re.compile(r"^(?:(?:display|presentation|shown|side|response|position)_)*order(?:_shown)?$")
# Columns that say of one side where it was shown: left_is_a, a_shown_first; position_a, a_side.
PLACE = "(?:on_(?:the_)?)?(?:left|right|first|second|top|bottom)(?:_side)?"
POSITION = "(?:(?:display|screen|presentation|shown)_)?(?:position|pos|place|side|slot|location|order)"
IS_PLACED = (
    rf"^(?:(?:is|was)_)?{{one}}_(?:(?:is|was)_)?(?:{WAS_SHOWN}_)?{PLACE}$|^{PLACE}_(?:(?:is|was)_)?{{one}}$"
)
PLACED = rf"^{POSITION}_(?:of_)?{{one}}$|^{{one}}_{POSITION}$"
# What columns of one judge are called that saw the sides in two orders.
ORDERS = (
    {"ab", "ba"}, {"a_b", "b_a"}, {"normal", "swapped"}, {"forward", "backward"}, {"forward", "reverse"},
    {"forward", "reversed"}, {"order1", "order2"}, {"order_1", "order_2"},
)  # fmt: skip
NUMBERS_OF_ORDERS = ({"0", "1"}, {"1", "2"})
# What rows are called in which the sides stand as in the columns, and in which they do not.
AS_THEY_ARE = {
    "original",
    "normal",
    "forward",
    "straight",
    "regular",
    "unswapped",
    "not swapped",
    "not reversed",
}
TURNED_ROUND = {"swapped", "reversed", "reverse", "flipped", "backward", "inverted", "switched"}
# After the side that was shown first: "A first", "response b on the left".
FIRST_ONE = re.compile(rf"(?: (?:is|was))?(?: {WAS_SHOWN})? (?:first|(?:on (?:the )?)?left)$")
# Rows from which on it is no chance if two orders contradict each other in most of them.
FEWEST = 10
PLACES = {"left", "right", "first", "second", *LEFT_AND_RIGHT}


def check_places(table: Table, label: str, sides: tuple[str, str]) -> None:
    """**Raises:** ValueError for a label in words beside a column that says where the sides were shown, if those words
    may mean places and not the columns: names of columns, such as model_a beside response_a, mean these.
    """
    column = that_says_where(table, table.some(label), (label, *sides), sides)
    if column is not None:
        raise ValueError(
            f"column {column} {_says(column)} in which rows the sides changed places, and {label} may name "
            f"places or columns: give --label {label} if it names {sides[0]} and {sides[1]} as the file has them; else "
            "write there which of those won"
        )


def check_places_of_votes(table: Table, label: str, votes: list, sides: tuple[str, str]) -> None:
    """`check_places` of the votes of several raters, all of them in column `label` or some.

    **Raises:** ValueError, as there.
    """
    column = that_says_where(table, votes, (label, *sides), sides)
    if column is not None:
        value = word_rule(sides).value
        first = next((vote for vote in votes if (value(vote) or 0.0) > 0), None)
        told = (
            "" if first is None else f"give --first-is {first} if that names {sides[0]} in every row; else "
        )
        raise ValueError(
            f"column {column} {_says(column)} in which rows the sides changed places, and {label} may name "
            f"places or columns: {told}write there which side won"
        )


def _says(column: str) -> str:
    return "may say" if MAY_BE_TURNED.match(plain_name(column)) else "says"


def that_says_where(table: Table, labels: list, taken: tuple[str, ...], sides: tuple[str, str]) -> str | None:
    """The column, none of the `taken`, that says where the sides were shown, if labels may mean places."""
    value = word_rule(sides).value
    said = {word(cell) for cell in labels if not is_missing(cell)}
    said = {w for w in said if value(w) != 0}
    columns = {word(side) for side in sides} | ({word(name) for name in table.names} - PLACES)
    if said <= columns or not any(value(w) for w in said):
        return None
    named = suffixes(sides)
    places = bool(said & PLACES) and not PLACES & {*named}
    for column in (name for name in table.names if name not in taken):
        plain, cells = plain_name(column), {_listed(c) for c in table.some(column) if not is_missing(c)}
        flags = {*map(yes_or_no, cells)}
        turned = TURNED.match(plain) and flags in ({True, False}, {True})
        turned = turned or (MAY_BE_TURNED.match(plain) and flags == {True, False})
        # Of the two numbers of an order one is the other way round.
        numbered = ORDERED.match(plain) and cells in NUMBERS_OF_ORDERS
        if turned or numbered:
            return column
        if not places:
            continue
        if SHOWN.match(plain) and _names_models(table, column, named):
            return column
        if len(cells) == 2 and (
            (SHOWN.match(plain) and {*map(value, cells)} == {1.0, -1.0})
            or _are_orders(plain, cells, sides)
            or _places_one(plain, cells, sides)
        ):
            return column
    return None


def _listed(cell: object) -> str:
    """A cell as a word, a list as its words with commas between."""
    found = structured(cell)
    return ", ".join(map(word, found)) if isinstance(found, list) else word(cell)


def _are_orders(column: str, cells: set[str], sides: tuple[str, str]) -> bool:
    """Whether two words are the two orders of the sides, whatever the column is called; called after an order, one."""
    both = [suffixes(sides), tuple(map(word, sides))]
    orders = {
        mark.join(order)
        for named in both
        for order in (named, named[::-1])
        for mark in ("", " ", ",", ", ", "/")
    }
    if cells <= orders or (ORDERED.match(column) and cells & orders):
        return True
    begun = {FIRST_ONE.sub("", cell) for cell in cells}
    first_ones = not begun & cells and {*map(word_rule(sides).value, begun)} == {1.0, -1.0}
    return first_ones or (len(cells & AS_THEY_ARE) == 1 and len(cells & TURNED_ROUND) == 1)


def _names_models(table: Table, column: str, named: tuple[str, str]) -> bool:
    """Whether a column names the model of one side in some rows, that of the other in all others."""
    lower = by_plain_name(table)
    models = [lower.get(f"model_{token}") for token in named]
    if None in models:
        return False
    rows = zip(table.some(column), *(table.some(str(name)) for name in models), strict=False)
    which = [(cell == a, cell == b) for cell, a, b in rows if not is_missing(cell) and a != b]
    return {*which} == {(True, False), (False, True)}


def _places_one(column: str, cells: set[str], sides: tuple[str, str]) -> bool:
    """Whether a column says of one side, in two words, where it was shown."""
    one = "|".join(re.escape(name) for name in (*map(plain_name, sides), *suffixes(sides)) if name)
    one = rf"(?:(?:{THING}_)?(?:{one}))"
    if re.match(IS_PLACED.format(one=one), column):
        return {*map(yes_or_no, cells)} == {True, False}
    return re.match(PLACED.format(one=one), column) is not None and (
        cells <= PLACES or cells in ({"0", "1"}, {"1", "2"})
    )


def check_orders(table: Table, raters: dict[str, str], sides: tuple[str, str]) -> None:
    """**Raises:** ValueError for two columns of labels that are called after orders of the sides and contradict each
    other in most of many rows: they name places, and no columns.
    """
    if {who.casefold() for who in raters} not in ORDERS:
        return
    value, names = word_rule(sides).value, [*raters.values()]
    first, second = ([value(cell) for cell in table.cells(name)] for name in names)
    decided = sum(bool(a and b) for a, b in zip(first, second, strict=True))
    if decided >= FEWEST and contradict_mostly(first, second):
        raise ValueError(
            f"{names[0]} and {names[1]} contradict each other in most rows, as what a judge says of places does where "
            f"the sides change them: give the one that names {sides[0]} and {sides[1]} by --label"
        )
