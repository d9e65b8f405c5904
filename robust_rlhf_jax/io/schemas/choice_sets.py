"""One option a row, several rows a choice, as studies of choices keep them: `task`, `price`, `time`, `chosen`."""

import itertools
from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np

from ..bad_cells import BadCell
from ..columns import Columns
from ..label_rules import OF_LOSERS
from ..labels import word, yes_or_no
from ..table import Table
from .base import Mapped, Roles
from .choice_features import (
    AVAILABLE,
    Choice,
    Features,
    check_features,
    features_of,
    notes_of,
    same_in_each,
)
from .choice_names import CALLED, CHOSEN, PEOPLE, SETS, by_parted_name, plain_cell
from .chosen_marks import marks_of
from .numbers import NUMERIC, is_number
from .plain import check_asked
from .sides import by_plain_name, chosen_sides, open_sides
from .words import LONGEST, are_words

NAME = "choice sets, one option a row"
ORDER = 145
ANY_LABEL = True
# Choices without exactly one chosen option, as a share of all, beyond which the column is something else; one of a few
# may always be so.
UNCLEAR, FEW = 0.05, 5
# The share of choices in which nothing may have been wanted.
NOT_WANTED = 0.5
# Choices of one chosen option each that a column of another name does not make by chance: of two options once in 10⁶.
SURE = 20
# Columns of other names that are tried.
MOST_COLUMNS = 50
# Rows of which one is the option that the first row names as chosen, if a column says which option a row is.
FIRST_ROWS = 1000


class _Found(NamedTuple):
    """`ours`: the columns whose cells say which rows are one choice; `person`: who chose, one of them; `chosen`: 1 in
    the chosen row; or in every row the value that the chosen one has in the column `called`, where that is not None.
    """

    ours: tuple[str, ...]
    person: str | None
    chosen: str
    called: str | None


def recognise(table: Table) -> bool:
    return recognise_asked(table, Columns())


def recognise_asked(table: Table, asked: Columns) -> bool:
    """`recognise`, with the column of the label and that of the choice as the caller names them."""
    lower = by_parted_name(table)
    label = asked.label or next((lower[name] for name in CHOSEN if name in lower), None)
    if chosen_sides(table) or open_sides(table) or any(NUMERIC.match(n) for n in table.names if n != label):
        return False
    return _find(table, asked) is not None


def of_numbers(table: Table, asked: Columns) -> bool:
    """Whether the table is recognised, and its options differ in columns of numbers."""
    if not recognise_asked(table, asked):
        return False
    found = _find(table, asked)
    assert found is not None
    features = _features(table, found, _choices(table, found))
    return bool(features.numbers or features.marked)


def map(table: Table, asked: Columns) -> Mapped:
    """The chosen option of each choice with every other one.

    **Raises:** ValueError for a label that does not say of one row of each choice that it was chosen, and for features
    of words that nobody asks for.
    """
    check_asked(table, asked)
    found = _find(table, asked)
    if found is None:
        raise ValueError(
            f"--label {asked.label} neither is 1 in one row of each choice and 0 in the others, nor names an option."
        )
    check_winners(found.chosen)
    choices = _choices(table, found)
    if asked.label is None:
        _check_other_answers(table, found, choices)
    firsts, seconds = _sides(table, choices)
    features = features_of(table, (*found.ours, found.chosen, asked.weight, asked.rater), choices)
    check_features(table, features, asked.words)
    numbers, words, ignored, _ = features
    cells_of = {
        name: (feature, second)
        for feature, sides in (numbers | words).items()
        for name, second in zip(sides, (False, True), strict=True)
    }
    columns = {
        name: _at(table.cells(feature), seconds if second else firsts)
        for name, (feature, second) in cells_of.items()
    }
    beside = {"rater": asked.rater or found.person or _who(table, found, choices), "weight": asked.weight}
    there = {part: name for part, name in beside.items() if name is not None}
    columns |= {part: _at(table.cells(name), firsts) for part, name in there.items()}
    cells_of |= {part: (name, False) for part, name in there.items()}
    columns["choice"] = _at(_keys(table, found), firsts)
    said = _said(found, table.cells(found.chosen)) | {
        part: name for part, name in there.items() if part == "rater"
    }
    rater, weight = (part if part in there else None for part in beside)
    roles = Roles(
        None, {"numeric": numbers}, None, None, rater, weight, group="choice", said=said, ignored=ignored, words=words
    )  # fmt: skip
    unclear = sum(choice.chosen is None for choice in choices)
    made = Table(table.source, columns, len(firsts), _bad(table, firsts), table.notes)
    called = () if found.called is None else (found.called,)
    used = tuple(dict.fromkeys((*found.ours, found.chosen, *called, *there.values(), *numbers)))
    origin, second = (np.asarray(side, int) for side in (firsts, seconds))
    return Mapped(NAME, made, roles, origin, used, notes_of(unclear), second, cells_of)


def check_winners(column: str) -> None:
    """**Raises:** ValueError for a column of the worst options."""
    if OF_LOSERS.search(column):
        raise ValueError(
            f"column {column} says by its name which option was the worst, and pairs are made of the best: name the "
            "column of the best by --label"
        )


def _check_other_answers(table: Table, found: _Found, choices: list[Choice]) -> None:
    """**Raises:** ValueError for another column that says of the same choices that other options were chosen."""
    lower, person = by_parted_name(table), found.person or _who(table, found, choices)
    people = None if person is None else table.cells(person)
    for name in dict.fromkeys(lower[known] for known in CHOSEN if known in lower):
        if name in (found.chosen, *found.ours) or _numbers_choices(table.cells(name), choices, people):
            continue
        tries = (found._replace(chosen=name, called=called) for called in _ways_to_say(table, name))
        other = next((one for one in tries if _fits(table, one)), None)
        pairs = zip(choices, [] if other is None else _choices(table, other), strict=False)
        torn = next((a for a, b in pairs if None not in (a.chosen, b.chosen) and a.chosen != b.chosen), None)
        if torn is not None:
            raise ValueError(
                f"{found.chosen} and {name} both say which option was chosen, and disagree in the choice of row "
                f"{torn.rows[0] + 1}: give --label {found.chosen} or --label {name}"
            )


def _numbers_choices(cells: list, choices: list[Choice], people: list | None) -> bool:
    """Whether a column numbers the choices, for each person anew: it rises by 1 or begins again; or no number comes
    twice for one person, as where each has them in another order.
    """
    told = [plain_cell(cells[choice.rows[0]]) for choice in choices]
    of_each = [number for number in told if isinstance(number, float)]
    if not same_in_each(cells, choices) or len(of_each) < len(told):
        return False
    steps = itertools.pairwise(of_each)
    whose = (
        None if people is None else {(people[c.rows[0]], n) for c, n in zip(choices, of_each, strict=True)}
    )
    return all(b in (a + 1, of_each[0]) for a, b in steps) or (
        whose is not None and len(whose) == len(choices)
    )


def _said(found: _Found, cells: list) -> dict[str, str]:
    """How a person is told of the chosen option, the others and the label."""
    if found.called is None:
        mark = next((cell for cell, told in zip(cells, marks_of(cells), strict=True) if told), 1)
        mark = "1" if yes_or_no(mark) else word(mark)
        chosen, label = f"{found.chosen} {mark}", f"{mark} was chosen"
    else:
        chosen = f"the {found.called} that {found.chosen} names"
        label = f"the {found.called} of the chosen row"
    return {
        "chosen": f"the row of a choice with {chosen}",
        "rejected": "each other row of it",
        "label": f"{found.chosen}: {label}",
    }


def _sides(table: Table, choices: list[Choice]) -> tuple[list[int], list[int]]:
    """The rows of the chosen options, and those of the others; a row that could not be read is both, to be told of."""
    pairs = [(c.chosen, row) for c in choices if c.chosen is not None for row in c.rows if row != c.chosen]
    pairs += [(row, row) for row in sorted({cell.row for cell in table.bad})]
    return [chosen for chosen, _ in pairs], [other for _, other in pairs]


def _bad(table: Table, firsts: list[int]) -> tuple[BadCell, ...]:
    """The cells that could not be read, by pair."""
    place = {row: i for i, row in enumerate(firsts)}
    return tuple(cell._replace(row=place[cell.row]) for cell in table.bad)


def _find(table: Table, asked: Columns) -> _Found | None:
    """The first columns by which the choices are nearly all of several rows with one chosen."""
    lower = by_parted_name(table)
    chosen = asked.label or next((lower[name] for name in CHOSEN if name in lower), None)
    if chosen is None or not {chosen, asked.pair_id or chosen} <= {*table.names}:
        return None
    called = _ways_to_say(table, chosen)
    people = [lower[name] for name in PEOPLE if name in lower]
    people = list(dict.fromkeys([*([asked.rater] if asked.rater in table.columns else ()), *people]))
    sets = [asked.pair_id] if asked.pair_id else [lower[name] for name in SETS if name in lower]
    # A task is often numbered anew for each person.
    ours = [((one,), None) for one in sets]
    ours += [((who, one), who) for one in sets for who in people if who != one]
    tries = (_Found(*keys, chosen, name) for name in called for keys in ours)
    found = next((found for found in tries if chosen not in found.ours and _fits(table, found)), None)
    return found if found is not None or asked.pair_id else _by_its_cells(table, chosen, called[:1], people)


def _by_its_cells(table: Table, chosen: str, called: list[str | None], people: list[str]) -> _Found | None:
    """By a column of any name, alone or within a person, in which each of many choices has one chosen option."""
    if called[:1] != [None] or any(_holds_texts(table, name) for name in table.names):
        return None
    others = [name for name in table.names if name != chosen][:MOST_COLUMNS]
    keys = {name: [repr(cell) for cell in table.cells(name)] for name in others}
    many = marks_of(table.cells(chosen)).count(True)
    ours: list[tuple[tuple[str, ...], str | None]] = [((one,), None) for one in others]
    ours += [((who, one), who) for who in people if who in keys for one in others if who != one]
    for columns, who in ours:
        # As many choices as chosen options: the rest is worth looking at.
        if many < SURE or len(set(zip(*(keys[name] for name in columns), strict=True))) != many:
            continue
        found = _Found(columns, who, chosen, None)
        choices = _choices(table, found)
        if all(choice.chosen is not None for choice in choices) and _any(_features(table, found, choices)):
            return found
    return None


def _ways_to_say(table: Table, chosen: str) -> list[str | None]:
    """What `_Found.called` may be of a column: None first where it says yes or no."""
    marks = any(mark is not None for mark in marks_of(table.some(chosen)))
    return [*([None] if marks else []), *_called(table, chosen)]


def _called(table: Table, chosen: str) -> list[str]:
    """The columns that may say which option a row is: those called so, then words that the first choice names one of.

    Other numbers are prices and the like: where option 2 was chosen, some price is 2.
    """
    lower, first = by_plain_name(table), plain_cell(table.first(chosen))
    names = [lower[name] for name in CALLED if name in lower and lower[name] != chosen]
    others = (name for name in table.names if name not in (*names, chosen) and _holds_words(table, name))
    return names + [
        name for name in others if any(plain_cell(cell) == first for cell in table.cells(name)[:FIRST_ROWS])
    ]


def _holds_texts(table: Table, name: str) -> bool:
    """Whether a column holds texts, which a choice between numbers would leave out."""
    return any(isinstance(cell, str) and len(cell) > LONGEST for cell in table.some(name))


def _holds_words(table: Table, name: str) -> bool:
    return not is_number(table.first(name)) and are_words(table.cells(name))


def _fits(table: Table, found: _Found) -> bool:
    """Whether hardly any choice is unclear; of many whose chosen option is marked, half may have none, if no more."""
    choices, were = _choices(table, found), _were_chosen(table, found)
    unclear = sum(choice.chosen is None for choice in choices)
    if found.called is None and len(choices) >= SURE:
        none = sum(all(were[row] is False for row in choice.rows) for choice in choices)
        unclear -= none if none <= NOT_WANTED * len(choices) else 0
    most = max(UNCLEAR * len(choices), 1 if len(choices) >= FEW else 0)
    return unclear <= most and _any(_features(table, found, choices))


def _any(features: Features) -> bool:
    return bool(features.numbers or features.words or features.marked)


def _choices(table: Table, found: _Found) -> list[Choice]:
    rows = defaultdict(list)
    columns = [table.cells(name) for name in found.ours]
    for row, key in enumerate(zip(*columns, strict=True)):
        # Rows that do not say which choice they are of are none of one.
        rows[repr(key) if all(_is_there(cell) for cell in key) else row].append(row)
    bad, were, gone = {cell.row for cell in table.bad}, _were_chosen(table, found), _not_offered(table)
    choices = []
    for all_members in rows.values():
        members = [row for row in all_members if row not in bad and row not in gone]
        if len(members) == 1 and not gone.isdisjoint(all_members):
            continue  # what was the only offer tells nothing
        said = [were[row] for row in members]
        clear = len(members) > 1 and None not in said and said.count(True) == 1
        if members:
            choices.append(Choice(members, members[said.index(True)] if clear else None))
    return choices


def _is_there(cell: Any) -> bool:
    return cell is not None and cell != "" and cell == cell


def _not_offered(table: Table) -> set[int]:
    lower = by_plain_name(table)
    columns = [table.cells(lower[name]) for name in AVAILABLE if name in lower]
    return {row for cells in columns for row, cell in enumerate(cells) if yes_or_no(cell) is False}


def _features(table: Table, found: _Found, choices: list[Choice]) -> Features:
    return features_of(table, (*found.ours, found.chosen), choices)


def _who(table: Table, found: _Found, choices: list[Choice]) -> str | None:
    """A column of who chose: the same in each choice, and in several of them."""
    lower = by_parted_name(table)
    for name in (lower[name] for name in PEOPLE if name in lower):
        cells = table.cells(name)
        fewer = len({repr(cells[choice.rows[0]]) for choice in choices}) < len(choices)
        if name not in found.ours and fewer and same_in_each(cells, choices):
            return name
    return None


def _keys(table: Table, found: _Found) -> list[str]:
    return [repr(key) for key in zip(*(table.cells(name) for name in found.ours), strict=True)]


def _at(cells: list, rows: list[int]) -> list:
    return [cells[row] for row in rows]


def _were_chosen(table: Table, found: _Found) -> list[bool | None]:
    """Whether each row was chosen; None if its cell says neither."""
    cells = table.cells(found.chosen)
    if found.called is None:
        return marks_of(cells)
    return [
        plain_cell(one) == plain_cell(other)
        for one, other in zip(cells, table.cells(found.called), strict=True)
    ]
