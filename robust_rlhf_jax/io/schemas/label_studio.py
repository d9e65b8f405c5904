"""Label Studio's comparisons, pairwise or as choices between sides, as JSON, JSON-MIN or CSV."""

import itertools
from collections.abc import Iterable
from typing import Any

from ..columns import Columns
from ..labels import Rule, is_missing, word_rule
from ..table import Table
from .base import Judged, Mapped, has, inner_table, of_rows, records, structured
from .sides import PROMPTS, open_sides

NAME = "Label Studio"
ORDER = 20
ANY_LABEL = True
# It reads a table whose sides a caller names.
OWN_SIDES = True
WAYS = {"left": 1.0, "right": -1.0, "tie": 0.0, "equal": 0.0, "none": 0.0}


def recognise(table: Table) -> bool:
    if has(table, "data", "annotations"):
        if not isinstance(structured(table.first("data")), dict):
            return False
        rule = _rule(inner_table(table, "data"))
        # The first tasks may be skipped ones.
        return any(_results(records(cell), rule) for cell in table.some("annotations"))
    return bool(_selected_columns(table)) and len(open_sides(table)) == 2


def map(table: Table, asked: Columns) -> Mapped:
    """`left` is the first of the two texts, as the columns are called; `completed_by` or `annotator` is the rater.

    **Raises:** ValueError where several questions compare, or it is not clear which texts.
    """
    return _map_nested(table, asked) if has(table, "data", "annotations") else _map_flat(table, asked)


def _map_nested(table: Table, asked: Columns) -> Mapped:
    inner = inner_table(table, "data")
    sides = _two(inner, asked, table)
    prompt = asked.prompt or next((n for n in PROMPTS if has(inner, n) and n not in sides), None)
    told = [_results(records(cell), word_rule(sides)) for cell in table.cells("annotations")]
    question = only_question(_questions(told, asked), asked)
    judged = [[(who, way) for name, who, way in results if name == question] for results in told]
    # A column that is asked for may be in no record.
    cells = zip(
        *(inner.cells(n if n in inner.columns else None) for n in (prompt, *sides)), judged, strict=True
    )
    rows = (
        (row, asked_for, [Judged(first, second, way, who) for who, way in results])
        for row, (asked_for, first, second, results) in enumerate(cells)
    )
    said = {"prompt": f"{prompt} in data", "chosen": f"{sides[0]} (left) or {sides[1]} (right) in data",
            "label": f"{question} in annotations", "rater": "completed_by"}  # fmt: skip
    lost = sum(not results for results in judged)
    notes = (f"{lost} tasks have no annotation that compares, and make no pair.",) if lost else ()
    return of_rows(table, NAME, rows, ("annotations", "data"), said, asked, notes=notes)


def _map_flat(table: Table, asked: Columns) -> Mapped:
    column = only_question(_selected_columns(table), asked)
    sides = _two(table, asked, table)
    prompt = asked.prompt or next((n for n in PROMPTS if has(table, n) and n not in sides), None)
    who = next((n for n in ("annotator", "completed_by") if has(table, n)), None)
    cells = zip(*(table.cells(n) for n in (column, prompt, *sides, who)), strict=True)

    def rows():
        for row, (told, asked_for, first, second, person) in enumerate(cells):
            way, rater = _way(told), None if person is None else str(name_of(person))
            unknown = f"holds {told!r}, neither left nor right"
            yield row, asked_for, unknown if way is None else [Judged(first, second, way, rater)]

    said = {"chosen": f"{sides[0]} (left) or {sides[1]} (right)", "label": column}
    said |= {"rater": who} if who else {}
    used = (column, *sides, prompt, who)
    # One task is judged by several annotators, a row each.
    ids = table.cells("id") if has(table, "id") else list(range(table.n_rows))
    return of_rows(table, NAME, rows(), used, said, asked, groups=[str(i) for i in ids], ids="id")


def only_question(questions: Iterable[str], asked: Columns) -> str:
    """The question that compares.

    **Raises:** ValueError for several.
    """
    listed = list(questions)
    if asked.label in listed:
        return asked.label
    if len(listed) != 1:
        raise ValueError(f"the questions {', '.join(listed)} all compare the sides: name one by --label")
    return listed[0]


def _rule(inner: Table) -> Rule | None:
    """How a choice between sides is read, where it is clear which ones those are."""
    found = open_sides(inner)
    return word_rule((found[0], found[1])) if len(found) == 2 else None


def _results(annotations: list[dict], rule: Rule | None) -> list[tuple[str, str, float]]:
    """(question, rater, way) of the annotations that compare two things."""
    found = []
    for number, annotation in enumerate(annotations):
        if annotation.get("was_cancelled"):
            continue
        for result in annotation.get("result") or []:
            way = _way_of(result, rule) if isinstance(result, dict) else None
            who = annotation.get("completed_by")
            if way is not None:
                person = str(name_of(who)) if who is not None else f"annotator {number + 1}"
                found.append((str(result.get("from_name")), person, way))
    return found


def _questions(told: list[list[tuple[str, str, float]]], asked: Columns) -> list[str]:
    """The questions that name a side somewhere, and the one asked for; all if none does. "none" may be of anything."""
    ways: dict[str, list[float]] = {}
    for name, _, way in itertools.chain(*told):
        ways.setdefault(name, []).append(way)
    return [name for name, said in ways.items() if any(said) or name == asked.label] or list(ways)


def _way_of(result: dict, rule: Rule | None) -> float | None:
    """Who won by a result, if it compares: pairwise, or a single choice that names a side."""
    value = result.get("value")
    if result.get("type") == "pairwise":
        return _way(value)
    choices = value.get("choices") if isinstance(value, dict) and result.get("type") == "choices" else None
    return rule.value(choices[0]) if rule and isinstance(choices, list) and len(choices) == 1 else None


def _way(cell: Any) -> float | None:
    cell = structured(cell)
    if isinstance(cell, list) and cell:
        cell = cell[0]
    if isinstance(cell, dict):
        cell = cell.get("selected", cell.get("value"))
    return WAYS.get(str(cell).strip().casefold())


def name_of(who: Any) -> Any:
    """An annotator, who is a number, a name, or an object that has one."""
    return who.get("email", who.get("id")) if isinstance(who, dict) else who


def _two(inner: Table, asked: Columns, table: Table) -> tuple[str, str]:
    if asked.chosen is not None and asked.rejected is not None:
        return asked.chosen, asked.rejected
    found = open_sides(inner)
    if len(found) != 2:
        raise ValueError(
            f"{table.path} does not say which texts were left and right ({', '.join(inner.names[:8])}): name them "
            "by --chosen and --rejected."
        )
    return found[0], found[1]


def _selected_columns(table: Table) -> list[str]:
    """The columns of comparisons in JSON-MIN or CSV, beside what Label Studio writes with them."""
    if not any(has(table, name) for name in ("annotation_id", "lead_time", "annotator")):
        return []
    ways = {name: [_way(cell) for cell in table.some(name) if not is_missing(cell)] for name in table.names}
    return [name for name, told in ways.items() if {1.0, -1.0} & {*told} and 2 * told.count(None) < len(told)]
