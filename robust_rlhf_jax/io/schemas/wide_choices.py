"""One choice a row, a column for each feature of each option, as studies of travel have them: `time_car`, `time_bus`,
`cost_car`, `cost_bus`, `choice`.
"""

import dataclasses
import itertools
import math
import re
from typing import Any, NamedTuple

import numpy as np

from ..columns import Columns
from ..table import Table
from . import choice_sets
from .base import Mapped
from .choice_features import AVAILABLE, NEITHER, notes_of
from .choice_sets import CHOSEN, PEOPLE, by_parted_name, plain_cell
from .numbers import NUMERIC, is_number, mostly_numbers
from .plain import check_asked
from .sides import LABELS, chosen_sides, named, open_sides, plain_name
from .words import word_of

NAME = "choice sets, one choice a row"
ORDER = 160
ANY_LABEL = True
# The option's name after the feature's, before it, or as a number at its end.
SPLITS = (
    re.compile(r"^(?P<feature>.+)[\s_.\-](?P<option>[^\s_.\-]+)$"),
    re.compile(r"^(?P<option>[^\s_.\-]+)[\s_.\-](?P<feature>.+)$"),
    re.compile(r"^(?P<feature>.*\D)(?P<option>\d+)$"),
)
# Features at least whose numbers are those of options: of one, price_1 and price_2 could be two features.
FEWEST_NUMBERED = 2
# Choices of nothing that the file has a column for, as a share of all, beyond which the label is something else; and if
# the caller lists what it may be.
UNCLEAR, UNCLEAR_IF_LISTED = 0.05, 0.5
# What is called so is computed from the options and is none.
SUMMARIES = ("total", "mean", "avg", "average", "sum", "min", "max", "diff", "difference", "median", "sd")
# Columns that repeat the answer or what was offered.
ANSWERS = {*AVAILABLE, *CHOSEN, *LABELS}
# Cells that say that an option was not offered, where no column does.
NOTHING = ("", "na", "n/a", "nan", "null", "none", "nil", ".", "-")
# Columns of the table of offers that no feature can be called.
CHOICE, WAS_CHOSEN = " choice", " chosen"


class _Found(NamedTuple):
    """`label`: the column that names the chosen option; `options`, as their columns write them; `features`: {feature:
    {option: column}}; `available`: {option: column of whether it was offered}; `not_shared`: columns of words that some
    option lacks, and so are no features.
    """

    label: str
    options: tuple[str, ...]
    features: dict[str, dict[str, str]]
    available: dict[str, str]
    not_shared: dict[str, str]


class _Offers(NamedTuple):
    """A table with a row for each option that was offered, which row of the file it is from, and which option;
    `unclear`: how many rows of the file did not choose one of several.
    """

    table: Table
    rows: list[int]
    options: list[str | None]
    unclear: int


def recognise(table: Table) -> bool:
    return recognise_asked(table, Columns())


def recognise_asked(table: Table, asked: Columns) -> bool:
    """`recognise`, with the column of the label as the caller names it."""
    if chosen_sides(table) or open_sides(table) or any(NUMERIC.match(name) for name in table.names):
        return False
    return _find(table, asked) is not None


def map(table: Table, asked: Columns) -> Mapped:
    """The chosen option of each row with every other one that was offered.

    **Raises:** ValueError for a label that names none of the options, and where no feature is a number.
    """
    check_asked(table, asked)
    found = _find(table, asked)
    if found is None:
        raise ValueError(f"--label {asked.label} does not name the options that columns are called after")
    offers = _offered(table, found, asked)
    ours = Columns(
        label=WAS_CHOSEN, pair_id=CHOICE, rater=asked.rater, weight=asked.weight, words=asked.words
    )
    mapped = choice_sets.map(offers.table, ours)
    said = mapped.roles.said | {
        "chosen": f"the option that {found.label} names, of {', '.join(found.options)}",
        "rejected": "each other one",
        "label": f"{found.label}: names the option that was chosen",
    }
    assert mapped.origin is not None
    return dataclasses.replace(
        mapped,
        schema=NAME,
        roles=dataclasses.replace(mapped.roles, said=said, ignored=_ignored(mapped, found, offers.table)),
        origin=np.asarray(offers.rows, int)[mapped.origin],
        second=None,
        used=(found.label, *_used(mapped, found, asked), *found.available.values()),
        notes=(
            *notes_of(offers.unclear),
            *mapped.notes,
            *_zeros(mapped, found),
            *_told(table, found, asked, mapped),
        ),
        cells_of=_cells_of(mapped, found, offers),
    )


def _used(mapped: Mapped, found: _Found, asked: Columns) -> list[str]:
    """The columns of features, and of who chose."""
    features = {**mapped.roles.numbers["numeric"], **(mapped.roles.words if asked.words else {})}
    columns = [name for feature in features for name in found.features.get(feature, {}).values()]
    return columns + [name for name in mapped.used if name not in found.features]


def _ignored(mapped: Mapped, found: _Found, offers: Table) -> dict[str, str]:
    """Why columns of features are none, by the file's names."""
    words = {
        feature: f"holds words, such as {word_of(offers.first(feature))}: --words makes a feature of each"
        for feature in mapped.roles.words
        if feature in found.features
    }
    reasons = found.not_shared | mapped.roles.ignored | words
    columns = {feature: of.values() for feature, of in found.features.items()} | {
        name: (name,) for name in found.not_shared
    }
    return {name: why for feature, why in reasons.items() for name in columns.get(feature, (feature,))}


def unnamed(table: Table) -> tuple[str, tuple[str, ...]] | None:
    """(column of numbers, the options that it may number) where columns are called after options, or None."""
    label = named(table, (*CHOSEN, *LABELS))
    there = [] if label is None else [cell for cell in table.cells(label) if cell is not None and cell != ""]
    if label is None or not there or not all(is_number(cell) for cell in there):
        return None
    values = {plain_cell(cell) for cell in there}
    # 0 may number an option, or mean that none was chosen.
    for fewest, split in itertools.product((len(values), len(values - {0.0})), SPLITS[:2]):
        features = _by_feature(table, split, (label,))
        sizes = {
            name: of for name, of in features.items() if len(of) >= max(2, fewest) and not is_number(name)
        }
        shared = [tuple(of) for of in sizes.values()]
        options = max(shared, key=shared.count, default=())
        if shared.count(options) > 1 and _named(options):
            return label, options
    return None


def _find(table: Table, asked: Columns) -> _Found | None:
    """The first way to split the names of columns in which the label's values are options."""
    label = asked.label or named(table, (*CHOSEN, *LABELS))
    if label is None or label not in table.columns:
        return None
    cells = [cell for cell in _named_options(table, label, asked) if cell != "" and cell == cell]
    values = set(cells)
    for split in SPLITS:
        features = {
            name: of
            for name, of in _by_feature(table, split, (label, asked.rater, asked.weight)).items()
            if plain_name(name) not in ANSWERS
        }
        anchors = values | {*_plainly(asked.alternatives or ())}
        shared = {name: of for name, of in features.items() if len(anchors & {*_plainly(of)}) > 1}
        options = _options(shared, values) if asked.alternatives is None else _listed(shared, asked)
        listed = _named(options) or asked.alternatives is not None
        if len(options) < 2 or not (listed or _are_numbered(shared, label, asked)):
            continue
        if _are_clear(cells, _plainly(options), asked):
            shared = {name: {o: of[o] for o in options if o in of} for name, of in shared.items()}
            not_shared = _words_that_some_lack(table, shared, options)
            lacking = {*not_shared}
            shared = {name: of for name, of in shared.items() if not lacking & {*of.values()}}
            return _Found(label, options, shared, _availability(table, label, options), not_shared)
    return None


def _are_clear(cells: list[str | float], options: list[str | float], asked: Columns) -> bool:
    """Whether hardly a label is no option; of listed ones half may say that none was chosen."""
    unclear = [cell for cell in cells if cell not in options]
    # Of numbered options 0 may be the first, where the label counts from 0 and their columns from 1.
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


def _availability(table: Table, label: str, options: tuple[str, ...]) -> dict[str, str]:
    """{option: column of whether it was offered}, whichever part of its name comes first."""
    found = {}
    for split in SPLITS[:2]:
        for feature, of in _by_feature(table, split, (label,)).items():
            if plain_name(feature) in AVAILABLE:
                found |= {option: of[option] for option in options if option in of}
    return found


def _named(options: tuple[str, ...]) -> bool:
    return not any(is_number(option) for option in options)


def _are_numbered(features: dict[str, dict[str, str]], label: str, asked: Columns) -> bool:
    """Whether numbers at the ends of names are those of options: of score_1 to score_3 and a label they are not."""
    alike = len({tuple(of) for of in features.values()}) == 1
    return (
        alike and len(features) >= FEWEST_NUMBERED and (asked.label == label or plain_name(label) in CHOSEN)
    )


def _named_options(table: Table, label: str, asked: Columns) -> list[str | float]:
    """The label's cells, plainly; numbers of the alternatives that the caller lists as their names (`_numbering`)."""
    cells = [plain_cell("" if cell is None else cell) for cell in table.cells(label)]
    names = _numbering(label, cells, asked)
    return [names.get(cell, cell) if isinstance(cell, float) else cell for cell in cells]


def _numbering(label: str, cells: list[str | float], asked: Columns) -> dict[float, str | float]:
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


def _by_feature(table: Table, split: re.Pattern, taken: tuple[str | None, ...]) -> dict[str, dict[str, str]]:
    """{feature: {option: column}} of all columns that such a name has; an option is written as it first is."""
    found: dict[str, dict[str, str]] = {}
    spelled: dict[str, str] = {}
    for name in table.names:
        match = split.match(name)
        if match and name not in taken:
            option = spelled.setdefault(match["option"].casefold(), match["option"])
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


def _plainly(names) -> list[str | float]:
    return [plain_cell(name) for name in names]


def _offered(table: Table, found: _Found, asked: Columns) -> _Offers:
    """Rows that could not be read are one each, to be told of."""
    bad, offered = {cell.row for cell in table.bad}, _were_offered(table, found)
    labels = _named_options(table, found.label, asked)
    offers: list[tuple[int, str | None]] = []
    unclear = 0
    for row, label in enumerate(labels):
        options = [option for option in found.options if offered[option][row]]
        clear = len(options) > 1 and label in _plainly(options)
        unclear += not clear and row not in bad
        offers += [(row, None)] if row in bad else [(row, option) for option in options] if clear else []
    rows, options = [row for row, _ in offers], [option for _, option in offers]
    chosen = [int(option is not None and labels[row] == plain_cell(option)) for row, option in offers]
    columns: dict[str, list] = {CHOICE: rows, WAS_CHOSEN: chosen}
    if _named(found.options) and any(len(option) > 1 for option in found.options):
        columns["option_name"] = options
    for feature, of in found.features.items():
        cells = {option: table.cells(name) for option, name in of.items()}
        columns[feature] = [cells[o][row] if o in cells else None if o is None else 0.0 for row, o in offers]
    for name in _beside(table, found, asked):
        cells = table.cells(name)
        columns.setdefault(name, [cells[row] for row in rows])
    place = {row: i for i, row in reversed(list(enumerate(rows)))}
    moved = tuple(cell._replace(row=place[cell.row]) for cell in table.bad)
    return _Offers(Table(table.source, columns, len(rows), moved, table.notes), rows, options, unclear)


def _were_offered(table: Table, found: _Found) -> dict[str, list[bool]]:
    """{option: of each row whether it was offered}: where no column says so, if any of its features is there."""
    offered = {}
    for option in found.options:
        if option in found.available:
            cells = table.cells(found.available[option])
            offered[option] = [plain_cell(cell) not in (0.0, "false", "no") for cell in cells]
        else:
            columns = [table.cells(of[option]) for of in found.features.values() if option in of]
            offered[option] = [
                not all(_is_nothing(cell) for cell in row) for row in zip(*columns, strict=True)
            ]
    return offered


def _is_nothing(cell: Any) -> bool:
    return cell is None or str(cell).strip().casefold() in NOTHING


def _beside(table: Table, found: _Found, asked: Columns) -> list[str]:
    """The columns of who chose and of how much a row counts."""
    lower = by_parted_name(table)
    known = [lower[name] for name in PEOPLE if name in lower]
    names = dict.fromkeys(name for name in (*known, asked.rater, asked.weight) if name is not None)
    return [name for name in names if name != found.label]


def _zeros(mapped: Mapped, found: _Found) -> tuple[str, ...]:
    """What is said of options that lack a feature."""
    return tuple(
        f"{', '.join(lacking)} without {feature}: counted as 0"
        for feature in mapped.roles.numbers["numeric"]
        if (lacking := [o for o in found.options if o not in found.features.get(feature, {o: ""})])
    )


def _told(table: Table, found: _Found, asked: Columns, mapped: Mapped) -> tuple[str, ...]:
    """What numbers of the label stand for, and that the options themselves are no feature."""
    cells = [plain_cell("" if cell is None else cell) for cell in table.cells(found.label)]
    numbers = _numbering(found.label, cells, asked)
    notes = (
        [f"In {found.label} {', '.join(f'{n:g} is {name}' for n, name in numbers.items())}"]
        if numbers
        else []
    )
    if not asked.words and "option_name" in mapped.roles.words:
        notes.append("Which option it is is no feature: --words makes it one")
    return tuple(notes)


def _cells_of(mapped: Mapped, found: _Found, offers: _Offers) -> dict[str, tuple[Any, bool]]:
    """Column of `mapped` → (the file's column of each pair, False: both sides are of the same row)."""
    assert mapped.origin is not None
    assert mapped.second is not None
    names = {}
    for name, (feature, second) in mapped.cells_of.items():
        rows = mapped.second if second else mapped.origin
        if feature in found.features:
            of = found.features[feature]
            names[name] = (tuple(of.get(offers.options[row] or "", found.label) for row in rows), False)
        else:
            names[name] = (found.label if feature == "option_name" else feature, False)
    return names
