"""Which columns hold several answers a row, and which ones judge them: the best, the worst, an order, ranks, scores."""

import itertools
import re
from typing import Any, NamedTuple

from ..columns import Columns
from ..label_rules import GRADED
from ..labels import TIE, is_missing, number_in, word
from ..table import Table
from . import answer_judgements as judgements
from .answer_names import Answers, answers_of, beside, repeats_text, which
from .base import records
from .choice_names import CHOSEN
from .flags_of_sides import FLAGS as FLAGS_OF_SIDES
from .numbers import are_marked, is_number, marked, mostly_numbers
from .plain import prompt_of
from .rankings import RANK_KEYS, SCORE_KEYS
from .sides import (
    KEYS_OF_TESTS,
    LABELS,
    NOT_ANSWERS,
    by_plain_name,
    chosen_sides,
    holds_texts,
    named,
    plain_name,
)

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
    "chosen", "is_chosen", "selected", "is_selected", "best", "is_best", "preferred", "is_preferred", "winner",
)  # fmt: skip
TICKS = (*FLAGS_OF_SIDES, "choice", "vote")
# Columns of the best answer, the second best, and so on.
ORDINALS = ("1st", "2nd", "3rd", "4th", "5th", "6th", "7th", "8th")
WORDS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
FORMS = ("rank_{}", "rank{}", "ranking_{}", "place_{}", "{}_place", "{}_choice", "{}_rank", "{}_best")
PLACES = tuple(tuple(map(form.format, count)) for count in ("12345678", ORDINALS, WORDS) for form in FORMS)
# The share of rows in which one answer alone is ticked, beyond which such columns say which one is the best.
MOST = 0.9
FLAG_WORDS = ("true", "false", "0", "1", "yes", "no")


class Found(NamedTuple):
    """`kind`: "best", "order", "places" (an object of ranks), "ranks", "scores", "flags" or "ticks"; `by`: the columns
    of it, or the key of the flags; `worst`: the column of the worst answer; `rejected`: of the only one that the best
    was preferred to.
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
    kinds = (_flagged, _of_best, _numbered, _ticked, _placed)
    return next((found for kind in kinds if (found := kind(table, answers, asked)) is not None), None)


def find_best(table: Table, asked: Columns) -> Found | None:
    """What says which of the answers is the best one, whatever else says how good they are."""
    found = find(table, asked)
    if found is None or found.kind in ("best", "flags"):
        return found
    return _flagged(table, found.answers, asked) or _of_best(table, found.answers, asked)


def beside_judgements(table: Table, found: Found) -> list[Found]:
    """What else says which answers are the better ones: the best one and ticks beside a ranking or flags, ranks and
    ticks beside the best one, ticks beside ranks and scores.
    """
    others = [_ticked(table, found.answers, Columns())] if found.kind != "ticks" else []
    if found.kind in ("order", "places", "flags"):
        others.append(_of_best(table, found.answers, Columns()))
    if found.kind == "best":
        ranks = _numbered(table, found.answers, Columns())
        others.append(ranks if ranks is not None and ranks.kind == "ranks" else None)
    return [other for other in others if other is not None]


def _of_named_sides(table: Table, answers: Answers, sides: tuple[str, str], asked: Columns) -> Found | None:
    """Columns called chosen and rejected, say, that hold no texts but names or numbers of answers beside them."""
    if set(sides) & set(answers.columns) or asked.label not in (None, sides[0]):
        return None
    names = _without_texts(_names(table, answers))
    cells = [_some(table, side) for side in sides]
    numbers = all(number_in(cell) is not None for column in cells for cell in column)
    named_all = all(_is_named(cell, names) for column in cells for cell in column)
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


def _ranking(table: Table, answers: Answers, asked: Columns) -> Found | None:
    """A column whose first cells are rankings of two or more answers."""
    by = asked.label or named(table, RANKINGS)
    if by not in table.columns or by in answers.columns:
        return None
    cells = _some(table, by)
    names = _names(table, answers)
    if cells and all(judgements.ranks_by_name(cell, names) is not None for cell in cells):
        return Found(answers, "places", (by,))
    rankings = [judgements.names_in(cell) for cell in cells]
    known = all(len(ranking) > 1 and all(_is_named(who, names) for who in ranking) for ranking in rankings)
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
    by_name = _without_texts(names)
    known = [repeats_text(c, names) or _is_named(c, by_name) or word(c) in TIE for c in cells]
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
        for name in columns:
            if are_marked(_some(table, name)):
                raise ValueError(marked(table, name))
        if columns and all(number_in(cell) is not None for name in columns for cell in _some(table, name)):
            return Found(answers, kind, columns)
    return None


def _ticked(table: Table, answers: Answers, asked: Columns) -> Found | None:
    """A column for each of three or more answers that says yes of the best one: a_chosen, b_chosen and c_chosen."""
    if answers.listed or asked.label is not None or len(answers.columns) < 3:
        return None
    columns = beside(table, answers, TICKS)
    rows = list(zip(*(map(judgements.is_ticked, table.cells(name)) for name in columns), strict=True))
    one = sum(None not in row and row.count(True) == 1 for row in rows)
    return Found(answers, "ticks", columns) if columns and one > MOST * len(rows) else None


def _placed(table: Table, answers: Answers, asked: Columns) -> Found | None:
    """A column for each place, whose cells name the answer that stands there: rank_1 with B, rank_2 with A."""
    if asked.label is not None:
        return None
    lower = by_plain_name(table)
    names = _names(table, answers)
    for form in PLACES:
        columns = [lower[name] for name in itertools.takewhile(lower.__contains__, form)]
        cells = [cell for name in columns for cell in _some(table, name)]
        # Numbers may as well be the rank of each answer.
        numbers = any(number_in(cell) is not None for cell in cells)
        if len(columns) > 1 and cells and not numbers and all(which(c, names) is not None for c in cells):
            return Found(answers, "order", tuple(columns))
    return None


def _column(table: Table, names: tuple[str, ...]) -> str | None:
    return named(table, tuple(f"{name}_{end}".rstrip("_") for name in names for end in ENDS))


def _names(table: Table, answers: Answers) -> dict[Any, int]:
    """What the answers of the first rows may be called, but for numbers that count them."""
    columns = {name: table.some(name) for name in answers.columns}
    head = Table(table.source, columns, min(len(cells) for cells in columns.values()))
    return {name: i for row in answers.called(head, {}) for name, i in row.items()}


def _without_texts(names: dict[Any, int]) -> dict[Any, int]:
    return {name: i for name, i in names.items() if isinstance(name, str)}


def _is_named(cell: Any, names: dict[Any, int]) -> bool:
    """Whether a cell names an answer, or is a number, which may count one."""
    return number_in(cell) is not None or which(cell, names) is not None


def _some(table: Table, name: str) -> list:
    return [cell for cell in table.some(name) if not is_missing(cell)]
