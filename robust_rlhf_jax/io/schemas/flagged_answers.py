"""One answer a row, several rows a prompt or an id, and a column that is true, or says `chosen`, for the one that was
chosen."""

import dataclasses
from typing import Any, NamedTuple

from ..columns import Columns
from ..labels import is_missing, word, yes_or_no
from ..table import Table
from .answer_columns import FLAGS as OBJECT_FLAGS
from .base import Judged, Mapped, of_rows
from .numbers import mostly_numbers
from .plain import check_asked, prompt_of
from .scored_answers import ANSWER, SETS, map_key, names_options, questions, together
from .sides import (
    CHOSEN_SIDES,
    LABELS,
    by_plain_name,
    chosen_sides,
    holds_texts,
    named,
    open_sides,
    prompt_named,
    with_rater,
)
from .words import are_words

NAME = "chosen answers"
ORDER = 128
FLAGS = (*OBJECT_FLAGS, "if_chosen", "is_winner", "picked")
# Words for the chosen answer and for others; positive and negative are kinds of texts, too.
WON, LOST = ({word(side[k]) for side in CHOSEN_SIDES} - {"positive", "negative"} for k in (0, 1))
# The share of sets of several answers that must have exactly one chosen.
CLEAR = 0.5


class Found(NamedTuple):
    """`sets`: the rows of each set of several answers; `ours`: what names the sets; `person`: whether a rater, too."""

    answer: str
    flag: str
    sets: list[list[int]]
    ours: str
    person: bool


def recognise(table: Table) -> bool:
    return recognise_asked(table, Columns())


def recognise_asked(table: Table, asked: Columns) -> bool:
    """`recognise`, with the columns of the prompt and of the sets as the caller names them."""
    named_by_caller = {asked.prompt, asked.pair_id, asked.rater}
    if chosen_sides(table) or open_sides(table) or not named_by_caller <= {None, *table.names}:
        return False
    return _find(table, asked) is not None and not names_options(table, asked)


def reads_label(table: Table, label: str) -> bool:
    return label == _flag(table) and not names_options(table, Columns(label=label))


def map(table: Table, asked: Columns) -> Mapped:
    """The chosen answer of each set with every different one; the pair is at the row of its first answer.

    **Raises:** ValueError for a column that is asked for and not there.
    """
    check_asked(table, asked)
    found = _find(table, asked) or _find(table, Columns())
    assert found is not None
    prompt = prompt_of(table, asked, (found.answer,))
    prompts, answers, flags = (table.cells(name) for name in (prompt, found.answer, found.flag))
    clear = [(best, rows) for rows in found.sets if (best := _chosen(rows, flags)) is not None]
    pairs = []
    for best, rows in clear:
        for row in rows:
            if answers[row] != answers[best]:
                first, second = min(row, best), max(row, best)
                way = 1.0 if first == best else -1.0
                pairs.append(
                    (first, prompts[first], [Judged(answers[first], answers[second], way, None, second)])
                )
    lost = len(found.sets) - len(clear)
    notes = (f"{lost} sets of answers without exactly one chosen make no pair.",) if lost else ()
    said = {
        "prompt": prompt or "none",
        "chosen": f"the {found.answer} of a {found.ours} with {found.flag}",
        "rejected": "each other one of it",
        "label": f"{found.flag}: true is chosen",
    }
    used = tuple(dict.fromkeys((found.answer, found.flag, prompt, found.ours)))
    first_of = {row: rows[0] for rows in found.sets for row in rows}
    groups = [first_of.get(row, row) for row in range(table.n_rows)]
    asked = with_rater(asked, table) if found.person else asked
    if asked.pair_id == found.ours:  # one of these has as many pairs as other answers
        asked = dataclasses.replace(asked, pair_id=None)
    return of_rows(table, NAME, sorted(pairs, key=lambda pair: pair[0]), used, said, asked, groups, notes)


def _find(table: Table, asked: Columns) -> Found | None:
    """The columns by which most sets of several answers have exactly one that is chosen, the caller's before others."""
    answer, flag = named(table, ANSWER), _flag(table)
    if answer is None or flag is None or not _are_texts(table.cells(answer)):
        return None
    flags = table.cells(flag)
    if any(_is_chosen(cell) is None for cell in table.some(flag)):
        return None
    rater = with_rater(asked, table).rater
    people = None if rater is None else [map_key(cell) for cell in table.cells(rater)]
    rows = [row for row, cell in enumerate(table.cells(answer)) if cell is not None]
    keys = [(name, key, False) for name, key in _keys(table, asked, answer, rows)]
    if people is not None:
        keys += [(name, list(zip(key, people, strict=True)), True) for name, key, _ in keys]
    found = [Found(answer, flag, _several(rows, key), name, person) for name, key, person in keys]
    clear = [one for one in found if _share_clear(one.sets, flags) > CLEAR]
    ours = [one for one in clear if one.ours == asked.pair_id]
    best = max(ours or clear, key=lambda one: _share_clear(one.sets, flags), default=None)
    if best is None:
        return None
    alone = people is not None and all(len({people[row] for row in rows}) == 1 for rows in best.sets)
    return best._replace(person=best.person or alone)


def _flag(table: Table) -> str | None:
    """The column called as flags are, or one called as labels are that holds words for both."""
    lower = by_plain_name(table)
    labels = (lower[name] for name in LABELS if name in lower)
    said = ((name, {word(cell) for cell in table.some(name) if not is_missing(cell)}) for name in labels)
    return named(table, FLAGS) or next((n for n, words in said if words & WON and words & LOST), None)


def _keys(table: Table, asked: Columns, answer: str, rows: list[int]) -> list[tuple[str, list]]:
    """(column, key of each row) of what may name the sets: the prompt, ids within it, and the caller's id."""
    prompt = asked.prompt or prompt_named(table)
    asked_for = {} if prompt is None or prompt == answer else {prompt: questions(table, rows, prompt, answer)}
    asks = asked_for.values()
    ids = [found for name in SETS if (found := named(table, (name,))) not in (None, asked.pair_id)]
    keys = [*asked_for.items()]
    keys += [(n, list(zip([map_key(cell) for cell in table.cells(n)], *asks, strict=True))) for n in ids]
    if asked.pair_id is not None:
        keys.append((asked.pair_id, [map_key(cell) for cell in table.cells(asked.pair_id)]))
    return keys


def _several(rows: list[int], key: list) -> list[list[int]]:
    """The sets of more than one answer."""
    return [group for group in together(rows, key) if len(group) > 1]


def _share_clear(sets: list[list[int]], flags: list) -> float:
    """The share of the sets that have exactly one chosen answer; 0 of none."""
    return sum(_chosen(rows, flags) is not None for rows in sets) / len(sets) if sets else 0.0


def _are_texts(cells: list) -> bool:
    """Whether cells are answers, and no feature of numbers or of a few words."""
    there = [cell for cell in cells if cell is not None]
    return bool(there) and holds_texts(there[0]) and not mostly_numbers(cells) and not are_words(cells)


def _chosen(rows: list[int], flags: list) -> int | None:
    """The row that was chosen, if exactly one was."""
    chosen = [row for row in rows if _is_chosen(flags[row])]
    return chosen[0] if len(chosen) == 1 else None


def _is_chosen(cell: Any) -> bool | None:
    said = word(cell)
    told = True if said in WON else False if said in LOST else yes_or_no(cell)
    return False if is_missing(cell) else told
