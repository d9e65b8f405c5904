"""Label Studio's rankings of the items of a list (the tag `Ranker`), as JSON, JSON-MIN or CSV.

Source: labelstud.io/tags/ranker: the result is an object whose only key is the tag's name, and whose value lists the
ids of the items from the top. Sorted into buckets, whose names are the keys, items are no ranking.
"""

from collections.abc import Iterable
from typing import Any

from ..columns import Columns
from ..labels import is_missing
from ..table import Table
from .base import Judged, Mapped, has, inner_table, of_rows, records, structured
from .label_studio import name_of, only_question
from .plain import check_asked, prompt_of
from .rankings import ANSWER_KEYS, pairs_of

NAME = "Label Studio's rankings"
ORDER = 31
ANY_LABEL = True
TEXTS = ("body", "html", *ANSWER_KEYS, "title")
# What the list that items were taken from is called among buckets.
REST = "_"


def recognise(table: Table) -> bool:
    if not has(table, "data", "annotations"):
        return any(has(table, name) for name in ("annotation_id", "lead_time", "annotator")) and any(
            _order(cell) is not None for name in table.names for cell in table.some(name)
        )
    if not isinstance(structured(table.first("data")), dict):
        return False
    return any(_results(cell) for cell in table.some("annotations"))


def map(table: Table, asked: Columns) -> Mapped:
    """All pairs of the items of each ranking, the upper one the better; its annotator is the rater.

    **Raises:** ValueError where several questions rank, for buckets, and where no list has two items
        that are ranked.
    """
    nested = has(table, "data", "annotations")
    shown = inner_table(table, "data") if nested else table
    if nested:
        told = [_results(cell) for cell in table.cells("annotations")]
    else:
        check_asked(table, asked)
        told = _of_columns(table)
    question = only_question(dict.fromkeys(name for row in told for name, *_ in row), asked)
    rankings = [[(who, order) for name, who, order in row if name == question] for row in told]
    _check_buckets(question, [order for row in rankings for _, order in row])
    items = _items(shown, rankings)
    prompt = asked.prompt if asked.prompt in shown.columns else prompt_of(shown, Columns(), (items,))
    cells = zip(shown.cells(prompt), shown.cells(items), rankings, strict=True)
    rows = [(row, asks, list(_pairs(listed, ranked))) for row, (asks, listed, ranked) in enumerate(cells)]
    if not any(pairs for _, _, pairs in rows):
        raise ValueError(f"question {question} ranks no two items whose texts {items} has")
    inside = " in data" if nested else ""
    who = (
        "completed_by" if nested else next((n for n in ("annotator", "completed_by") if has(table, n)), None)
    )
    said = {"chosen": f"{items}{inside}, pair by pair", "label": f"{question}: the best come first"}
    said |= {"prompt": f"{prompt}{inside}"} if prompt else {}
    said |= {"rater": who} if who else {}
    lost = sum(not ranked for ranked in rankings)
    notes = (f"{lost} tasks have no ranking, and make no pair.",) if lost else ()
    used = ("annotations", "data") if nested else (question, items, prompt, who)
    groups = [str(cell) for cell in table.cells("id")] if not nested and has(table, "id") else None
    return of_rows(table, NAME, rows, used, said, asked, groups, notes, by="order")


def _results(cell: Any) -> list[tuple[str, str, dict]]:
    """(question, rater, {bucket: ids}) of the annotations that rank."""
    found = []
    for number, annotation in enumerate(records(cell)):
        results = [] if annotation.get("was_cancelled") else annotation.get("result") or []
        who = annotation.get("completed_by")
        rater = f"annotator {number + 1}" if who is None else str(name_of(who))
        for result in results:
            of_ranker = isinstance(result, dict) and result.get("type") == "ranker"
            order = _order(result.get("value")) if of_ranker else None
            if order is not None:
                found.append((str(result.get("from_name")), rater, order))
    return found


def _of_columns(table: Table) -> list[list[tuple[str, str | None, dict]]]:
    """The same of a row for each annotation, whose columns are called after the questions."""
    found: list[list] = [[] for _ in range(table.n_rows)]
    who = next((n for n in ("annotator", "completed_by") if has(table, n)), None)
    people = [None if is_missing(cell) else str(name_of(structured(cell))) for cell in table.cells(who)]
    for name in table.names:
        if any(_order(cell) is not None for cell in table.some(name)):
            for row, cell in enumerate(table.cells(name)):
                order = _order(cell)
                if order is not None:
                    found[row].append((name, people[row], order))
    return found


def _order(cell: Any) -> dict | None:
    """{name of the question, or of each bucket: ids} of a result's value."""
    cell = structured(cell)
    cell = cell[0] if isinstance(cell, list) and len(cell) == 1 else cell
    found = cell.get("ranker") if isinstance(cell, dict) else None
    found = {"": found} if isinstance(found, list) else found
    if not isinstance(found, dict) or not found or not all(isinstance(ids, list) for ids in found.values()):
        return None
    return {name: [str(one) for one in ids] for name, ids in found.items()}


def _check_buckets(question: str, orders: list[dict]) -> None:
    """**Raises:** ValueError for items that are sorted into buckets, which may be of anything."""
    buckets = [*dict.fromkeys(name for order in orders for name in order if name not in ("", question))]
    if buckets:
        named = ", ".join(name for name in buckets if name != REST) or REST
        raise ValueError(
            f"question {question} sorts the items into buckets ({named}), and nothing says which of them is better: "
            "write a pair a row as chosen and rejected, or lists of answers beside lists of their scores"
        )


def _items(shown: Table, rankings: list[list]) -> str:
    """The column of the lists that were ranked.

    **Raises:** ValueError where none has the ids.
    """
    ids = next(({*one} for row in rankings for _, order in row for one in order.values() if one), set())
    for name in shown.names:
        if any(ids & _texts(cell).keys() for cell in shown.some(name)):
            return name
    some = ", ".join(sorted(ids)[:3])
    raise ValueError(
        f"no column lists the items that were ranked ({some}) with their id and a text, as Label Studio's tag List does"
    )


def _texts(cell: Any) -> dict[str, Any]:
    """{id: text} of a list of items."""
    listed = [entry for entry in records(cell) if "id" in entry]
    key = next((key for key in TEXTS if any(not is_missing(entry.get(key)) for entry in listed)), None)
    return {} if key is None else {str(entry["id"]): entry.get(key) for entry in listed}


def _pairs(listed: Any, ranked: list[tuple[str | None, dict]]) -> Iterable[Judged]:
    texts = _texts(listed)
    for who, order in ranked:
        known = [
            one for ids in order.values() for one in dict.fromkeys(ids) if not is_missing(texts.get(one))
        ]
        shown = [one for one in texts if one in known]
        places = [-float(known.index(one)) for one in shown]
        for pair in pairs_of([texts[one] for one in shown], places) if shown else ():
            if pair.first != pair.second:
                yield pair._replace(rater=who)
