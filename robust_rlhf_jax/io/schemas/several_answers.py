"""Several answers in one row, and which is the best, the worst, or in which order they stand: best–worst scaling,
rankings such as `B>C>A`, the number of the best one beside a list.

Which columns: `answer_columns.py`; how cells name answers: `answer_names.py`, and count them: `answer_numbers.py`; what
they say: `answer_judgements.py`. Lists of scores: `rankings.py`.
"""

import dataclasses
import re
from collections.abc import Callable
from typing import Any

from ..columns import Columns
from ..labels import is_missing, number_in, word, word_rule
from ..table import Table
from . import answer_judgements as judgements
from . import plain
from .answer_columns import Found, beside_judgements, find
from .answer_names import beside, repeats_text
from .answer_numbers import counted_from
from .base import Judged, Mapped, of_rows, records
from .plain import check_asked, prompt_of
from .rankings import RANK_LISTS, SCORE_KEYS
from .ranks_and_scores import check_agreement
from .sides import plain_name, with_rater

NAME = "several answers a row"
ORDER = 125
ANY_LABEL = True
# Names of columns that may be of an answer or of a place.
PLACE = re.compile(r"^(?:rank|ranking|place|ranking_position)_?\d+$|^\d+_(?:rank|place)$")


def recognise(table: Table) -> bool:
    return find(table, Columns()) is not None


def recognise_asked(table: Table, asked: Columns) -> bool:
    return find(table, asked) is not None


def map(table: Table, asked: Columns) -> Mapped:
    """The best answer with each other one, each other one with the worst, and of a ranking every two.

    **Raises:** ValueError for numbers that could count from 0 or from 1, or be ranks or answers in order, and for
        scores that ranks contradict.
    """
    found = find(table, asked)
    assert found is not None
    of_object = found.kind == "flags" and asked.label is not None  # a key, and no column
    check_asked(table, dataclasses.replace(asked, label=None) if of_object else asked)
    prompt = prompt_of(table, asked, (*found.answers.columns, *found.columns))
    prompts, answers = table.cells(prompt), found.answers.of(table)
    numbered = _may_be_places(table, found)
    if numbered:
        found = _of_numbers(found, asked)
    if found.kind == "places":
        _check_places(found, asked)
    if found.kind == "order":
        _check_sense(table, found, asked)
    if found.kind == "order" and _of_two_sides(table, found):
        made = plain.map(table, dataclasses.replace(asked, label=found.by[0]))
        return dataclasses.replace(made, by="order")
    scores = beside(table, found.answers, SCORE_KEYS) if found.kind == "ranks" else ()
    if scores:
        by_row = [zip(*(table.cells(name) for name in names), strict=True) for names in (scores, found.by)]
        sets = zip(*by_row, strict=True)
        check_agreement(scores[0], found.by[0], sets, "leave one of the two out")
    judge = _judge(table, found, asked, answers)
    for other in beside_judgements(table, found) if asked.label is None else ():
        _check_beside(table, found, other, answers, judge)

    def rows():
        for row, texts in enumerate(answers):
            judged = judge(row)
            yield row, prompts[row], judged if isinstance(judged, str) else _pairs(texts, judged)

    said = {"chosen": f"{', '.join(found.answers.columns)}, pair by pair", "label": _says(found, asked)}
    used = dict.fromkeys((*found.columns, *found.answers.columns, prompt))
    reads = (
        "tie",
        *(["first_is"] if found.counted else ()),
        *(["ranking"] if numbered or found.kind in ("order", "places") else ()),
    )
    return of_rows(
        table, NAME, rows(), used, said, with_rater(asked, table), reads=reads, by=_by(found, asked)
    )


def _may_be_places(table: Table, found: Found) -> bool:
    """Whether `rank_1` to `rank_4` hold the numbers of all answers in every row, of which some mean something else as
    ranks than as the answers in these places, and no scores tell."""
    plain_names = [plain_name(name) for name in found.by]
    if found.kind != "ranks" or not found.answers.numbered or not PLACE.match(plain_names[0]):
        return False
    if beside(table, found.answers, SCORE_KEYS):
        return False
    numbers = [int(name) for name in found.answers.names]
    rows = [
        [number_in(cell) for cell in row]
        for row in zip(*(table.cells(name) for name in found.by), strict=True)
        if not all(is_missing(cell) for cell in row)
    ]
    if not rows or any(sorted(n for n in row if n is not None) != sorted(numbers) for row in rows):
        return False
    return any(
        row[numbers.index(int(n))] != own for row in rows for own, n in zip(numbers, row, strict=True) if n
    )


def _of_numbers(found: Found, asked: Columns) -> Found:
    """What columns such as `rank_1` hold, as the caller says.

    **Raises:** ValueError where the caller does not say it.
    """
    if asked.ranking is None:
        first, last = found.by[0], found.by[-1]
        raise ValueError(
            f"columns {first} to {last} could hold the rank of each answer or the number of the answer in each place: "
            "say which, by --ranking ranks or --ranking order"
        )
    return found._replace(kind="order") if asked.ranking == "order" else found


def _of_two_sides(table: Table, found: Found) -> bool:
    """Whether a ranking of two answers is written as labels of two sides are, which may say by how much."""
    columns = found.answers.columns
    if len(columns) != 2:
        return False
    rule = word_rule((columns[0], columns[1]))
    return all(rule.value(cell) is not None for cell in table.cells(found.by[0]) if not is_missing(cell))


def _judge(
    table: Table, found: Found, asked: Columns, answers: list[list]
) -> Callable[[int], judgements.Pairs | str]:
    """row -> the pairs of its answers, or why there are none."""
    cells = [table.cells(name) for name in found.columns]
    if found.kind == "flags":
        return lambda row: judgements.by_flags(records(cells[0][row]), found.by[0])
    if found.kind == "ticks":
        return lambda row: judgements.by_ticks([column[row] for column in cells])
    if found.kind in ("ranks", "scores"):
        way = -1.0 if found.kind == "ranks" else 1.0
        return lambda row: judgements.by_numbers([column[row] for column in cells], way)
    if found.kind == "order" and asked.ranking == "ranks":
        return lambda row: judgements.by_ranks(cells[0][row], answers[row])
    if found.kind == "places":
        names = found.answers.called(table, {})
        return lambda row: judgements.by_places(cells[0][row], names[row])
    called = _called(table, found, asked)
    if found.kind == "order" and len(cells) > 1:
        return lambda row: judgements.by_order(
            [column[row] for column in cells if not is_missing(column[row])], called[row]
        )
    if found.kind == "order":
        return lambda row: judgements.by_order(cells[0][row], called[row])
    if found.rejected is not None:
        name = found.rejected
        return lambda row: judgements.by_two(cells[0][row], cells[1][row], called[row], name)
    if found.worst is not None:
        name = found.worst
        return lambda row: judgements.by_best_and_worst(cells[0][row], cells[1][row], called[row], name)
    return lambda row: judgements.by_best(cells[0][row], called[row])


def _check_beside(
    table: Table,
    found: Found,
    other: Found,
    answers: list[list],
    judge: Callable[[int], judgements.Pairs | str],
) -> None:
    """**Raises:** ValueError where two judgements of the answers contradict each other in most rows."""
    try:
        judge_of_other = _judge(table, other, Columns(), answers)
    except ValueError:  # what its numbers count is not known
        return
    agree = []
    for row in range(table.n_rows):
        ours, others = (_ordered(of(row)) for of in (judge, judge_of_other))
        turned = {(j, i) for i, j in others}
        agree += [not ours & turned] if ours & (others | turned) else []
    if 2 * sum(agree) < len(agree):
        names = [", ".join(one.by) for one in (found, other)]
        # None of several columns is the label.
        single = [name for name, one in zip(names, (found, other), strict=True) if len(one.by) == 1]
        choice = f"give --label {single[0]} if that is right" if single else "leave one of the two out"
        raise ValueError(
            f"{names[0]} and {names[1]} both say which answer is the better one, and disagree in most rows: {choice}"
        )


def _ordered(judged: judgements.Pairs | str) -> set[tuple[int, int]]:
    """(the better, the other) of the pairs that are no ties."""
    pairs = [] if isinstance(judged, str) else judged
    return {(i, j) if strength > 0 else (j, i) for i, j, strength in pairs if strength}


def _called(table: Table, found: Found, asked: Columns) -> list[dict[Any, int]]:
    """What the answers of each row are called; by their texts alone where every cell is one."""
    by_text = found.answers.called(table, {}, texts_alone=True)
    cells = [
        (cell, names)
        for name in found.columns
        for cell, names in zip(table.cells(name), by_text, strict=True)
        if not is_missing(cell)
    ]
    if found.kind == "best" and all(repeats_text(cell, names) for cell, names in cells):
        return by_text
    return found.answers.called(table, _numbers(table, found, asked))


def _numbers(table: Table, found: Found, asked: Columns) -> dict[str, int]:
    """`counted_from` the numbers of the file that name no object of a list."""
    cells = [cell for name in found.columns for cell in table.cells(name)]
    if found.kind == "order":
        cells = [who for cell in cells for who in judgements.names_in(cell)]
    known = {name for names in found.answers.keys(table) for name in names}
    numbers = {int(n) for cell in cells if (n := number_in(cell)) is not None and word(cell) not in known}
    many = max((len(row) for row in found.answers.of(table)), default=0)
    return counted_from(found.answers, found.by[0], numbers, many, asked, found.kind == "best")


def _check_places(found: Found, asked: Columns) -> None:
    """**Raises:** ValueError for numbers by answer of which nothing says that 1 is the best."""
    column = found.by[0]
    if asked.ranking == "order" or (asked.ranking is None and plain_name(column) not in RANK_LISTS):
        raise ValueError(
            f"column {column} holds a number for each answer: give --ranking ranks if 1 is the best, or, if the "
            "highest is, write each number into a column of its own, such as score_1"
        )


def _check_sense(table: Table, found: Found, asked: Columns) -> None:
    """**Raises:** ValueError where numbers could be the rank of each answer or the answers in their order."""
    cells = [cell for cell in table.cells(found.by[0]) if not is_missing(cell)]
    numbers = all(number_in(who) is not None for cell in cells for who in judgements.names_in(cell))
    signs = any(judgements.ORDER_SIGNS.search(str(cell)) for cell in cells)
    if asked.ranking is None and numbers and not signs:
        raise ValueError(
            f"column {found.by[0]} could hold the rank of each answer or the answers in their order: say which, by "
            "--ranking ranks or --ranking order"
        )


def _pairs(texts: list, judged: judgements.Pairs) -> list[Judged] | str:
    """The pairs whose answers are there and differ, each in the order of the answers."""
    pairs = []
    for better, other, strength in judged:
        first, second = min(better, other), max(better, other)
        if texts[first] is not None and texts[second] is not None:
            pairs.append(Judged(texts[first], texts[second], strength if first == better else -strength))
    differ = [pair for pair in pairs if pair.first != pair.second]
    return differ if pairs else "holds no two answers that are judged"


def _by(found: Found, asked: Columns) -> str:
    """What says which answer is the better one: `scores`, `ranks`, `order`, or "" for anything else."""
    if found.kind in ("ranks", "places") or (found.kind == "order" and asked.ranking == "ranks"):
        return "ranks"
    return found.kind if found.kind in ("scores", "order") else ""


def _says(found: Found, asked: Columns) -> str:
    by = ", ".join(found.by)
    if found.kind == "best":
        lost = f", {found.rejected} the rejected one" if found.rejected else ""
        lost = f", {found.worst} the worst one" if found.worst else lost
        return f"{by}: names the best answer{lost}"
    ranks = _by(found, asked) == "ranks"
    told = {
        "order": "the best come first",
        "scores": "the highest is the best",
        "flags": "true of the best answer",
        "ticks": "the 1 of them",
    }
    return f"{by}: {'the lowest is the best' if ranks else told[found.kind]}"
