"""Numbers of two open sides and a label, as tables of choices have them: `price_1`, `price_2`, `time_1`, `choice`."""

import dataclasses
import itertools
import re

from ..bad_cells import shown
from ..columns import Columns
from ..labels import TIE, Rule, is_missing, word
from ..table import Table
from .base import OF_LABELS, Mapped, Roles
from .choice_features import NEITHER, is_no_feature
from .choice_names import PEOPLE, plain_cell
from .deciding import find_label, perhaps, with_rule
from .named_winners import models_of
from .numbers import (
    NUMERIC,
    TELLING,
    VOTES,
    are_marked,
    count_votes,
    marked,
    mostly_numbers,
    name_things,
    tell_who_won,
)
from .plain import check_asked, tie_column
from .sides import (
    IDS,
    LABELS,
    TOKENS,
    by_plain_name,
    chosen_sides,
    exact_last,
    holds_numbers,
    holds_texts,
    named,
    open_sides,
    plain_name,
    rater_named,
)
from .words import are_words

NAME = "numbers of two sides"
ORDER = 150
ANY_LABEL = True
# The later tokens belong to tables of more than two sides, which are no pair.
TOKEN = "left|right|first|second|one|two|a|b|c|d|e|[0-9]"
# price_a, "price (A)", priceA; a_price, "Option A price".
AFTER = re.compile(
    rf"^(?P<stem>.+?)(?:[\s_.\-]|\s?\((?=.+\)$)|(?-i:(?<=[a-z])(?=[A-E]$)))(?P<token>{TOKEN})\)?$", re.I
)
BEFORE = re.compile(
    rf"^(?:(?:option|opt|alternative|alt|product|plan|profile|card|concept)[\s_.\-]?)?(?P<token>{TOKEN})[\s_.\-:]+"
    r"(?P<stem>.+)$",
    re.I,
)
# Names of labels that are no classes of single things.
CHOICES = ("chosen", "choice", "winner", "preferred", "selected", "preference", "better", "best")
SIDES = {token for pair in TOKENS for token in pair}
# A single `x_1` and `x_2` could as well be two features.
FEWEST_NUMBERED = 2
# Words of a sentence: names of products may have less.
FEWEST_WORDS = 5


def recognise(table: Table) -> bool:
    matches = (NUMERIC.match(name) for name in table.names)
    # chosen_a and chosen_b say which side won, and so does chosen_option.
    features = any(
        match
        and (match[1] != "chosen" or match[2].casefold() not in SIDES)
        and (plain_name(match[0]) not in LABELS or f"rejected{match[0][6:]}" in table.columns)
        for match in matches
    )
    sided = chosen_sides(table) or open_sides(table) or features
    return not sided and _found(table) is not None


def map(table: Table, asked: Columns) -> Mapped:
    """The first of the two tokens is the first side.

    **Raises:** ValueError for no label, and for one that cannot be decided.
    """
    check_asked(table, asked)
    found = _found(table)
    assert found is not None
    sides, numbers, words = found
    _check_marks(table, sides)
    _check_texts(table, sides, list(numbers), asked)
    numbers = {
        name: pair for name, pair in numbers.items() if asked.label not in pair and asked.weight not in pair
    }
    columns = [name for pair in numbers.values() for name in pair]
    _check_that_one_was_wanted(table, asked.label or named(table, (*LABELS, "chosen")), sides, asked)
    label, rule = asked.label or _label(table, sides, columns, asked), None
    if label == "none":
        label = None
    else:
        table, rule = with_rule(table, label, sides, asked)
    numbers, telling = _without_answers(table, numbers, label, rule)
    roles = Roles(
        None, {_kind(table, numbers): numbers}, label, rule, asked.rater or _person(table), asked.weight,
        tie_column(table, asked, label, rule), asked.pair_id or named(table, IDS), words=words,
        said=_said(sides, numbers, label, rule),
        ignored=_neither(table, sides) | _no_features(table) | dict.fromkeys(telling, TELLING),
    )  # fmt: skip
    return Mapped(NAME, table, roles, reads=("tie",) if label is None else OF_LABELS)


def _without_answers(
    table: Table, numbers: dict[str, tuple[str, str]], label: str | None, rule: Rule | None
) -> tuple[dict[str, tuple[str, str]], list[str]]:
    """The features without columns that say who won, and those columns.

    **Raises:** ValueError where no feature is left.
    """
    ways = [] if rule is None else [rule.value(cell) for cell in table.cells(label)]
    telling = [
        name
        for what, pair in numbers.items()
        if tell_who_won(table, pair, ways) or count_votes(table, what, pair, ways)
        for name in pair
    ]
    left = {name: pair for name, pair in numbers.items() if pair[0] not in telling}
    if not left:
        texts = _texts(table)
        answers = texts and (
            f": if {texts[0]} and {texts[1]} are answers, name them by --chosen and --rejected, with --label {label}"
        )
        raise ValueError(
            f"the two options differ in no column but those that say which one was chosen ({', '.join(telling[:2])})"
            f"{answers or ''}"
        )
    return left, telling


def _no_features(table: Table) -> dict[str, str]:
    """Why columns of numbers for each side are no features, by their names."""
    matches = {name: AFTER.match(name.strip()) or BEFORE.match(name.strip()) for name in table.names}
    return {
        name: f"{match['stem']} may be an id, a place, a time or the answer: call it otherwise if it is a feature"
        for name, match in matches.items()
        if match
        and mostly_numbers(table.some(name))
        and (is_no_feature(match["stem"]) or name_things(table, match["stem"], (name,)))
    }


def _neither(table: Table, sides: tuple[str, str]) -> dict[str, str]:
    """Why columns of both sides are no features whose cells, such as dates, are neither numbers nor a few words."""
    tokens = {side.removeprefix("option ") for side in sides}
    names = (of[token] for of in _sided(table).values() if {*of} == tokens for token in of)
    others = (
        name
        for name in names
        if not mostly_numbers(table.some(name)) and not holds_numbers(table.first(name))
    )
    return {
        name: f"holds {shown(table.first(name))} and the like, neither numbers nor a few words: written as a number it "
        "is a feature"
        for name in others
    }


def things_of(table: Table) -> list[str]:
    """The columns that say which thing stood on either side, of the first two that do."""
    kinds = (
        [of[token] for token in pair]
        for (_, stem), of in _sided(table).items()
        for pair in TOKENS
        if {*of} == {*pair} and _numbers(table, of) and _name_things(table, stem, of)
    )
    return next(kinds, [])


def _kind(table: Table, numbers: dict[str, tuple[str, str]]) -> str:
    (first, _), *_ = numbers.values()
    return "embeddings" if holds_numbers(table.first(first)) else "numeric"


def _said(
    sides: tuple[str, str], numbers: dict[str, tuple[str, str]], label: str | None, rule: Rule | None
) -> dict[str, str]:
    first, second = (
        ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
        for names in zip(*numbers.values(), strict=True)
    )
    won = f"none: {sides[0]} won in every row" if rule is None else f"{label}: {rule.says}"
    return {"chosen": f"the side with {first}, or the one with {second}", "label": won}


def _person(table: Table) -> str | None:
    """The column of raters, or one called as people who choose are, if the rows of each of several stand together under
    a number or a code; words may be topics."""
    lower = by_plain_name(table)
    people = (lower[name] for name in PEOPLE if name in lower and name not in IDS)
    return rater_named(table) or next((name for name in people if _stand_together(table.cells(name))), None)


def _stand_together(cells: list) -> bool:
    codes = all(any(c.isdigit() for c in str(cell)) for cell in cells if not is_missing(cell))
    cells = [repr(cell) for cell in cells]
    people = {*cells}
    return codes and 1 < len(people) <= len(cells) / 2 and len([*itertools.groupby(cells)]) == len(people)


def _check_that_one_was_wanted(
    table: Table, label: str | None, sides: tuple[str, str], asked: Columns
) -> None:
    """**Raises:** ValueError for labels of neither option, which a file of answers has for ties and one of choices for
    what nobody wanted.
    """
    told = asked.tie_is is not None or asked.scale is not None or asked.first_is is not None
    if told or label not in table.columns:
        return
    values = {plain_cell(cell) for cell in table.cells(label) if cell is not None and cell != ""}
    values = {value for value in values if value == value}  # NaN is no label
    named = {plain_cell(side.removeprefix("option ")) for side in sides}
    neither = values & NEITHER
    if named <= values and named <= {0.0, 1.0, 2.0}:
        neither = neither or values - named
    if neither:
        one = min(neither, key=str)
        value = f"{one:g}" if isinstance(one, float) else one
        raise ValueError(
            f"column {label} holds {value} beside the two options: leave those rows out if neither was wanted there, "
            f"or say by --tie-is {value} that both were liked as well"
        )


def _check_marks(table: Table, sides: tuple[str, str]) -> None:
    """**Raises:** ValueError for numbers with marks, which would be no features."""
    tokens = {side.removeprefix("option ") for side in sides}
    columns = (of[token] for of in _sided(table).values() if tokens <= {*of} for token in sorted(tokens))
    for name in columns:
        if are_marked(table.cells(name)):
            raise ValueError(marked(table, name))


def _check_texts(table: Table, sides: tuple[str, str], numbers: list[str], asked: Columns) -> None:
    """**Raises:** ValueError for sentences of both sides, which may be what was compared, if no label is named."""
    if asked.label is not None:
        return
    tokens = [side.removeprefix("option ") for side in sides]
    for of in (of for of in _sided(table).values() if {*of} == {*tokens}):
        names = [of[token] for token in tokens]
        if all(_holds_sentences(table, name) for name in names):
            label = named(table, (*LABELS, "chosen")) or "NAME"
            raise ValueError(
                f"{names[0]} and {names[1]} hold texts beside the numbers of {', '.join(numbers[:3])}: give --chosen "
                f"{names[0]} --rejected {names[1]} --label {label} if the texts were compared, or --label {label} "
                "alone if the numbers describe what was"
            )


def _holds_sentences(table: Table, name: str) -> bool:
    """Whether most of a column's cells are texts of several words, and few come again."""
    cells = [cell for cell in table.some(name) if not is_missing(cell)]
    texts = {cell for cell in cells if isinstance(cell, str) and len(cell.split()) >= FEWEST_WORDS}
    return 2 * len(texts) > len(cells)


def _more(table: Table, columns: list[str]) -> str:
    """What to do where one side has more of what people did."""
    stem = next((match["stem"] for at in (AFTER, BEFORE) if (match := at.match(columns[0].strip()))), "")
    if not VOTES.match(stem):
        return ""
    return f"; if the side with more {stem} won, write into a column winner which one that was"


def _texts(table: Table) -> list[str]:
    """The columns of both sides that hold texts, of which the names say nothing."""
    kinds = (of for of in _sided(table).values() if {*of} in [{*pair} for pair in TOKENS])
    columns = (sorted(of.values()) for of in kinds)
    return next((names for names in columns if all(_holds_texts(table, name) for name in names)), [])


def _holds_texts(table: Table, name: str) -> bool:
    return holds_texts(table.first(name)) and not mostly_numbers(table.some(name))


def _label(table: Table, sides: tuple[str, str], columns: list[str], asked: Columns) -> str:
    if named(table, (*LABELS, "chosen")) is None:
        models = models_of(table, sides)
        rated = f"; robust-rlhf leaderboard rates what {models[0]} and {models[1]} name" if models else ""
        raise ValueError(
            f"{table.path} has {columns[0]} and {columns[1]}, but no label{perhaps(table, sides)}: name its column "
            f"by --label, or say by --label none that {sides[0]} always won{_more(table, columns)}{rated}."
        )
    return find_label(table, sides, asked, ("chosen",) if "chosen" in table.columns else ())


def _found(
    table: Table,
) -> tuple[tuple[str, str], dict[str, tuple[str, str]], dict[str, tuple[str, str]]] | None:
    """What the two sides are called, {feature: its columns} of numbers, and of words; None where features of numbers
    have other tokens, or three.
    """
    sided = _sided(table)
    pairs = {
        key: tokens
        for key, tokens in sided.items()
        if len(tokens) > 1 and _numbers(table, tokens) and not _name_things(table, key[1], tokens)
    }
    kinds = {tuple(sorted(tokens)) for tokens in pairs.values()}
    sides = next((pair for pair in TOKENS if kinds == {tuple(sorted(pair))}), None)
    if sides is None or len({place for place, _ in pairs}) > 1:
        return None
    (place, _), *_ = pairs
    words = {
        (where, stem): tokens
        for (where, stem), tokens in sided.items()
        if where == place and set(tokens) == {*sides} and (where, stem) not in pairs and _words(table, tokens)
    }
    embedded = all(holds_numbers(table.first(name)) for tokens in pairs.values() for name in tokens.values())
    few = sides[0].isdigit() and len(pairs) + len(words) < FEWEST_NUMBERED and not embedded
    if few and not _are_counted(table, sides):
        return None
    numbers, of_words = (
        {stem: (tokens[sides[0]], tokens[sides[1]]) for (_, stem), tokens in kind.items()}
        for kind in (pairs, words)
    )
    return (f"option {sides[0]}", f"option {sides[1]}"), numbers, of_words


def _are_counted(table: Table, sides: tuple[str, str]) -> bool:
    """Whether a column that is called after a choice holds the numbers of both sides, and nothing else but ties."""
    label = named(table, CHOICES)
    said = set() if label is None else {word(cell) for cell in table.some(label) if not is_missing(cell)}
    return said - TIE == {*sides}


def in_the_way(table: Table) -> tuple[list[str], list[str]] | None:
    """(columns of numbers of two sides, those of more sides beside them without which they would be read)."""
    pairs = [tokens for tokens in _sided(table).values() if len(tokens) > 1 and _numbers(table, tokens)]
    two, more = (
        [name for tokens in pairs if (len(tokens) > 2) == many for name in tokens.values()]
        for many in (False, True)
    )
    left = {name: column for name, column in table.columns.items() if name not in more}
    found = more and named(table, (*LABELS, "chosen")) in left
    return (two, more) if found and _found(dataclasses.replace(table, columns=left)) is not None else None


def _sided(table: Table) -> dict[tuple[str, str], dict[str, str]]:
    """{(where the token stands, feature): {token: column}}."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for name in exact_last(table):
        for place, pattern in (("after", AFTER), ("before", BEFORE)):
            match = pattern.match(name.strip())
            if match and not is_no_feature(match["stem"]):
                found.setdefault((place, match["stem"]), {})[match["token"].casefold()] = name
    return found


def _numbers(table: Table, tokens: dict[str, str]) -> bool:
    return all(
        mostly_numbers(table.some(name)) or holds_numbers(table.first(name)) for name in tokens.values()
    )


def _name_things(table: Table, stem: str, tokens: dict[str, str]) -> bool:
    names = [*tokens.values()]
    return not any(holds_numbers(table.first(name)) for name in names) and name_things(table, stem, names)


def _words(table: Table, tokens: dict[str, str]) -> bool:
    return are_words([cell for name in tokens.values() for cell in table.cells(name)])
