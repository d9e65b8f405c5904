"""One choice a row, a column for each feature of each option, as studies of travel have them: `time_car`, `time_bus`,
`cost_car`, `cost_bus`, `choice`.
"""

import dataclasses
import itertools
import re
from typing import Any, NamedTuple

import numpy as np

from ..columns import Columns
from ..table import Table
from . import choice_sets
from .base import Mapped
from .choice_features import AVAILABLE, notes_of
from .choice_sets import CHOSEN, PEOPLE, by_parted_name, plain_cell
from .numbers import NUMERIC, is_number
from .plain import check_asked
from .sides import LABELS, chosen_sides, named, open_sides, plain_name

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
# Cells that say that an option was not offered, where no column does.
NOTHING = ("", "na", "n/a", "nan", "null", "none", "nil", ".", "-")
# Columns of the table of offers that no feature can be called.
CHOICE, WAS_CHOSEN = " choice", " chosen"


class _Found(NamedTuple):
    """`label`: the column that names the chosen option; `options`, as their columns write them; `features`: {feature:
    {option: column}}; `available`: {option: column of whether it was offered}.
    """

    label: str
    options: tuple[str, ...]
    features: dict[str, dict[str, str]]
    available: dict[str, str]


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
    columns = [name for by_option in found.features.values() for name in by_option.values()]
    listed = ", ".join(found.options)
    said = mapped.roles.said | {
        "chosen": f"the option that {found.label} names, of {listed}",
        "rejected": "each other one",
        "label": f"{found.label}: names the option that was chosen",
    }
    assert mapped.origin is not None
    origin = np.asarray(offers.rows)[mapped.origin]
    return dataclasses.replace(
        mapped,
        schema=NAME,
        roles=dataclasses.replace(mapped.roles, said=said),
        origin=origin,
        second=None,
        used=(found.label, *columns, *found.available.values(), *_beside(table, found, asked)),
        notes=(*notes_of(offers.unclear), *mapped.notes, *_zeros(found), *_constants(mapped, asked)),
        cells_of=_cells_of(mapped, found, offers),
    )


def unnamed(table: Table) -> tuple[str, tuple[str, ...]] | None:
    """(column of numbers, the options that it may number) where columns are called after options, or None."""
    label = named(table, (*CHOSEN, *LABELS))
    if label is None or not all(is_number(cell) for cell in table.some(label)):
        return None
    values = {plain_cell(cell) for cell in table.cells(label)}
    # 0 may number an option, or mean that none was chosen.
    for fewest, split in itertools.product((len(values), len(values - {0.0})), SPLITS[:2]):
        features = _by_feature(table, split, label)
        sizes = {
            name: of for name, of in features.items() if len(of) >= max(2, fewest) and not is_number(name)
        }
        shared = [tuple(of) for of in sizes.values()]
        options = max(shared, key=shared.count, default=())
        if shared.count(options) > 1:
            return label, options
    return None


def _find(table: Table, asked: Columns) -> _Found | None:
    """The first way to split the names of columns in which the label's values are options."""
    label = asked.label or named(table, (*CHOSEN, *LABELS))
    if label is None or label not in table.columns:
        return None
    cells = [cell for cell in _named_options(table, label, asked) if cell != ""]
    values = set(cells)
    for split in SPLITS:
        features = _by_feature(table, split, label)
        shared = {name: of for name, of in features.items() if len(values & {*_plainly(of)}) > 1}
        options = _options(shared, values) if asked.alternatives is None else _listed(shared, asked)
        known = _plainly(options)
        shared = {name: {o: of[o] for o in options if o in of} for name, of in shared.items()}
        available = _availability(table, label, options)
        answers = {*AVAILABLE, *CHOSEN, *LABELS}
        shared = {name: of for name, of in shared.items() if plain_name(name) not in answers}
        most = UNCLEAR if asked.alternatives is None else UNCLEAR_IF_LISTED
        clear = sum(cell not in known for cell in cells) <= most * len(cells)
        listed = _named(options) or asked.alternatives is not None
        if shared and len(options) > 1 and clear and (listed or _are_numbered(shared, label, asked)):
            return _Found(label, options, shared, available)
    return None


def _availability(table: Table, label: str, options: tuple[str, ...]) -> dict[str, str]:
    """{option: column of whether it was offered}, whichever part of its name comes first."""
    found = {}
    for split in SPLITS[:2]:
        for feature, of in _by_feature(table, split, label).items():
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
    """The label's cells, plainly; numbers of the options that the caller lists, from 1 on, or from 0 if all are below
    their count, as their names.
    """
    cells = [plain_cell("" if cell is None else cell) for cell in table.cells(label)]
    if asked.alternatives is None:
        return cells
    numbers = [cell for cell in cells if isinstance(cell, float)]
    first = 0.0 if 0.0 in numbers and max(numbers) < len(asked.alternatives) else 1.0
    names = {first + i: plain_cell(name) for i, name in enumerate(asked.alternatives)}
    return [names.get(cell, cell) if isinstance(cell, float) else cell for cell in cells]


def _by_feature(table: Table, split: re.Pattern, label: str) -> dict[str, dict[str, str]]:
    """{feature: {option: column}} of all columns that such a name has."""
    found: dict[str, dict[str, str]] = {}
    for name in table.names:
        match = split.match(name)
        if match and name != label:
            found.setdefault(match["feature"], {}).setdefault(match["option"], name)
    return found


def _options(features: dict[str, dict[str, str]], values: set) -> tuple[str, ...]:
    """The options, in the order of their columns: those that are chosen, and others that most features have."""
    names = dict.fromkeys(option for of in features.values() for option in of)
    have = {option: sum(option in of for of in features.values()) for option in names}
    return tuple(o for o in names if plain_cell(o) in values or 2 * have[o] > len(features))


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


def _zeros(found: _Found) -> tuple[str, ...]:
    """What is said of options that lack a feature."""
    return tuple(
        f"{', '.join(lacking)} without {feature}: counted as 0"
        for feature, of in found.features.items()
        if (lacking := [option for option in found.options if option not in of])
    )


def _constants(mapped: Mapped, asked: Columns) -> tuple[str, ...]:
    if asked.words or "option_name" not in mapped.roles.words:
        return ()
    return ("The name of the option is no feature: --words makes one of each but the first",)


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
