"""One choice a row with a column of 0 and 1 for each option: `choice_car`, `choice_bus`, `choice_rail` beside
`time_car`, `time_bus`, `time_rail`.
"""

import dataclasses

from ..columns import Columns
from ..labels import is_missing, yes_or_no
from ..table import Table
from . import wide_choices
from .base import Mapped
from .choice_names import CHOSEN
from .flags_of_sides import FLAGS
from .plain import check_asked
from .sides import LABELS, named, plain_name
from .wide_names import SPLITS

NAME = "choice sets, one choice a row with a tick for each option"
ORDER = 155
STEMS = {*FLAGS, *CHOSEN, "vote"}
# The share of rows at least in which one option alone is ticked; more options than one make columns of something else.
CLEAR = 0.9


def recognise(table: Table) -> bool:
    if named(table, (*CHOSEN, *LABELS)) is not None:
        return False
    ticks = _ticks(table)
    return ticks is not None and wide_choices.recognise_asked(_labelled(table, ticks), _by(ticks, Columns()))


def map(table: Table, asked: Columns) -> Mapped:
    """The option whose column is 1 with every other one that was offered; a row without exactly one makes no pair.

    **Raises:** as choices of one row.
    """
    check_asked(table, asked)
    ticks = _ticks(table)
    assert ticks is not None
    found = wide_choices.map(_labelled(table, ticks), _by(ticks, asked))
    columns, label = (*ticks.values(),), _label(ticks)
    said = found.roles.said | {"label": f"{', '.join(columns)}: the 1 of them"}
    return dataclasses.replace(
        found,
        schema=NAME,
        used=(*(name for name in found.used if name != label), *columns),
        roles=dataclasses.replace(found.roles, said=said),
    )


def _ticks(table: Table) -> dict[str, str] | None:
    """{option: its column} of the first columns that are called after one stem and say yes of one option a row."""
    for split in SPLITS:
        found: dict[str, dict[str, str]] = {}
        for name in table.names:
            match = split.match(name)
            if match and plain_name(match["feature"]) in STEMS:
                found.setdefault(match["feature"], {})[match["option"]] = name
        for of in found.values():
            if (
                len(of) > 1
                and _say_yes_or_no(table, of)
                and sum(one is not None for one in _one(table, of)) > CLEAR * table.n_rows
            ):
                return of
    return None


def _say_yes_or_no(table: Table, of: dict[str, str]) -> bool:
    """Whether nearly all of the first cells do, or are missing: columns of features are not read to their end."""
    cells = [cell for name in of.values() for cell in table.some(name)]
    return sum(is_missing(cell) or yes_or_no(cell) is not None for cell in cells) > CLEAR * len(cells)


def _one(table: Table, of: dict[str, str]) -> list[str | None]:
    """The only option of each row whose column says yes; None where another cell says neither yes nor no."""
    ticked = []
    for cells in zip(*(table.cells(name) for name in of.values()), strict=True):
        said = [False if is_missing(cell) else yes_or_no(cell) for cell in cells]
        ticked.append([*of][said.index(True)] if said.count(True) == 1 and None not in said else None)
    return ticked


def _label(ticks: dict[str, str]) -> str:
    """A name that no feature can have: chosen_car alone would be one."""
    return f"the 1 of {', '.join(ticks.values())}"


def _labelled(table: Table, ticks: dict[str, str]) -> Table:
    """The table with one column that names the chosen option in place of the ticks."""
    others = {name: cells for name, cells in table.columns.items() if name not in ticks.values()}
    return dataclasses.replace(table, columns=others | {_label(ticks): _one(table, ticks)})


def _by(ticks: dict[str, str], asked: Columns) -> Columns:
    return dataclasses.replace(asked, label=_label(ticks))
