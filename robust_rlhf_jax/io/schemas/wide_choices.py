"""One choice a row, a column for each feature of each option, as studies of travel have them: `time_car`, `time_bus`,
`cost_car`, `cost_bus`, `choice`.
"""

import dataclasses
from typing import Any

import numpy as np

from ..columns import Columns
from ..table import Table
from . import choice_sets
from .base import Mapped
from .choice_features import notes_of
from .choice_names import plain_cell
from .numbers import NUMERIC, are_marked, marked, mostly_numbers
from .plain import check_asked
from .sides import chosen_sides, open_sides
from .wide_names import WideColumns, find, from_one, named_options, numbering
from .wide_offers import CHOICE, WAS_CHOSEN, Offers, offered
from .words import word_of

NAME = "choice sets, one choice a row"
ORDER = 160
ANY_LABEL = True


def recognise(table: Table) -> bool:
    return recognise_asked(table, Columns())


def recognise_asked(table: Table, asked: Columns) -> bool:
    """`recognise`, with the column of the label as the caller names it."""
    if chosen_sides(table) or open_sides(table) or any(NUMERIC.match(name) for name in table.names):
        return False
    return find(table, asked) is not None


def map(table: Table, asked: Columns) -> Mapped:
    """The chosen option of each row with every other one that was offered.

    **Raises:** ValueError for a label that names none of the options, and where no feature is a number.
    """
    check_asked(table, asked)
    found = find(table, asked)
    if found is None:
        raise ValueError(f"--label {asked.label} does not name the options that columns are called after")
    choice_sets.check_winners(found.label)
    of_numbers = (all(mostly_numbers(table.cells(c)) for c in of.values()) for of in found.features.values())
    if not asked.words and not any(of_numbers):
        _check_marks(table, found)
        raise ValueError(_without_numbers(found))
    offers = offered(table, found, asked)
    ours = Columns(
        label=WAS_CHOSEN, pair_id=CHOICE, rater=asked.rater, weight=asked.weight, words=asked.words
    )
    if not choice_sets.recognise_asked(offers.table, ours):
        raise ValueError(_without_numbers(found))
    mapped = choice_sets.map(offers.table, ours)
    said = mapped.roles.said | {
        "chosen": f"the option that {found.label} names, of {', '.join(found.options)}",
        "rejected": "each other one",
        "label": f"{found.label}: names the option that was chosen{_counted(table, found, asked)}",
    }
    assert mapped.origin is not None
    return dataclasses.replace(
        mapped,
        schema=NAME,
        reads=("first_is",) if _counted(table, found, asked) else (),
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


def _without_numbers(found: WideColumns) -> str:
    return (
        f"no feature of the options {', '.join(found.options)} has numbers alone in its columns; if they are answers, "
        f"name two columns by --chosen and --rejected, with --label {found.label}"
    )


def _check_marks(table: Table, found: WideColumns) -> None:
    """**Raises:** ValueError for numbers with marks."""
    for name in (name for of in found.features.values() for name in of.values()):
        if are_marked(table.cells(name)):
            raise ValueError(marked(table, name))


def _counted(table: Table, found: WideColumns, asked: Columns) -> str:
    labels = named_options(table, found.label, asked)
    return "" if from_one(labels, found.options, asked) == labels else ", counted from 0"


def _used(mapped: Mapped, found: WideColumns, asked: Columns) -> list[str]:
    """The columns of features, and of who chose."""
    features = {**mapped.roles.numbers["numeric"], **(mapped.roles.words if asked.words else {})}
    columns = [name for feature in features for name in found.features.get(feature, {}).values()]
    return columns + [name for name in mapped.used if name not in found.features]


def _ignored(mapped: Mapped, found: WideColumns, offers: Table) -> dict[str, str]:
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


def _zeros(mapped: Mapped, found: WideColumns) -> tuple[str, ...]:
    """What is said of options that lack a feature."""
    used = (feature for feature in mapped.roles.numbers["numeric"] if feature in found.features)
    lacking = {feature: [o for o in found.options if o not in found.features[feature]] for feature in used}
    return tuple(
        f"{', '.join(who)} without {feature}: counted as 0" for feature, who in lacking.items() if who
    )


def _told(table: Table, found: WideColumns, asked: Columns, mapped: Mapped) -> tuple[str, ...]:
    """What numbers of the label stand for, and that the options themselves are no feature."""
    cells = [plain_cell("" if cell is None else cell) for cell in table.cells(found.label)]
    numbers = numbering(found.label, cells, asked)
    means = ", ".join(f"{number:g} means {name}" for number, name in numbers.items())
    notes = [f"In {found.label}, {means}"] if numbers else []
    if not asked.words and "option_name" in mapped.roles.words:
        notes.append("The name of the option is a feature only with --words")
    return tuple(notes)


def _cells_of(mapped: Mapped, found: WideColumns, offers: Offers) -> dict[str, tuple[Any, bool]]:
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
