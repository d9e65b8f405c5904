"""Argilla's records, versions 1 and 2: questions answered by several users, as choices, ratings or rankings."""

import re
from typing import Any

from ..columns import Columns
from ..labels import word, word_rule
from ..table import Table
from .base import Judged, Mapped, has, inner_table, of_rows, records, structured
from .rankings import pairs_of
from .sides import PROMPTS, open_sides

NAME = "Argilla"
ORDER = 30
ANY_LABEL = True
RESPONSES = re.compile(r"^(?P<question>.+)\.responses$")


def recognise(table: Table) -> bool:
    return bool(_questions(table)) and len(open_sides(_fields(table))) >= 2


def map(table: Table, asked: Columns) -> Mapped:
    """Answers that users submitted; the fields of a record are its columns.

    **Raises:** ValueError where several questions could be meant.
    """
    fields = _fields(table)
    options = open_sides(fields)
    questions = {
        n: q for n, q in _questions(table).items() if asked.label in (None, n, n.removesuffix(".responses"))
    }
    useful = {n: q for n, q in questions.items() if _compares(q, options)}
    if len(useful) != 1:
        listed = ", ".join(useful or questions)
        raise ValueError(
            f"{table.path} has the questions {listed}: name the one that compares the answers by --label."
        )
    (name, answers), *_ = useful.items()
    prompt = asked.prompt or next((n for n in PROMPTS if n in fields.columns and n not in options), None)
    prompts = fields.cells(prompt)
    texts = list(zip(*(fields.cells(option) for option in options), strict=True))

    def rows():
        for row, given in enumerate(answers):
            judged = [pair for who, value in given for pair in _judged(value, options, texts[row], who)]
            if judged or not given:  # records that nobody has answered yet are none
                yield row, prompts[row], judged
            else:
                yield row, prompts[row], f"holds an answer that names none of {', '.join(options)}"

    lost = sum(not given for given in answers)
    notes = (f"{lost} records have no submitted answer, and make no pair.",) if lost else ()
    said = {
        "chosen": " or ".join(options),
        "label": f"answers to {name.removesuffix('.responses')}",
        "rater": "the users",
    }
    known = (name, *options, prompt, "fields", "responses", f"{name}.users", f"{name}.status")
    used = tuple(n for n in known if n in table.columns)
    return of_rows(table, NAME, rows(), used, said, asked, notes=notes)


def _fields(table: Table) -> Table:
    """The columns, or those in `fields` of records as they are."""
    return inner_table(table, "fields") if has(table, "fields") else table


def _questions(table: Table) -> dict[str, list[list[tuple[str, Any]]]]:
    """{column: for each record the (user, value) of its submitted answers}."""
    found: dict[str, list[list[tuple[str, Any]]]] = {}
    if has(table, "fields", "responses"):
        cells = [structured(cell) for cell in table.cells("responses")]
        names = dict.fromkeys(n for cell in cells if isinstance(cell, dict) for n, v in cell.items() if v)
        return {n: [_answers(cell.get(n)) if isinstance(cell, dict) else [] for cell in cells] for n in names}
    for name in table.names:
        if RESPONSES.match(name):
            parts = (
                name,
                *(n if has(table, n := f"{name}.{part}") else None for part in ("users", "status")),
            )
            found[name] = [_parallel(*cells) for cells in zip(*(table.cells(n) for n in parts), strict=True)]
        elif has(table, f"{name}-suggestion") or _is_version_1(table.first(name)):
            found[name] = [_answers(cell) for cell in table.cells(name)]
    return found


def _is_version_1(cell: Any) -> bool:
    entries = records(cell)
    return bool(entries) and {"user_id", "value", "status"} <= entries[0].keys()


def _answers(cell: Any) -> list[tuple[str, Any]]:
    return [
        (str(e.get("user_id") or f"user {i + 1}"), e.get("value"))
        for i, e in enumerate(records(cell))
        if e.get("status", "submitted") in ("submitted", None) and e.get("value") is not None
    ]


def _parallel(values: Any, users: Any, status: Any) -> list[tuple[str, Any]]:
    values, users, status = (structured(cell) or [] for cell in (values, users, status))
    return [
        (str(users[i]) if i < len(users) else f"user {i + 1}", value)
        for i, value in enumerate(values if isinstance(values, list) else [values])
        if value is not None and (i >= len(status) or status[i] == "submitted")
    ]


def _compares(answers: list[list[tuple[str, Any]]], options: tuple[str, ...]) -> bool:
    texts = tuple("" for _ in options)
    return any(_judged(value, options, texts, "") for given in answers[:200] for _, value in given)


def _judged(value: Any, options: tuple[str, ...], texts: tuple, who: str) -> list[Judged]:
    """The pairs of one answer: a ranking of the options, or a choice between two; [] if it compares nothing."""
    value = structured(value)
    places = _places(value)
    at = {word(option): i for i, option in enumerate(options)}
    if places:
        known = sorted((at[word(name)], place) for name, place in places if word(name) in at)
        if len(known) < 2:
            return []
        made = pairs_of([texts[i] for i, _ in known], [-place for _, place in known])
        return [pair._replace(rater=who) for pair in made]
    if isinstance(value, str) and len(options) == 2:
        way = word_rule((options[0], options[1])).value(value)
        return [] if way is None else [Judged(texts[0], texts[1], way, who)]
    return []


def _places(value: Any) -> list[tuple[str, float]]:
    """(option, place) of a ranking: with ranks (version 1) or in order (version 2)."""
    if isinstance(value, list) and value and all(isinstance(v, str) for v in value):
        return [(name, float(i)) for i, name in enumerate(value)]
    entries = records(value)
    return [
        (str(e["value"]), float(e["rank"]))
        for e in entries
        if {"value", "rank"} <= e.keys() and e["rank"] is not None
    ]
