"""Numbers of the winner and the loser of each pair, by other words: `winner_price` and `loser_price`."""

import dataclasses
import itertools
import re

from ..columns import Columns
from ..table import Table
from . import plain
from .base import Mapped
from .choice_features import is_no_feature
from .numbers import NUMERIC, mostly_numbers, scores_of
from .sides import chosen_sides, open_sides

NAME = "numbers of winners and losers"
ORDER = 140
# Words of one row's own counts, such as won and lost, are left out.
WORDS = {
    "chosen": "winner|winning|preferred|selected|better|chosen",
    "rejected": "loser|losing|dispreferred|unselected|not_selected|other|rejected|worse",
}
# winner_price, price_winner.
PLACES = (
    ("before", r"^(?P<word>{words})[\s_.\-](?P<stem>.+)$"),
    ("after", r"^(?P<stem>.+)[\s_.\-](?P<word>{words})$"),
)


def recognise(table: Table) -> bool:
    named = chosen_sides(table) or open_sides(table) or any(NUMERIC.match(name) for name in table.names)
    return not named and not scores_of(table) and bool(_columns(table))


def map(table: Table, asked: Columns) -> Mapped:
    """Each pair of columns is read as chosen_<name> and rejected_<name>."""
    named = {
        f"{side}_{name}": column
        for name, pair in _columns(table).items()
        for side, column in zip(("chosen", "rejected"), pair, strict=True)
    }
    theirs = {column: ours for ours, column in named.items()}
    columns = {theirs.get(name, name): cells for name, cells in table.columns.items()}
    found = plain.map(dataclasses.replace(table, columns=columns), asked)
    ignored = {named.get(name, name): why for name, why in found.roles.ignored.items()}
    pairs = list(_columns(table).values())
    said = found.roles.said | {
        "chosen": f"the side with {pairs[0][0]}",
        "rejected": f"the one with {pairs[0][1]}",
    }
    return dataclasses.replace(
        found,
        schema=NAME,
        used=tuple(column for column in theirs if column not in ignored),
        cells_of={ours: (column, False) for ours, column in named.items()},
        roles=dataclasses.replace(found.roles, said=said, ignored=ignored),
    )


def _columns(table: Table) -> dict[str, tuple[str, str]]:
    """{feature: its columns of the winner and the loser}, of numbers, where one word says winner and one loser."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for side, words in WORDS.items():
        for (place, pattern), name in itertools.product(PLACES, table.names):
            match = re.match(pattern.format(words=words), name, re.I)
            if match and not is_no_feature(match["stem"]) and mostly_numbers(table.some(name)):
                found.setdefault((place, match["stem"]), {})[side] = name
    return {
        stem: (sides["chosen"], sides["rejected"]) for (_, stem), sides in found.items() if len(sides) == 2
    }
