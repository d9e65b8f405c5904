"""Two answers with a score each and no label: WebGPT's comparisons, exports of reward models."""

import re
from typing import Any

from ..columns import Columns
from ..labels import is_missing, number_in, suffixes, word, word_rule
from ..table import Table
from .answer_names import Answers, beside
from .base import Judged, Mapped, of_rows
from .choice_features import HUMP
from .columns_of_raters import rater_columns
from .named_winners import resolved
from .numbers import are_marked, is_number, marked
from .plain import check_asked, prompt_of
from .rankings import RANK_KEYS
from .ranks_and_scores import check_agreement
from .sides import (
    KEYS_OF_TESTS,
    LABELS,
    chosen_sides,
    named,
    open_sides,
    plain_name,
    with_rater,
)

NAME = "two scored sides"
ORDER = 100
RANK = re.compile(rf"^(?:{'|'.join(RANK_KEYS)})$", re.I)
SCORE = re.compile(rf"^(?:(?:.*_)?(?:score|rating|reward|overall_score|mos)s?)$|{RANK.pattern}", re.I)
# Scores of which more is no better, or that are of the models; and what says of such a fault that it is absent.
FAULT = (
    r"(?:toxic[a-z]*|harm(?!less|on)[a-z]*|risk[a-z]*|perplex[a-z]*|(?:log)?loss(?:es)?(?![a-z])|error(?!less)[a-z]*|"
    r"bias[a-z]*|hallucin[a-z]*|penalt[a-z]*|cost(?:s|ly|liness)?(?![a-z])|unsafe[a-z]*|offens[a-z]*|danger[a-z]*|"
    r"sever(?:e|ity)|bad(?:ness)?(?![a-z])|negativ[a-z]*|spam[a-z]*|latenc[a-z]*|difficult[a-z]*|uncertain[a-z]*|"
    r"violat[a-z]*|violen[a-z]*|hate[a-z]*|profan[a-z]*|insult[a-z]*|abus[a-z]*|sexual[a-z]*|nsfw|threat[a-z]*|"
    r"jailbreak[a-z]*|leak[a-z]*|plagiar[a-z]*|mislead[a-z]*|decepti[a-z]*|sycophan[a-z]*|refus[a-z]*|mistake[a-z]*|"
    r"defect[a-z]*|fail[a-z]*|anomal[a-z]*|outlier[a-z]*|redundan[a-z]*|repetiti[a-z]*|distance[a-z]*|nll|"
    r"down_?vot[a-z]*|dislik[a-z]*|effort(?!less)[a-z]*|workload|burden[a-z]*|complain[a-z]*|confus[a-z]*|frustrat[a-z]*|"
    r"annoy[a-z]*|inaccura[a-z]*|incorrect[a-z]*|incoheren[a-z]*|inconsisten[a-z]*|irrelevan[a-z]*|unhelpful[a-z]*|"
    r"unclear[a-z]*|unnatural[a-z]*|vague[a-z]*|ambigu[a-z]*|wrong[a-z]*|worse|worst|dissatisf[a-z]*|disagree[a-z]*|"
    r"regret[a-z]*|divergen[a-z]*|distort[a-z]*|artifact[a-z]*|nois(?:e|y)|flaw(?!less)[a-z]*|delay[a-z]*|"
    r"(?:[ctw]er|mqm|ppl|kl|r?mse|mae|fid|lpips|brier)(?![a-z]))"
)
# Alone: word_choice and length_control are merits.
NEITHER = (
    r"(?:similar[a-z]*|rank(?:ing)?|position|detect[a-z]*|length|len|words?|tokens?|complex[a-z]*|confidence|sentiment|entropy)"
    r"[\W_]+(?:score|rating|reward|overall_score)s?$"
)
NO_MERIT = re.compile(rf"^elo(?![a-z])|(?<![a-z])(?:{FAULT}|{NEITHER})", re.I)
NO_FAULT = re.compile(rf"(?<![a-z])(?:non|not|un|no)[\W_]?{FAULT}|(?<![a-z]){FAULT}[\W_]?free(?![a-z])", re.I)

# Parts of names of labels.
SAYING = {*LABELS, "says", "said", "won", "wins", "chosen", "picked", "pick"} - {*KEYS_OF_TESTS}
# Whatever its name, a column tells who won if it agrees with the scores in this share of the rows that both decide; or
# contradicts them in it, as less may be better.
CLEAR = 0.75


def recognise(table: Table) -> bool:
    found = None if chosen_sides(table) or named(table, LABELS) is not None else _columns(table)
    return found is not None and not rater_columns(table, found[0])


def map(table: Table, asked: Columns) -> Mapped:
    """The side with the higher score, or the lower rank, wins.

    **Raises:** ValueError for another column that says who won, and for scores with marks.
    """
    check_asked(table, asked)
    found = _columns(table)
    assert found is not None
    sides, scores, way = found
    for name in scores:
        if are_marked(table.cells(name)):
            raise ValueError(marked(table, name))
    prompt = prompt_of(table, asked, sides)
    ranks = beside(table, Answers(sides, False, suffixes(sides)), RANK_KEYS) if way > 0 else ()
    if ranks:
        by_row = [zip(*(table.cells(name) for name in names), strict=True) for names in (scores, ranks)]
        check_agreement(scores[0], ranks[0], zip(*by_row, strict=True), "leave one of the two out")
    _check_that_nothing_else_says_who_won(table, sides, (*sides, *scores, *ranks, prompt))
    prompts = [_question(cell) for cell in table.cells(prompt)]
    cells = [table.cells(name) for name in (*sides, *scores)]

    def rows():
        for row, (a, b, x, y) in enumerate(zip(*cells, strict=True)):
            if not is_number(x) or not is_number(y):
                yield row, prompts[row], "has no number as the score of a side"
            else:
                gap = way * (float(x) - float(y))
                yield row, prompts[row], [Judged(a, b, 0.0 if gap == 0 else 1.0 if gap > 0 else -1.0)]

    best = "higher" if way > 0 else "lower"
    said = {"chosen": f"{sides[0]} or {sides[1]}", "label": f"the {best} of {scores[0]} and {scores[1]}"}
    by = "scores" if way > 0 else "ranks"
    return of_rows(table, NAME, rows(), (*scores, *sides, prompt), said, with_rater(asked, table), by=by)


def _columns(table: Table) -> tuple[tuple[str, str], tuple[str, str], float] | None:
    """The sides, their scores or ranks, and 1, or -1 where less is better."""
    sides = open_sides(table)
    if len(sides) != 2:
        return None
    a, b = suffixes((sides[0], sides[1]))
    found: dict[str, dict[str, list[str]]] = {}
    for name in table.names:
        for side, token in zip(sides, (a, b), strict=True):
            around = rf"[_\-. ]?{token}$|^{token}[_\-. ]|^{re.escape(side)}[_\-. ]"
            stem = re.sub(around, "", name, flags=re.I) if token else name
            if (
                stem != name
                and SCORE.match(stem)
                and (is_number(table.first(name)) or are_marked(table.some(name)))
            ):
                found.setdefault(stem.casefold(), {}).setdefault(token, []).append(name)
    both = {
        stem: (*of_side[a], *of_side[b]) for stem, of_side in found.items() if a in of_side and b in of_side
    }
    ranks = {stem: columns for stem, columns in both.items() if RANK.match(stem)}
    both = {stem: columns for stem, columns in both.items() if stem not in ranks} or ranks
    if len(both) != 1 or NO_MERIT.search(NO_FAULT.sub("", next(iter(both)))):
        return None
    ((stem, scores),) = both.items()  # more than two where the same is called in several ways
    way = -1.0 if RANK.match(stem) else 1.0
    return ((sides[0], sides[1]), (scores[0], scores[1]), way) if len(scores) == 2 else None


def _check_that_nothing_else_says_who_won(table: Table, sides: tuple[str, str], taken: tuple) -> None:
    """**Raises:** ValueError for a column whose words name one side here and the other there, if it is called as labels
    are, or goes with the scores or against them.
    """
    rule = word_rule(sides)
    columns = {name: table.some(name) for name in table.names}
    head = Table(table.source, columns, min(len(cells) for cells in columns.values()))
    scores = [
        float(x) - float(y) if is_number(x) and is_number(y) else 0.0
        for x, y in zip(head.cells(taken[2]), head.cells(taken[3]), strict=True)
    ]
    for name in (name for name in table.names if name not in taken):
        cells = resolved(head, head.cells(name), sides, None)
        told = {
            row: None if number_in(word(cell)) is not None else rule.value(cell)
            for row, cell in enumerate(cells)
            if isinstance(cell, str) and not is_missing(cell)
        }
        ways = {row: way for row, way in told.items() if way is not None}
        if len(ways) < len(told) or not min(ways.values(), default=0.0) < 0 < max(ways.values(), default=0.0):
            continue
        agree = [both > 0 for row, way in ways.items() if (both := way * scores[row]) != 0]
        most = max(agree.count(True), agree.count(False))
        called = SAYING & {*plain_name(HUMP.sub("_", name)).split("_")}
        if called or (agree and most >= CLEAR * len(agree)):
            raise ValueError(
                f"column {name} says which side won, and so may {taken[2]} and {taken[3]}: give --label {name}, or "
                "leave that column out if the numbers say it"
            )


def _question(cell: Any):
    """WebGPT's questions are objects with their full text."""
    return cell.get("full_text", cell) if isinstance(cell, dict) else cell
