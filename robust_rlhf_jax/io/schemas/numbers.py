"""Columns of numbers for each side: features, embeddings, scores; and those that must never become features."""

import itertools
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..bad_cells import shown
from ..labels import number_in
from ..table import Table
from .base import structured
from .flags_of_sides import contradict_always
from .sides import holds_numbers
from .words import are_words

SCORE = "(?:scores?|ratings?|rewards?|avg_rating|rm_score)"
SCORES = re.compile(
    rf"^(?:{SCORE}[_-](?P<side>chosen|rejected)(?:[_-](?P<a>.+))?|(?P<side2>chosen|rejected)[_-]{SCORE}(?:[_-](?P<b>.+))?)$"
)
NUMERIC = re.compile(r"^(chosen|rejected)[_-](.+)$")
EMBEDDED = re.compile(r"^(.*emb.*|.*vector.*|.*hidden.*)[_-](chosen|rejected)$", re.I)
# A score that names neither a model nor a quality: of toxicity or perplexity, a low one is good.
GENERAL = "score"
VECTORS = re.compile(r"emb|vector|hidden|repr|feature|activation|encod", re.I)
# Names and places of things, times, what a tokeniser made and what the answer was: numbers, but no features.
NO_FEATURE = re.compile(
    r"(^|[_-])(ids?|idx|index|uuid|uid|hash|md5|row|row_number|line|seed|created_at|updated_at|created|updated|timestamp|"
    r"tstamp|ts|date|datetime|created_at_utc|(?:shown|displayed|answered|submitted)_at|input_ids|token_ids|tokens|"
    r"attention_mask|labels|position_ids|sku|ean|isbn|asin|upc|gtin|barcode)$|"
    r"^(ranks?|ranking|votes?|user|worker|annotator|rater|session|serial|(?:phone|order|serial)[_-](?:no|nr|number)|"
    r"zip|zip[_-]?code|postcode|postal[_-]code|plz)$",
    re.I,
)
# Names of what is shown or judged: numbers below them say which one it is.
SHOWN = (
    "stimulus|stim|image|img|picture|pic|photo|video|clip|audio|track|song|face|file|player|team|question|trial|task|"
    "set|card|profile|item|design|concept"
)
NAMED = re.compile(
    r"^(?:stimulus|stim|image|img|picture|pic|photo|video|clip|audio|track|song|face|file|player|team|nr|no|number)$|"
    rf"^(?:{SHOWN})[\s_-]?(?:number|num|no|nr|code)$",
    re.I,
)
# Names of what numbers may say which one it is, or how much of it: the former where there are many whole ones.
MAY_BE_NAMED = re.compile(
    r"^(?:item|object|thing|product|article|paper|essay|system|variant|version|design|word|code|key|ref|reference|block)$",
    re.I,
)
MANY_NAMES = 12
# Votes of the sides, and what people did with them, which are the answer; or of something else, such as the users of a
# film.
DONE = (
    r"(?:opens?|opened|clicks?|conversions?|purchases|signups|sign_ups|upvotes|likes|installs|subscriptions|replies|"
    r"shares|retweets|views|revenue|sales|orders)"
)
VOTES = re.compile(
    rf"^(?:(?:n|num|total)_votes|votes?_(?:count|share)|(?:(?:n|num|total|unique)_)?{DONE}(?:_(?:count|rate|share))?|ctr|"
    r"click_?through_?rate)$",
    re.I,
)
# Numbers with signs of money, shares or thousands.
MARKED = re.compile(r"^[€$£¥]?\s*[+\-−]?\d[\d.,' ]*\s*[%€$£¥]?$")
# Numbers with units, and hours with minutes. Of single letters most make a code, such as the 12A of a seat.
WITH_UNIT = re.compile(
    r"^(?:[+\-−]?\d[\d.,' ]*\s*(?:[^\W\d_]{2,12}|[dghklmstKLMVW])\.?|\d{1,2}:\d\d(?::\d\d)?)$"
)
# Choices from which on a column that says the place or the answer in each of them does not do so by chance.
MANY_CHOICES = 20
# What 1 and 0 for the chosen option and the others look like.
ONE_AND_ZERO = (("1", "0"), ("1.0", "0.0"))
# Cells that say what a column holds.
FIRST_CELLS = 200
# Why a column that `tell_who_won` finds is no feature.
TELLING = "says which option was chosen"
KINDS = ("numeric", "embeddings", "texts", "scores")


class NoSides(ValueError):
    """A file without anything that is chosen or rejected."""


def find_numbers(
    table: Table, sides: tuple[str, str] | None
) -> tuple[dict[str, dict[str, tuple[str, str]]], dict[str, tuple[str, str]], dict[str, str]]:
    """({kind: {feature: (first column, second column)}}, the same of words, why others are none); `sides`: the columns
    of texts, if any.

    **Raises:** ValueError for a feature of one side alone, for numbers with marks, and for no feature but what says who
        won, where the file has no texts.
    """
    numbers: dict[str, dict[str, tuple[str, str]]] = {
        "embeddings": {},
        "numeric": {},
        "scores": scores_of(table),
    }
    words: dict[str, tuple[str, str]] = {}
    ignored: dict[str, str] = {}
    taken = {name for pair in numbers["scores"].values() for name in pair} | set(sides or ())
    won = [1.0] * table.n_rows
    for name in table.names:
        partner, what, side = _partner(name)
        if not what or name in taken:
            continue
        if NO_FEATURE.search(what) or _token_ids(table, name):
            ignored[name] = "names, times, tokens or answers are no features"
            continue
        if partner not in table.columns:
            if sides is None:
                raise ValueError(
                    f"{table.path} lacks the column {partner}: every feature needs chosen_ and rejected_."
                )
            ignored[name] = f"there is no {partner} beside it"
        elif side == "chosen" and _is_single(table, name) and name_things(table, what, (name, partner)):
            ignored |= dict.fromkeys((name, partner), "names, times, tokens or answers are no features")
        elif side == "chosen":
            kind = _kind(table, name, partner, sides is not None)
            if kind == "numeric" and count_votes(table, what, (name, partner), won):
                ignored |= dict.fromkeys(
                    (name, partner), "counts what people did with the sides, by which one was chosen"
                )
            elif kind == "numeric" and tell_who_won(table, (name, partner), won):
                ignored |= dict.fromkeys((name, partner), TELLING)
            elif kind in ("embeddings", "numeric"):
                numbers[kind][what] = (name, partner)
            elif sides is None and are_marked(table.some(name) + table.some(partner)):
                raise ValueError(marked(table, name))
            elif sides is None and are_words(table.cells(name) + table.cells(partner)):
                words[what] = (name, partner)
            else:
                ignored |= {name: kind, partner: kind}
    if sides is None and TELLING in ignored.values() and not any((*numbers.values(), words)):
        raise ValueError("the two options differ in no column but those that say which one was chosen")
    return numbers, words, ignored


def tell_who_won(table: Table, pair: tuple[str, str], ways: Sequence[float | None]) -> bool:
    """Whether two columns are 1 for the side that won and 0 for the other in each of many rows; `ways` as for votes."""
    if sum(bool(way) for way in ways) < MANY_CHOICES:
        return False
    cells = zip(ways, *(table.cells(name) for name in pair), strict=True)
    return all(
        ((str(a), str(b)) if way > 0 else (str(b), str(a))) in ONE_AND_ZERO for way, a, b in cells if way
    )


def count_votes(table: Table, what: str, pair: tuple[str, str], ways: Sequence[float | None]) -> bool:
    """Whether two columns called as votes are more of the side that won in nearly all rows; `ways`: above 0 where that
    is the first one."""
    if not VOTES.match(what):
        return False
    first, second = ([number_in(cell) for cell in table.cells(name)] for name in pair)
    gaps = [None if a is None or b is None else b - a for a, b in zip(first, second, strict=True)]
    return contradict_always(ways, gaps)


def name_things(table: Table, what: str, columns: Sequence[str]) -> bool:
    """Whether numbers in columns called after `what` say which thing it is: image_a and image_b, with 17 and 4."""
    if NAMED.match(what):
        return True
    if not MAY_BE_NAMED.match(what):
        return False
    numbers = [number_in(cell) for name in columns for cell in table.cells(name)]
    there = {number for number in numbers if number is not None}
    return len(there) >= MANY_NAMES and all(number % 1 == 0 and number >= 0 for number in there)


def choose_kind(numbers: dict, sides: tuple[str, str] | None, asked: str = "auto") -> str:
    """Which of `KINDS` the features are made of: as asked, else embeddings, texts, numbers, scores, the first there.

    The scores of RewardBench's output (`text_chosen`, `scores_chosen`) come before its texts.

    **Raises:** ValueError for a kind that the file does not have; NoSides.
    """
    if asked not in ("auto", *KINDS):
        raise ValueError(f"features={asked!r} is unknown: choose one of auto, {', '.join(KINDS)}.")
    there = {kind: bool(columns) for kind, columns in numbers.items()} | {"texts": sides is not None}
    if asked == "auto":
        rewardbench = sides is not None and sides[0] == "text_chosen" and there.get("scores")
        order = ("scores", "texts") if rewardbench else ("embeddings", "texts", "numeric", "scores")
        asked = next((kind for kind in order if there.get(kind)), "")
    if not there.get(asked):
        if asked:
            others = ", ".join(kind for kind in KINDS if there.get(kind)) or "nothing else"
            raise ValueError(f"the file has no {asked} to make features of, but {others}")
        raise NoSides
    return asked


def _partner(name: str) -> tuple[str, str, str]:
    """(the other side's column, the feature, this side); empty texts where the name tells no side."""
    match = NUMERIC.match(name)
    if match:
        side, what = match.groups()
        other = "rejected" if side == "chosen" else "chosen"
        return other + name[len(side) :], what, side
    match = EMBEDDED.match(name)
    if match:
        what, side = match.groups()
        other = "rejected" if side == "chosen" else "chosen"
        return name[: -len(side)] + other, what, side
    return "", "", ""


def _kind(table: Table, name: str, partner: str, with_texts: bool) -> str:
    """ "embeddings" or "numeric", or why neither."""
    cells = [structured(cell) for cell in (table.first(name), table.first(partner))]
    if any(holds_numbers(cell) for cell in cells):
        if with_texts and not (VECTORS.search(name) and _one_width(table, name)):
            return "lists of numbers beside texts are no features, unless they are called embeddings"
        return "embeddings"
    numeric = any(is_number(cell) for column in (name, partner) for cell in table.some(column))
    return "numeric" if numeric else f"holds {shown(cells[0])} and the like, no numbers"


def scores_of(table: Table) -> dict[str, tuple[str, str]]:
    """Scores of reward models, by model: `scores_chosen`, `score_rejected_<model>`, `chosen-rating`, …"""
    found: dict[str, dict[str, str]] = {}
    for name in table.names:
        match = SCORES.match(name)
        if match and any(is_number(cell) for cell in table.some(name)):
            side = match["side"] or match["side2"]
            found.setdefault(match["a"] or match["b"] or GENERAL, {})[side] = name
    return {model: (s["chosen"], s["rejected"]) for model, s in found.items() if len(s) == 2}


def _is_single(table: Table, name: str) -> bool:
    """Whether a column holds single numbers: image embeddings are no names of images."""
    return not isinstance(table.columns[name], np.ndarray) and is_number(table.first(name))


def _token_ids(table: Table, name: str) -> bool:
    cell = structured(table.first(name))
    return (
        isinstance(cell, list)
        and bool(cell)
        and all(type(v) is int for v in cell)
        and not _one_width(table, name)
    )


def _one_width(table: Table, name: str) -> bool:
    cells = [structured(cell) for cell in table.some(name)]
    return len({len(cell) for cell in cells if isinstance(cell, list)}) == 1


def is_marked(cell: Any) -> bool:
    """Whether a cell is a number with other marks than a decimal point: "$20", "15,5"."""
    return isinstance(cell, str) and not is_number(cell) and MARKED.match(cell.strip()) is not None


def marked(table: Table, name: str) -> str:
    """The sentence about a column of such cells."""
    one = next((cell for cell in table.some(name) if is_marked(cell) or with_unit(cell)), table.first(name))
    return (
        f"column {name} holds {shown(one)} and the like: write numbers with a decimal point and no "
        "other marks, or leave the column out"
    )


def are_marked(cells: list) -> bool:
    """Whether most of the first cells that are there are numbers, too many of them with other marks to be bad cells;
    or with units, which a few words such as "64 GB" may have, too.
    """
    there = list(itertools.islice((cell for cell in cells if cell is not None and cell != ""), FIRST_CELLS))
    marks, plain = sum(map(is_marked, there)), sum(map(is_number, there))
    marks += 0 if are_words(cells) else sum(map(with_unit, there))
    return marks > 0 and plain < len(there) / 2 <= marks + plain


def with_unit(cell: Any) -> bool:
    """Whether a cell is a number and its unit: "64 GB", "4.0 EUR"."""
    return isinstance(cell, str) and WITH_UNIT.match(cell.strip()) is not None


def mostly_numbers(cells: list) -> bool:
    """Whether at least half of the first cells that are there are numbers: "NA" among them is a bad cell."""
    there = list(itertools.islice((cell for cell in cells if cell is not None and cell != ""), FIRST_CELLS))
    return bool(there) and 2 * sum(is_number(cell) for cell in there) >= len(there)


def is_number(cell: Any) -> bool:
    """Whether a cell is a number, as a CSV file may write it: columns of words are no features, and 1_2 is a code."""
    if isinstance(cell, str) and "_" in cell:
        return False
    try:
        float(cell)
    except (TypeError, ValueError, OverflowError):
        return False
    return not isinstance(cell, bool)
