"""Several answers in one row, and which is the best, the worst, or in which order they stand: best–worst scaling,
rankings such as `B>C>A`, the number of the best one beside a list.

How cells name answers: `answer_names.py`; what they say: `answer_judgements.py`. Lists of scores: `rankings.py`.
"""

import dataclasses
import itertools
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from ..columns import Columns
from ..label_rules import GRADED
from ..labels import TIE, is_missing, number_in, word, word_rule
from ..table import Table
from . import answer_judgements as judgements
from . import plain
from .answer_names import Answers, answers_of, beside, repeats_text, which
from .answer_numbers import counted_from
from .base import Judged, Mapped, of_rows, records
from .choice_names import CHOSEN
from .numbers import is_number, mostly_numbers
from .plain import check_asked, prompt_of
from .rankings import RANK_KEYS, SCORE_KEYS
from .sides import (
    KEYS_OF_TESTS,
    LABELS,
    NOT_ANSWERS,
    chosen_sides,
    holds_texts,
    named,
    plain_name,
    with_rater,
)

NAME = "several answers a row"
ORDER = 125
ANY_LABEL = True
RANKINGS = ("ranking", "rankings", "rank", "ranked", "ranks", "rank_order", "preference_order", "order")
# A column called so may hold the order in which answers were shown.
DOUBTFUL = ("order",)
BEST = (
    "best", "most", "top", "winner", "most_preferred", "favourite", "favorite", *CHOSEN,
    *(name for name in LABELS if name not in KEYS_OF_TESTS and not GRADED.search(name)),
)  # fmt: skip
WORST = ("worst", "least", "bottom", "least_preferred")
REJECTED = ("rejected", "dispreferred", "loser", "refused")
# Answers of models, of which a label says more than which one is right.
GENERATED = re.compile("response|completion|generation|candidate|output|repl(?:y|ies)|summar|sample", re.I)
# What may follow the name of such a column: best_response, best_idx, best_response_id.
ENDS = ("", "response", "answer", "idx", "index", "id", "number", "position", "response_id", "response_idx")
FLAGS = (
    "chosen",
    "is_chosen",
    "selected",
    "is_selected",
    "best",
    "is_best",
    "preferred",
    "is_preferred",
    "winner",
)
FLAG_WORDS = ("true", "false", "0", "1", "yes", "no")


class Found(NamedTuple):
    """`kind`: "best", "order", "ranks", "scores" or "flags"; `by`: the columns of it, or the key of the flags;
    `worst`: the column of the worst answer; `rejected`: of the only one that the best was preferred to.
    """

    answers: Answers
    kind: str
    by: tuple[str, ...]
    worst: str | None = None
    rejected: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that judge the answers."""
        by = self.answers.columns if self.kind == "flags" else self.by
        return (*by, *(name for name in (self.rejected or self.worst,) if name is not None))

    @property
    def counted(self) -> bool:
        """Whether numbers in cells count the answers."""
        return self.kind in ("best", "order")


def recognise(table: Table) -> bool:
    return find(table, Columns()) is not None


def recognise_asked(table: Table, asked: Columns) -> bool:
    return find(table, asked) is not None


def map(table: Table, asked: Columns) -> Mapped:
    """The best answer with each other one, each other one with the worst, and of a ranking every two.

    **Raises:** ValueError for numbers that could count from 0 or from 1, or be ranks or answers in order.
    """
    check_asked(table, asked)
    found = find(table, asked)
    assert found is not None
    prompt = prompt_of(table, asked, (*found.answers.columns, *found.columns))
    prompts, answers = table.cells(prompt), found.answers.of(table)
    if found.kind == "order":
        _check_sense(table, found, asked)
    if found.kind == "order" and _of_two_sides(table, found):
        return plain.map(table, dataclasses.replace(asked, label=found.by[0]))
    judge = _judge(table, found, asked, answers)

    def rows():
        for row, texts in enumerate(answers):
            judged = judge(row)
            yield row, prompts[row], judged if isinstance(judged, str) else _pairs(texts, judged)

    said = {"chosen": f"{', '.join(found.answers.columns)}, pair by pair", "label": _says(found, asked)}
    used = dict.fromkeys((*found.columns, *found.answers.columns, prompt))
    reads = ("tie", *(["first_is"] if found.counted else ()), *(["ranking"] if found.kind == "order" else ()))
    return of_rows(table, NAME, rows(), used, said, with_rater(asked, table), reads=reads)


def find(table: Table, asked: Columns) -> Found | None:
    """The answers of a row, and the columns that judge them."""
    sides = chosen_sides(table)
    answers = answers_of(table, fewest=2)
    if answers is None:
        return None
    if sides is not None and all(holds_texts(table.first(side)) for side in sides):
        return _of_named_sides(table, answers, sides, asked)
    if _are_options(table, answers) or _are_numbers(table, answers, asked):
        return None
    two = not answers.listed and len(answers.columns) == 2
    if two and (asked.label is not None or named(table, LABELS) is not None):
        return None
    ranking = _ranking(table, answers, asked)
    if ranking is not None or two or asked.label == "none":
        return ranking
    kinds = (_flagged, _of_best, _numbered)
    return next((found for kind in kinds if (found := kind(table, answers, asked)) is not None), None)


def _of_named_sides(table: Table, answers: Answers, sides: tuple[str, str], asked: Columns) -> Found | None:
    """Columns called chosen and rejected, say, that hold no texts but names or numbers of answers beside them."""
    if set(sides) & set(answers.columns) or asked.label not in (None, sides[0]):
        return None
    names = {name: i for name, i in _names(table, answers).items() if isinstance(name, str)}
    cells = [_some(table, side) for side in sides]
    numbers = all(number_in(cell) is not None for column in cells for cell in column)
    named_all = all(
        number_in(c) is not None or which(c, names) is not None for column in cells for c in column
    )
    differ = all(word(a) != word(b) for a, b in zip(*cells, strict=False))
    # Two sides that "A" and "B" name are read as columns.
    if not (all(cells) and named_all and differ) or (len(answers.columns) == 2 and not numbers):
        return None
    worst = sides[1] if "worst" in sides[1].casefold() else None
    return Found(answers, "best", (sides[0],), worst, None if worst else sides[1])


def _are_options(table: Table, answers: Answers) -> bool:
    """Whether answers are but the names of options that columns of numbers describe: a choice set, not texts."""
    if answers.listed:
        return False
    stems = {plain_name(name.removesuffix(answers.names[0])).strip("_") for name in table.names}
    columns = (beside(table, answers, (stem,)) for stem in stems if stem and not NOT_ANSWERS.search(stem))
    numbers = any(names and all(is_number(table.first(name)) for name in names) for names in columns)
    texts = [text for name in answers.columns for text in _some(table, name)]
    return numbers and 2 * len({str(text) for text in texts}) <= len(texts)


def _are_numbers(table: Table, answers: Answers, asked: Columns) -> bool:
    """Whether columns hold numbers that answer no question: of a table, `a`, `b` and `c` may be anything."""
    of_numbers = not answers.listed and all(mostly_numbers(table.some(name)) for name in answers.columns)
    return of_numbers and prompt_of(table, asked, answers.columns) is None


def _of_two_sides(table: Table, found: Found) -> bool:
    """Whether a ranking of two answers is written as labels of two sides are, which may say by how much."""
    columns = found.answers.columns
    if len(columns) != 2:
        return False
    rule = word_rule((columns[0], columns[1]))
    return all(rule.value(cell) is not None for cell in table.cells(found.by[0]) if not is_missing(cell))


def _ranking(table: Table, answers: Answers, asked: Columns) -> Found | None:
    """A column whose first cells are rankings of two or more answers."""
    by = asked.label or named(table, RANKINGS)
    if by not in table.columns or by in answers.columns:
        return None
    cells = _some(table, by)
    names = _names(table, answers)
    rankings = [[*itertools.chain(*judgements.ranking_in(cell))] for cell in cells]
    known = all(
        len(ranking) > 1 and all(number_in(who) is not None or which(who, names) is not None for who in ranking)
        for ranking in rankings
    )  # fmt: skip
    signs = any(judgements.ORDER_SIGNS.search(str(cell)) for cell in cells)
    clear = asked.label is not None or by.casefold() not in DOUBTFUL or signs
    return Found(answers, "order", (by,)) if rankings and known and clear else None


def _flagged(table: Table, answers: Answers, asked: Columns) -> Found | None:
    """A key of the objects in lists that is true for the best one."""
    entries = records(table.first(answers.columns[0])) if answers.listed else []
    keys = FLAGS if asked.label is None else (asked.label,)
    flags = (key for key in keys if entries and all(word(entry.get(key)) in FLAG_WORDS for entry in entries))
    return next((Found(answers, "flags", (key,)) for key in flags), None)


def _of_best(table: Table, answers: Answers, asked: Columns) -> Found | None:
    """A column whose first cells name an answer, and one of the worst answer or of the rejected one beside."""
    best = asked.label or _column(table, BEST)
    if (
        best not in table.columns
        or best in answers.columns
        or (asked.label is None and _of_test(best, answers))
    ):
        return None
    worst, rejected = (
        name if name != best else None for name in (_column(table, WORST), _column(table, REJECTED))
    )
    found = Found(answers, "best", (best,), None if rejected else worst, rejected)
    names = _names(table, answers)
    cells = [cell for name in found.columns for cell in _some(table, name)]
    by_name = {name: i for name, i in names.items() if isinstance(name, str)}
    known = [
        number_in(c) is not None or repeats_text(c, names) or which(c, by_name) is not None or word(c) in TIE
        for c in cells
    ]
    return found if cells and all(known) else None


def _of_test(best: str, answers: Answers) -> bool:
    """Whether `label` may be the right one of several choices, or a class: that is no preference."""
    generated = any(GENERATED.search(name) for name in answers.columns)
    return plain_name(best) in ("label", "labels") and not generated


def _numbered(table: Table, answers: Answers, asked: Columns) -> Found | None:
    """A column of ranks, or of scores, for each answer."""
    if answers.listed or asked.label is not None:
        return None
    for kind, stems in (("ranks", RANK_KEYS), ("scores", SCORE_KEYS)):
        columns = beside(table, answers, stems)
        if columns and all(number_in(cell) is not None for name in columns for cell in _some(table, name)):
            return Found(answers, kind, columns)
    return None


def _judge(
    table: Table, found: Found, asked: Columns, answers: list[list]
) -> Callable[[int], judgements.Pairs | str]:
    """row -> the pairs of its answers, or why there are none."""
    cells = [table.cells(name) for name in found.columns]
    if found.kind == "flags":
        return lambda row: judgements.by_flags(records(cells[0][row]), found.by[0])
    if found.kind in ("ranks", "scores"):
        way = -1.0 if found.kind == "ranks" else 1.0
        return lambda row: judgements.by_numbers([column[row] for column in cells], way)
    if found.kind == "order" and asked.ranking == "ranks":
        return lambda row: judgements.by_ranks(cells[0][row], answers[row])
    called = _called(table, found, asked)
    if found.kind == "order":
        return lambda row: judgements.by_order(cells[0][row], called[row])
    if found.rejected is not None:
        name = found.rejected
        return lambda row: judgements.by_two(cells[0][row], cells[1][row], called[row], name)
    if found.worst is not None:
        name = found.worst
        return lambda row: judgements.by_best_and_worst(cells[0][row], cells[1][row], called[row], name)
    return lambda row: judgements.by_best(cells[0][row], called[row])


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
    if found.kind == "order" and asked.ranking == "ranks":
        return {}
    cells = [cell for name in found.columns for cell in table.cells(name)]
    if found.kind == "order":
        cells = [who for cell in cells for group in judgements.ranking_in(cell) for who in group]
    known = {name for names in found.answers.keys(table) for name in names}
    numbers = {int(n) for cell in cells if (n := number_in(cell)) is not None and word(cell) not in known}
    many = max((len(row) for row in found.answers.of(table)), default=0)
    return counted_from(found.answers, found.by[0], numbers, many, asked, found.kind == "best")


def _check_sense(table: Table, found: Found, asked: Columns) -> None:
    """**Raises:** ValueError where numbers could be the rank of each answer or the answers in their order."""
    cells = [cell for cell in table.cells(found.by[0]) if not is_missing(cell)]
    numbers = all(
        number_in(who) is not None for cell in cells for group in judgements.ranking_in(cell) for who in group
    )
    signs = any(judgements.ORDER_SIGNS.search(str(cell)) for cell in cells)
    if asked.ranking is None and numbers and not signs:
        raise ValueError(
            f"column {found.by[0]} could hold the rank of each answer or the answers in their order: say which, by "
            "--ranking ranks or --ranking order"
        )


def _pairs(texts: list, judged: judgements.Pairs) -> list[Judged] | str:
    """The pairs whose answers are there, each in the order of the answers."""
    pairs = []
    for better, other, strength in judged:
        first, second = min(better, other), max(better, other)
        there = texts[first] is not None and texts[second] is not None
        if there and texts[first] != texts[second]:
            pairs.append(Judged(texts[first], texts[second], strength if first == better else -strength))
    return pairs or "holds no two answers that are judged"


def _column(table: Table, names: tuple[str, ...]) -> str | None:
    return named(table, tuple(f"{name}_{end}".rstrip("_") for name in names for end in ENDS))


def _names(table: Table, answers: Answers) -> dict[Any, int]:
    """What the answers of the first rows may be called, but for numbers that count them."""
    columns = {name: table.some(name) for name in answers.columns}
    head = Table(table.source, columns, min(len(cells) for cells in columns.values()))
    return {name: i for row in answers.called(head, {}) for name, i in row.items()}


def _some(table: Table, name: str) -> list:
    return [cell for cell in table.some(name) if not is_missing(cell)]


def _says(found: Found, asked: Columns) -> str:
    by = ", ".join(found.by)
    if found.kind == "best":
        lost = f", {found.rejected} the rejected one" if found.rejected else ""
        lost = f", {found.worst} the worst one" if found.worst else lost
        return f"{by}: names the best answer{lost}"
    ranks = found.kind == "ranks" or (found.kind == "order" and asked.ranking == "ranks")
    told = {
        "order": "the best come first",
        "scores": "the highest is the best",
        "flags": "true of the best answer",
    }
    return f"{by}: {'the lowest is the best' if ranks else told[found.kind]}"
