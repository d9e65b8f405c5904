"""What says, beside scores, ranks and rankings, which end of them is the better one: a column whose cells are "lower is
better", "1 = worst" or "worst to best", one called `lower_is_better`, and a kind of score of which less is better.
"""

import dataclasses
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..bad_cells import shown
from ..labels import is_missing, word, yes_or_no
from ..table import Table
from .answer_judgements import ORDER_SIGNS
from .base import Mapped, records
from .rankings import ALL_PAIRS, ANSWER_KEYS
from .scored_sides import FAULT, NO_FAULT
from .sides import plain_name

LESS = (
    r"(?:low(?:er|est)?|less|small(?:er|est)?|least|few(?:er|est)|minimum|niedriger|kleiner|weniger|geringer)"
)
MORE = (
    r"(?:high(?:er|est)?|more|large(?:r|st)?|great(?:er|est)|big(?:ger|gest)|most|maximum|höher|mehr|größer)"
)
GOOD = r"(?:better|best|(?:very )?good|preferred|excellent|perfect|outstanding|besser|sehr gut)"
BAD = r"(?:worse|worst|(?:very )?bad|(?:very )?poor|terrible|awful|schlechter|sehr schlecht|ungenügend)"
THINGS = r"(?:values?|scores?|numbers?|ranks?|ratings?|ones?)"
LINK = rf"(?: {THINGS})?(?: ?[=:,]| is| are| means?| ist)? (?:the )?"
LESS_IS_BETTER = re.compile(rf"(?:the )?(?:{LESS}{LINK}{GOOD}|{MORE}{LINK}{BAD})")
MORE_IS_BETTER = re.compile(rf"(?:the )?(?:{MORE}{LINK}{GOOD}|{LESS}{LINK}{BAD})")
# "1 = worst", "1 is best and 5 is worst"; a number above 1 is at the upper end.
END = re.compile(rf"(?P<number>\d+)(?: ?[=:]| is| means?)? ?(?:the )?(?P<how>{GOOD}|{BAD})\b")
ONLY_ENDS = re.compile(rf"{END.pattern}(?:[ ,;]*(?:and|to)?[ ,;]*{END.pattern.replace('?P<', '?P<other_')})?")
BEST_FIRST = re.compile(
    r"(?:from )?(?:the )?(?:best (?:is )?first|best ?(?:to|->|→|…|\.\.\.) ?(?:the )?worst|worst (?:is )?last)"
)
WORST_FIRST = re.compile(
    r"(?:from )?(?:the )?(?:worst (?:is )?first|worst ?(?:to|->|→|…|\.\.\.) ?(?:the )?best|best (?:is )?last)"
)
# Columns whose cells are one word about it, and such words; which end "ascending" puts first is not said.
OF_DIRECTION = re.compile(
    r"(?:^|_)(?:direction|order|ordering|sense|orientation|polarity|goal|objective|optimi[sz]e|better)$"
)
DOWN, UP = re.compile(rf"{LESS}|min|minimi[sz]e|down"), re.compile(rf"{MORE}|max|maximi[sz]e|up")
UNCLEAR = re.compile(r"asc|ascending|desc|descending|increasing|decreasing|revers(?:e|ed)")
# Columns of yes and no.
FLAG = re.compile(
    rf"^(?:is_)?(?:(?P<less>(?:{LESS}_(?:is_)?better|minimi[sz]e))|{MORE}_(?:is_)?better|maximi[sz]e)$"
)
# Columns that say what a score is of, and those that may be about something else than the score.
OF_KIND = re.compile(
    r"^(?:score|metric|rating|reward|value)_?(?:kind|type|name|metric|of)?$|^(?:metric|measure)$"
)
OF_ANYTHING = ("kind", "type", "criterion", "what")
COST = re.compile(
    r"(?:penalt(?:y|ies)|costs?|loss(?:es)?|errors?|regret|distance|perplexity|nll)(?: scores?)?"
)
KIND_OF_FAULT = re.compile(rf"(?<![a-z])(?:{FAULT}|{COST.pattern})")
# Columns that may hold -1 where less is better.
SIGNED = re.compile(r"(?:^|_)(?:direction|sense|orientation|polarity|sign)$")
# Texts of which none is so long say it.
LONGEST = 60


def with_directions(table: Table, mapped: Mapped) -> Mapped:
    """The pairs with sides in the order that the file's columns tell, where they tell one.

    **Raises:** ValueError for a column of which it cannot be told what it says of the scores or ranks.
    """
    if not mapped.by:
        return mapped
    for name in (name for name in table.names if name not in mapped.used):
        ways = _ways(table, name, mapped.by)
        if ways is not None:
            mapped = _turned(table, mapped, name, ways)
    _check_inside(table, mapped)
    return mapped


def _ways(table: Table, name: str, by: str) -> list[float | None] | None:
    """For each row 1 if the column agrees with how `by` is read, -1 if it says the opposite, 0 if that cannot
    be told, None for an empty cell; None for a column of anything else."""
    if not all(is_missing(cell) or way(name, cell, by) is not None for cell in table.some(name)):
        return None
    told = [None if is_missing(cell) else way(name, cell, by) for cell in table.cells(name)]
    return None if all(each is None for each in told) else told


def way(name: str, cell: Any, by: str) -> float | None:
    """1 if a cell says that `by` ("scores", "ranks", "order") is as usual: the highest score, the lowest rank, or the
    first is the best; -1 if it says the opposite; 0 if it may; None if it says nothing of it."""
    plain, usual = plain_name(name), -1.0 if by == "ranks" else 1.0
    flag = FLAG.match(plain)
    if flag:
        told = yes_or_no(cell)
        return (
            None if told is None or by == "order" else usual * (-1.0 if told == bool(flag["less"]) else 1.0)
        )
    if SIGNED.search(plain) and word(cell) in ("1", "-1"):
        return 1.0 if word(cell) == "1" else 0.0
    if not isinstance(cell, str) or len(cell) > LONGEST:
        return None
    said, of_direction = word(cell), OF_DIRECTION.search(plain) is not None
    if by != "scores" and (BEST_FIRST.fullmatch(said) or WORST_FIRST.fullmatch(said)):
        return 1.0 if BEST_FIRST.fullmatch(said) else -1.0
    if of_direction and UNCLEAR.fullmatch(said):
        return 0.0
    if by == "order":
        return None
    ends = _by_ends(said)
    if ends is not None:
        return usual * ends
    if LESS_IS_BETTER.fullmatch(said) or (of_direction and DOWN.fullmatch(said)):
        return -usual
    if MORE_IS_BETTER.fullmatch(said) or (of_direction and UP.fullmatch(said)):
        return usual
    of_fault = OF_KIND.match(plain) and KIND_OF_FAULT.search(NO_FAULT.sub("", said))
    return 0.0 if by == "scores" and (of_fault or (plain in OF_ANYTHING and COST.fullmatch(said))) else None


def _by_ends(said: str) -> float | None:
    """1 where the higher of the numbers that are said to be the best or the worst is the better, -1 where the lower."""
    if not ONLY_ENDS.fullmatch(said):
        return None
    ways = {
        (1.0 if int(end["number"]) > 1 else -1.0) * (1.0 if re.fullmatch(GOOD, end["how"]) else -1.0)
        for end in END.finditer(said)
    }
    return ways.pop() if len(ways) == 1 else None


def _turned(table: Table, mapped: Mapped, name: str, ways: list[float | None]) -> Mapped:
    """**Raises:** ValueError where rows say nothing, or what cannot be told or done."""
    cells = table.cells(name)
    opposite = next((row for row, told in enumerate(ways) if told is not None and told <= 0), None)
    signs = any(ORDER_SIGNS.search(str(cell)) for used in mapped.used for cell in _short(table, used))
    if opposite is not None:
        row = np.arange(table.n_rows) if mapped.origin is None else mapped.origin
        second = row if mapped.second is None else mapped.second
        apart = any(ways[a] != ways[b] for a, b in zip(row.tolist(), second.tolist(), strict=True))
        made = mapped.table.columns.get("strength")
        if made is None or apart or signs or _many(mapped) or not all(ways[r] for r in row.tolist()):
            raise ValueError(_asking(mapped.by, f"column {name}", cells[opposite]))
        strength = [way * told for way, told in zip(made, (ways[r] for r in row.tolist()), strict=True)]
        columns = mapped.table.columns | {"strength": strength}
        mapped = dataclasses.replace(mapped, table=dataclasses.replace(mapped.table, columns=columns))
    said = mapped.roles.said | {"label": _said(mapped, name, cells, ways)}
    roles = dataclasses.replace(mapped.roles, said=said)
    return dataclasses.replace(mapped, roles=roles, used=(*mapped.used, name))


def _short(table: Table, name: str) -> Iterator[str]:
    """The texts of a column that may be rankings such as "B>A", if it is one that the file has and no answers."""
    if name in table.columns and re.search(r"rank|order|pref", name, re.I):
        yield from (cell for cell in table.some(name) if isinstance(cell, str))


def _many(mapped: Mapped) -> bool:
    """Whether a group has so many answers that only the best was compared with every other one."""
    groups = mapped.table.columns.get("group", [])
    answers: dict[Any, set[str]] = {}
    for group, *sides in zip(
        groups, *(mapped.table.cells(side) for side in ("first", "second")), strict=True
    ):
        answers.setdefault(group, set()).update(map(str, sides))
    return any(len(texts) > ALL_PAIRS for texts in answers.values())


def _said(mapped: Mapped, name: str, cells: list, ways: list[float | None]) -> str:
    label = mapped.roles.said["label"]
    told = {told for told in ways if told is not None}
    if told == {1.0}:
        return label
    one = next(cell for cell, way in zip(cells, ways, strict=True) if way == -1.0)
    where = "in the rows where" if len(told) > 1 else "as"
    return f"{label.split(':')[0]}, turned round {where} {name} says {shown(one)}"


def _asking(by: str, what: str, cell: Any) -> str:
    """What to do about a column or a key."""
    best = {"scores": "highest score", "ranks": "lowest rank", "order": "first"}[by]
    mend = "write the best first" if by == "order" else "turn the signs of the numbers round"
    return (
        f"{what} says {shown(cell)}, and pairs would be made as if the {best} were the best: {mend} where that is "
        f"wrong, and leave {what} out"
    )


def _check_inside(table: Table, mapped: Mapped) -> None:
    """**Raises:** ValueError for objects of answers that say the opposite, or may say it, beside each answer."""
    for name in (name for name in mapped.used if name in table.columns):
        for entry in (entry for cell in table.some(name) for entry in records(cell)):
            for key, cell in entry.items():
                told = None if key in ANSWER_KEYS else way(str(key), cell, mapped.by)
                if told is not None and told <= 0:
                    raise ValueError(_asking(mapped.by, f"the key {key} in column {name}", cell))


__all__ = ["way", "with_directions"]
