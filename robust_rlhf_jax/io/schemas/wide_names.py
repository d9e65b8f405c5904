"""Options and their features from the names of columns: `time_car` and `car_time` are the time of the option car."""

import dataclasses
import math
import re
from typing import Any, NamedTuple

from ..columns import Columns
from ..table import Table
from .choice_features import AVAILABLE, NEITHER
from .choice_names import CHOSEN, plain_cell
from .numbers import is_number, mostly_numbers
from .sides import LABELS, named, plain_name

# The option's name after the feature's, before it, or as a number or a letter at its end.
SPLITS = (
    re.compile(r"^(?P<feature>.+)[\s_.\-](?P<option>[^\s_.\-]+)$"),
    re.compile(r"^(?P<option>[^\s_.\-]+)[\s_.\-](?P<feature>.+)$"),
    re.compile(r"^(?P<feature>.*\D)(?P<option>\d+)$"),
    re.compile(r"^(?P<feature>.*[a-z])(?P<option>[A-H])$"),
)
# What stands before an option's number: alt1.
COUNTED = re.compile(
    r"^(?:alt|alternative|option|opt|choice|concept|card|profile|product|plan)(?=\d+$)", re.I
)
# A label that names an option by its number or letter alone in the names of columns: "Option 2" of time_2.
IN_WORDS = re.compile(
    r"^(?:alt|alternative|option|opt|choice|concept|card|profile|product|plan)(?:[\s_.\-]*(?=\d)|[\s_.\-]+)(\d+|[a-h])$"
)
# Features at least whose numbers are those of options: of one, price_1 and price_2 could be two features.
FEWEST_NUMBERED = 2
# The share of labels that may name no option, beyond which the column is no label; and the share that may say that none
# was chosen, if the caller lists the options.
UNCLEAR, UNCLEAR_IF_LISTED = 0.05, 0.5
# Names of what is computed from the options: no option itself.
SUMMARIES = ("total", "mean", "avg", "average", "sum", "min", "max", "diff", "difference", "median", "sd")
# Columns that repeat the answer or what was offered.
ANSWERS = {*AVAILABLE, *CHOSEN, *LABELS}


class WideColumns(NamedTuple):
    """`label`: the column that names the chosen option; `options`, as their columns write them; `features`: {feature:
    {option: column}}; `available`: {option: column of whether it was offered}; `not_shared`: columns of words that some
    option lacks, and so are no features.
    """

    label: str
    options: tuple[str, ...]
    features: dict[str, dict[str, str]]
    available: dict[str, str]
    not_shared: dict[str, str]


def unnamed(table: Table) -> tuple[str, list[tuple[str, ...]]] | None:
    """(column of numbers, the options that it may number) where columns are called after options, or None; of
    car_cost and bus_cost the options may be both, as names are split.
    """
    label = named(table, (*CHOSEN, *LABELS))
    there = [] if label is None else [cell for cell in table.cells(label) if cell is not None and cell != ""]
    if label is None or not there or not all(is_number(cell) for cell in there):
        return None
    values = {plain_cell(cell) for cell in there}
    # 0 may number an option, or mean that none was chosen.
    for fewest in (len(values), len(values - {0.0})):
        found = [options for split in SPLITS[:2] if (options := _shared(table, split, label, fewest))]
        if found:
            return label, found
    return None


def _shared(table: Table, split: re.Pattern, label: str, fewest: int) -> tuple[str, ...]:
    """The names, as many as numbers or more, after which the columns of most features are called; () if none are."""
    features = _by_feature(table, split, (label,))
    sizes = {name: of for name, of in features.items() if len(of) >= max(2, fewest) and not is_number(name)}
    shared = [tuple(of) for of in sizes.values()]
    options = max(shared, key=shared.count, default=())
    offered = {plain_name(option) for option in options} & {*AVAILABLE}
    return options if shared.count(options) > 1 and are_named(options) and not offered else ()


def find(table: Table, asked: Columns) -> WideColumns | None:
    """The first way to split the names of columns in which the label's values are options."""
    label = asked.label or named(table, (*CHOSEN, *LABELS))
    if label is None or label not in table.columns:
        return None
    cells = [cell for cell in named_options(table, label, asked) if cell != "" and cell == cell]
    values = set(cells)
    counted = all(isinstance(value, float) for value in values)
    for split in SPLITS:
        features = {
            name: of
            for name, of in _by_feature(table, split, (label, asked.rater, asked.weight), counted).items()
            if plain_name(name) not in ANSWERS
        }
        anchors = values | {*plainly(asked.alternatives or ())}
        anchors |= {v + 1.0 for v in values if isinstance(v, float)} if asked.first_is == "0" else set()
        shared = {name: of for name, of in features.items() if len(anchors & {*plainly(of)}) > 1}
        options = _options(shared, values) if asked.alternatives is None else _listed(shared, asked)
        listed = are_named(options) or asked.alternatives is not None
        if len(options) < 2 or not (listed or _are_numbered(shared, label, asked)):
            continue
        if _are_clear(from_one(cells, options, asked), plainly(options), asked):
            shared = {name: {o: of[o] for o in options if o in of} for name, of in shared.items()}
            not_shared = _words_that_some_lack(table, shared, options)
            shared = {name: of for name, of in shared.items() if not_shared.keys().isdisjoint(of.values())}
            return WideColumns(
                label, options, shared, _availability(table, label, options, counted), not_shared
            )
    return None


def _are_clear(cells: list[str | float], options: list[str | float], asked: Columns) -> bool:
    """Whether hardly any label names no option; if the options are listed, half may say that none was chosen."""
    unclear = [cell for cell in cells if cell not in options]
    # 0 may be the first numbered option, if the label counts from 0 and the columns from 1.
    zero = not any(isinstance(option, float) for option in options)
    none = (
        [cell for cell in unclear if (cell == 0.0 and zero) or cell in NEITHER] if asked.alternatives else []
    )
    most = UNCLEAR * len(cells)
    return len(unclear) - len(none) <= most and len(none) <= max(most, UNCLEAR_IF_LISTED * len(cells))


def _words_that_some_lack(
    table: Table, features: dict[str, dict[str, str]], options: tuple[str, ...]
) -> dict[str, str]:
    """{column: why it is no feature}: a number that an option lacks is 0, a word is nothing."""
    return {
        name: f"is of words, which {', '.join(o for o in options if o not in of)} lacks"
        for of in features.values()
        if len(of) < len(options) and not all(mostly_numbers(table.cells(column)) for column in of.values())
        for name in of.values()
    }


def _availability(table: Table, label: str, options: tuple[str, ...], counted: bool) -> dict[str, str]:
    """{option: column of whether it was offered}, whichever part of its name comes first."""
    found = {}
    for split in SPLITS:
        for feature, of in _by_feature(table, split, (label,), counted).items():
            if plain_name(feature) in AVAILABLE:
                found |= {option: of[option] for option in options if option in of}
    return found


def are_named(options: tuple[str, ...]) -> bool:
    return not any(is_number(option) for option in options)


def _are_numbered(features: dict[str, dict[str, str]], label: str, asked: Columns) -> bool:
    """Whether numbers at the ends of names are those of options: of score_1 to score_3 and a label they are not."""
    alike = len({tuple(of) for of in features.values()}) == 1
    return (
        alike and len(features) >= FEWEST_NUMBERED and (asked.label == label or plain_name(label) in CHOSEN)
    )


def named_options(table: Table, label: str, asked: Columns) -> list[str | float]:
    """The label's cells, plainly; numbers of the alternatives that the caller lists as their names (`numbering`)."""
    cells = [plain_cell("" if cell is None else cell) for cell in table.cells(label)]
    names = numbering(label, cells, asked)
    return [names.get(cell, cell) if isinstance(cell, float) else cell for cell in _bare(table, cells)]


def _bare(table: Table, cells: list[str | float]) -> list[str | float]:
    """The numbers or letters of options that words go before in every label, and in no column's name."""
    names = [name.casefold() for name in table.names]
    found = {cell: IN_WORDS.match(cell) for cell in {*cells} - {"", *NEITHER} if isinstance(cell, str)}
    if None in found.values() or any(cell in name for cell in found for name in names):
        return cells
    bare = {cell: plain_cell(match[1]) for cell, match in found.items() if match}
    return [bare.get(cell, cell) if isinstance(cell, str) else cell for cell in cells]


def numbering(label: str, cells: list[str | float], asked: Columns) -> dict[float, str | float]:
    """{number: alternative} from 1 on, or from 0 where each number from 0 to their count less 1 is there alone.

    Alternatives that are numbers are what they say.

    **Raises:** ValueError where 0 is there and could be the first alternative or none.
    """
    names = [plain_cell(name) for name in asked.alternatives or ()]
    numbers = {cell for cell in cells if isinstance(cell, float) and math.isfinite(cell)}
    if not numbers or not names or any(isinstance(name, float) for name in names):
        return {}
    many = len(names)
    if 0.0 in numbers and numbers != set(range(many)) and many not in numbers:
        raise ValueError(
            f"column {label} holds {', '.join(f'{n:g}' for n in sorted(numbers))}, where 0 may be {names[0]} or none: "
            "write the names of the chosen options there"
        )
    first = 0.0 if numbers == set(range(many)) else 1.0
    return {first + i: name for i, name in enumerate(names)}


def from_one(labels: list[str | float], options: tuple[str, ...], asked: Columns) -> list[str | float]:
    """Labels that count options 1 to K from 0 on, where the caller says so, as if they counted from 1."""
    counted = asked.first_is == "0" and _from_zero(labels, options)
    return [label + 1.0 if counted and isinstance(label, float) else label for label in labels]


def _from_zero(labels: list[str | float], options: tuple[str, ...]) -> bool:
    """Whether columns are numbered from 1 to K, and labels are the numbers from 0 to K − 1: 0 may be none, too."""
    many = len(options)
    return plainly(options) == [*range(1, many + 1)] and {*labels} - {""} == {*range(many)}


def counted_from_zero(table: Table) -> WideColumns | None:
    """The columns, if --first-is 0 would make a label of theirs name options."""
    return find(table, Columns(first_is="0")) if find(table, Columns()) is None else None


def with_none(table: Table) -> tuple[str, Any] | None:
    """(the label, its value that names no option) where columns are numbered and all other labels name options."""
    label = named(table, (*CHOSEN, *LABELS))
    cells = [] if label is None else named_options(table, label, Columns())
    numbers = {cell for cell in cells if isinstance(cell, float)}
    for none in [0.0, *sorted(numbers)[-1:], *NEITHER]:
        rows = [row for row, cell in enumerate(cells) if cell != none]
        if 0 < len(rows) < len(cells):
            columns = {
                name: [column[row] for row in rows] for name in table.names for column in (table.cells(name),)
            }
            if find(dataclasses.replace(table, columns=columns, n_rows=len(rows)), Columns()) is not None:
                return str(label), table.cells(label)[cells.index(none)]
    return None


def _by_feature(
    table: Table, split: re.Pattern, taken: tuple[str | None, ...], counted: bool = False
) -> dict[str, dict[str, str]]:
    """{feature: {option: column}} of all columns that such a name has; an option is written as it first is, or of
    alt1, if `counted`, as its number.
    """
    found: dict[str, dict[str, str]] = {}
    spelled: dict[str, str] = {}
    for name in table.names:
        match = split.match(name)
        if match and name not in taken:
            option = COUNTED.sub("", match["option"]) if counted else match["option"]
            option = spelled.setdefault(option.casefold(), option)
            found.setdefault(match["feature"], {}).setdefault(option, name)
    return found


def _options(features: dict[str, dict[str, str]], values: set) -> tuple[str, ...]:
    """The options, in the order of their columns: those that are chosen, and others that most features have."""
    names = dict.fromkeys(option for of in features.values() for option in of)
    have = {option: sum(option in of for of in features.values()) for option in names}
    return tuple(
        o
        for o in names
        if plain_cell(o) in values or (2 * have[o] > len(features) and o.casefold() not in SUMMARIES)
    )


def _listed(features: dict[str, dict[str, str]], asked: Columns) -> tuple[str, ...]:
    """The alternatives that the caller lists, as columns write them; () if some column of each is not there."""
    written = {plain_cell(option): option for of in features.values() for option in of}
    known = [written.get(plain_cell(name)) for name in asked.alternatives or ()]
    return tuple(name for name in known if name is not None) if None not in known else ()


def plainly(names) -> list[str | float]:
    return [plain_cell(name) for name in names]
