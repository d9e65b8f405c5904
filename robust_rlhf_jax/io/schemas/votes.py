"""Two open sides and one column with the votes of all raters: a list, also in one text, an object by rater, or a list
of objects."""

import dataclasses
from typing import Any

from robust_rlhf_jax.terminal import counted

from ..columns import Columns
from ..label_rules import rule_for
from ..labels import Rule, is_missing, word, word_rule
from ..table import Table
from .base import OF_LABELS, Mapped, judged_by, of_rows, records, structured
from .lists_in_texts import are_votes, entries, separator_of
from .numbers import is_number
from .plain import prompt_of
from .questions import is_question
from .shown_places import check_places_of_votes
from .sides import IDS, LABELS, RATERS, by_plain_name, chosen_sides, named, open_sides, plain_name, with_rater

NAME = "votes in one column"
ORDER = 110
COLUMNS = (
    "votes", "annotations", "labels", "preferences", "judgments", "judgements", "ratings", "choices",
    "individual_preferences", "all_labels", "raw_labels", "responses_by_rater", "annotators",
)  # fmt: skip
# Two numbers that may name both sides or count their votes, and rows in all of which two raters do not disagree by
# chance.
COUNTS, FEWEST = ({"0", "1"}, {"1", "2"}), 10
# What raters are called of whom a list of two says no more.
PLACES = ["annotator 1", "annotator 2"]
WHO = (*RATERS, "user", "name", "created_by", "author", "email")
WHAT = (
    "label", "preference", "choice", "vote", "winner", "preferred", "overall_pref", "value", "answer", "selected",
    "annotation", "verdict", "judgment", "judgement", "overall_preference", "human_preference", "preferred_response",
    "better_response", "overall",
)  # fmt: skip


def recognise(table: Table) -> bool:
    return _found(table) is not None


def reads_label(table: Table, label: str) -> bool:
    found = _found(table)
    return found is not None and found[0] == label


def map(table: Table, asked: Columns) -> Mapped:
    """A pair for each vote.

    **Raises:** ValueError for numbers of votes by side, for votes that may name places, for answers to several
        questions, and for more or fewer names of raters than votes.
    """
    found = _found(table)
    assert found is not None
    (first, second), (name, separator) = open_sides(table, ())[:2], found
    prompt = prompt_of(table, asked, (first, second))
    prompts = table.cells(prompt)
    votes = [list(_votes(cell, separator)) for cell in table.cells(name)]
    people = _people(table, name, asked.rater, separator)
    votes = _without_questions(votes, name)
    if people is None and _are_of_nobody(votes):
        votes, asked = [[(None, vote) for _, vote in row] for row in votes], with_rater(asked, table)
    if people is not None:
        votes = _with_names(table, votes, name, people, separator)
        asked = dataclasses.replace(asked, rater=None)
    _check_that_none_counts(votes, name, (first, second))
    given = [vote for row in votes for _, vote in row]
    if asked.first_is is None and asked.scale is None:
        check_places_of_votes(table, name, given, (first, second))
        check_places_of_votes(_beside_votes(table, name), name, given, (first, second))
    rule = rule_for(given, name, (first, second), asked)
    cells = zip(prompts, votes, table.cells(first), table.cells(second), strict=True)
    rows = (
        (row, asked_for, judged_by(((who, vote, rule) for who, vote in of_row), a, b) or "holds no vote")
        for row, (asked_for, of_row, a, b) in enumerate(cells)
    )
    said = {
        "chosen": f"{first} or {second}",
        "label": f"votes in {name}: {rule.says}",
    }
    if any(who is not None for row in votes for who, _ in row):
        said["rater"] = people or "as the votes say, or their place"
    used = (name, first, second, prompt, people)
    return of_rows(table, NAME, rows, used, said, asked, ids=named(table, IDS), reads=OF_LABELS)


def _people(table: Table, votes: str, asked: str | None, separator: str | None) -> str | None:
    """The column that lists who gave the votes, as the caller names it, or called after raters: `annotators` beside
    `labels`."""
    listed = entries(table.first(votes), separator)
    if not listed or any(isinstance(entry, dict) for entry in listed):  # they say it themselves
        return None
    names = {rater + end for rater in (*RATERS, "user") for end in ("", "s")}
    columns = [name for name in table.names if plain_name(name) in names] if asked is None else [asked]
    return next((n for n in columns if n != votes and _lists(table, n, separator)), None)


def _lists(table: Table, name: str, separator: str | None) -> bool:
    """Whether a column lists names: of texts some with the separator of the votes in them."""
    first = structured(table.first(name))
    if isinstance(first, list):
        return bool(first)
    return separator is not None and any(separator in str(cell).strip() for cell in table.some(name))


def _with_names(table: Table, votes: list[list], name: str, people: str, separator: str | None) -> list[list]:
    """**Raises:** ValueError for a row with more or fewer names than votes."""
    named_votes = []
    for row, (given, cell) in enumerate(zip(votes, table.cells(people), strict=True)):
        who = entries(cell, separator)
        if given and len(who) != len(given):
            raise ValueError(
                f"row {row + 1} has {counted(len(given), 'vote')} in column {name} and "
                f"{counted(len(who), 'name')} of raters in column {people}: write as many, in the same order"
            )
        said = (None if is_missing(each) else str(each) for each in who)
        named_votes.append([(each, vote) for each, (_, vote) in zip(said, given, strict=False)])
    return named_votes


def _without_questions(votes: list[list], name: str) -> list[list]:
    """The votes of nobody, where what would be their rater is the question that all of them answer.

    **Raises:** ValueError for several questions, which may have several answers.
    """
    asked = dict.fromkeys(who for row in votes for who, _ in row)
    if None in asked or not asked or not all(is_question(who) for who in asked):
        return votes
    if len(asked) > 1:
        raise ValueError(
            f"column {name} holds answers to {len(asked)} questions ({', '.join(list(asked)[:4])}"
            f"{', …' if len(asked) > 4 else ''}): write the answers to the one that says who won into a column of "
            "its own, and give it by --label"
        )
    return [[(None, vote) for _, vote in row] for row in votes]


def _are_of_nobody(votes: list[list]) -> bool:
    """Whether each row has one vote alone, of which its place in a list says nothing of who gave it."""
    return all(len(row) <= 1 for row in votes) and all(who == PLACES[0] for row in votes for who, _ in row)


def _check_that_none_counts(votes: list[list], name: str, sides: tuple[str, str]) -> None:
    """**Raises:** ValueError for an object that counts the votes of each side, which are no labels of raters; raters
    may be called A and B, and say 1 or 2 of sides that are called so; and for lists of two numbers that would be two
    raters of whom each always says the opposite of the other.
    """
    rule, names = word_rule(sides), {word(side) for side in sides}
    opposite = [
        [who for who, _ in row] == PLACES and {word(vote) for _, vote in row} in COUNTS
        for row in votes
        if row
    ]
    said = [(None if who is None else rule.value(who), who, vote) for row in votes for who, vote in row]
    counts = len(opposite) >= FEWEST and all(opposite)
    if not counts and not all(way is not None and is_number(vote) for way, _, vote in said):
        return
    if counts or any(way == 0 or word(who) in names or rule.value(vote) is None for way, who, vote in said):
        raise ValueError(
            f"column {name} counts the votes of each side: write who won most of them into a column of its own"
        )


def _found(table: Table) -> tuple[str, str | None] | None:
    """(the column of votes, what stands between them in texts)."""
    sides = () if chosen_sides(table) else open_sides(table, (*LABELS, *COLUMNS))
    if len(sides) != 2:
        return None
    rule, lower = word_rule((sides[0], sides[1])), by_plain_name(table)
    labels = {lower[name] for name in LABELS if name in lower} - {*sides}
    for name in (name for name in COLUMNS if name in table.columns):
        votes = list(_votes(table.first(name)))
        if not votes or _are_options(table, name, rule, bool(labels - {name})):
            continue
        # Topics, scores of criteria and the like beside a label are no votes.
        if not labels - {name} or (
            any(is_number(v) or rule.value(v) is not None for _, v in votes)
            and not all(who is not None and is_question(who) for who, _ in votes)
        ):
            return name, None
    for name in (lower[n] for n in (*COLUMNS, *LABELS) if n in lower and lower[n] not in sides):
        cells = [] if labels - {name} else table.some(name)
        separator = separator_of(cells, rule)
        if separator is not None or are_votes([entries(cell, None) for cell in cells], rule):
            return name, separator
    return None


def _are_options(table: Table, name: str, rule: Rule, beside_label: bool) -> bool:
    """Whether a list is the same in all rows and has each side once: what raters could choose."""
    cells = [structured(cell) for cell in table.some(name) if not is_missing(cell)]
    first = cells[0] if cells else None
    if not isinstance(first, list) or len(cells) < (2 if beside_label else FEWEST):
        return False
    named = (rule.value(entry) for entry in first if isinstance(entry, str | int | float))
    ways = [way for way in named if way is not None]
    if len(ways) < len(first) or len({str(entry) for entry in first}) < len(first):
        return False
    return min(ways, default=0.0) < 0 < max(ways, default=0.0) and all(cell == first for cell in cells)


def _votes(cell: Any, separator: str | None = None):
    """(rater, vote) of a cell; nothing if it holds no votes."""
    cell = structured(cell) if separator is None else entries(cell, separator)
    plain = isinstance(cell, dict) and all(isinstance(v, str | int | float) for v in cell.values())
    if plain and not {*WHAT} & {plain_name(str(key)) for key in cell}:
        yield from ((str(who), vote) for who, vote in cell.items())
    elif isinstance(cell, list) and all(isinstance(v, str | int | float) for v in cell):
        yield from ((f"annotator {i + 1}", vote) for i, vote in enumerate(cell))
    else:
        for i, entry in enumerate(records(cell)):
            said = {plain_name(str(key)): value for key, value in entry.items() if value is not None}
            what = _answer(said)
            place = f"annotator {i + 1}" if isinstance(cell, list) else None
            who = next((said[k] for k in WHO if k in said), place)
            if isinstance(what, str | int | float):
                yield None if who is None else str(who), what


def _beside_votes(table: Table, name: str) -> Table:
    """What objects of votes hold, a row for each: a key such as `swapped` may say where the sides were shown."""
    found = [entry for cell in table.cells(name) for entry in records(cell)]
    keys = dict.fromkeys(str(key) for entry in found for key in entry if plain_name(str(key)) not in WHAT)
    columns: dict[str, list] = {key: [entry.get(key) for entry in found] for key in keys}
    return Table(table.source, columns, len(found))


def _answer(said: dict) -> Any:
    """What the first of `WHAT` says, also in objects within: {"annotation": {"preference": "A"}}."""
    what = next((said[k] for k in WHAT if k in said), None)
    inner = structured(what)
    if isinstance(inner, dict):
        return _answer({plain_name(str(key)): value for key, value in inner.items() if value is not None})
    return what
