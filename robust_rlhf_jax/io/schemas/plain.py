"""Pairs in columns: sides, label and raters by their names, or as a caller names them."""

import re

import numpy as np

from ..bad_cells import shown
from ..columns import Columns
from ..label_rules import rule_for
from ..labels import Rule, is_missing, number_in, read_ties, word, word_rule
from ..table import Table
from .base import OF_LABELS, Mapped, Roles, judged_by, of_rows
from .columns_of_raters import rater_columns, told_raters
from .deciding import find_label, harmless_labels, with_rule
from .flags_of_sides import contradict_always
from .named_winners import resolved
from .numbers import GENERAL, find_numbers, is_number, scores_of
from .shown_places import check_orders, check_places_of_votes
from .sides import (
    ANSWERS,
    IDS,
    LABELS,
    NOT_ANSWERS,
    by_plain_name,
    chosen_sides,
    column_of_numbers,
    holds_texts,
    named,
    open_sides,
    plain_name,
    prompt_named,
    rater_named,
)
from .words import LONGEST

NAME = "columns"
# Sides that are as often names of models or options.
LONG_SIDES = (("best", "worst"), ("good", "bad"), ("winner", "loser"), ("winning", "losing"))
# What columns of ties are called.
TIES = ("winner tie", "tie", "is tie", "both equal", "tied", "is tied", "is draw")
# A tie between two sides, but also what a lottery or a simulation drew.
DRAW = "draw"
# What answers are called beside those that were rejected: response and rejected_response.
EXTENDED = ("response", "answer", "completion", "output")
# Lists of numbers as text: of tensors, shortened by three points, or three decimals and more without brackets.
VECTOR = re.compile(
    r"(?:tensor|array)\(\[[-+\s\d.,e]+\].*\)|\[[-+\s\d.,e]*\.\.\.[-+\s\d.,e]*\]|"
    r"(?:[-+]?\d+\.\d*(?:e[-+]?\d+)?[\s,;|]+){2,}[-+\d.e]+",
    re.I | re.S,
)
CHOSEN_TEXT = re.compile(r"^chosen[_-](?P<stem>.+)$")


def recognise(table: Table) -> bool:
    return True


def map(table: Table, asked: Columns) -> Mapped:
    """**Raises:** ValueError for a column that is asked for and not there, and for what cannot be decided; NoSides."""
    check_asked(table, asked)
    sides, how, named_by = _decided_by(table, asked, *_sides(table, asked))
    label = asked.label if asked.label in table.columns else None
    if sides is not None and how != "named" and label is None and asked.label is None:
        _check_no_names(table, sides)
        _check_no_test(table, sides)
        raters = rater_columns(table, sides) or told_raters(table, sides, asked, named_by)
        if raters:
            check_orders(table, raters, sides)
            return _of_raters(table, sides, raters, asked)
        label = find_label(table, sides, asked, named_by)
    texts = sides if sides is not None and not column_of_numbers(table, sides[0]) else None
    if texts is not None:
        _check_vectors(table, texts)
    prompt = None if texts is None else prompt_of(table, asked, texts)
    if texts is not None and prompt is None:
        _check_texts(table, texts)
    numbers, words, ignored = find_numbers(table, texts)
    if sides is not None and texts is None:
        numbers["embeddings"] = {_vector_name(table, sides): sides}
    # Columns chosen_price and rejected_price have the sides in their names.
    features = any(numbers.values()) or (asked.words and words)
    between = sides or (("chosen", "rejected") if features else None)
    said = asked.chosen is not None or asked.label is not None
    if texts is not None and how == "named" and not said and texts[0] != "text_chosen":
        _check_scores(table, texts, numbers["scores"].get(GENERAL))
        _check_ranks(table, texts)
    if between is not None and how in ("named", "") and label is None and asked.label is None:
        ignored |= harmless_labels(table, between, asked.chosen is not None)
    ignored |= _why_no_ties(table)
    table, rule = _rule(table, label, between, asked)
    roles = Roles(
        None if texts is None else (prompt, *texts), numbers, label, rule,
        asked.rater or rater_named(table), asked.weight, tie_column(table, asked, label, rule),
        asked.pair_id or named(table, IDS), said=_said(between, label, rule), ignored=ignored,
        words=words,
    )  # fmt: skip
    return Mapped(NAME, table, roles, reads=("tie",) if label is None else OF_LABELS)


def _decided_by(
    table: Table, asked: Columns, sides: tuple[str, str] | None, how: str
) -> tuple[tuple[str, str] | None, str, tuple[str, ...]]:
    """The sides and how they are known, and the column `chosen` where it is the label of open ones."""
    if how == "named" and asked.chosen is None and asked.label is None:
        return _named_by_chosen(table, sides)
    return (
        sides,
        how,
        ("chosen",) if how == "open" and asked.chosen is None and "chosen" in table.columns else (),
    )


def _rule(
    table: Table, label: str | None, sides: tuple[str, str] | None, asked: Columns
) -> tuple[Table, Rule | None]:
    """`with_rule` of the label, if there is one.

    **Raises:** ValueError for a label that decides between no sides.
    """
    if label is None:
        return table, None
    if sides is None:
        raise ValueError(
            f"--label {label} needs the two sides that it decides between: give --chosen and --rejected; in choices of "
            "one option a row it is 1 in one row of each choice and 0 in the others, --pair-id names the choice, and "
            "--rater who chose, if choices are numbered anew for each; in choices of one row it names an option that "
            "columns are called after"
        )
    return with_rule(table, label, sides, asked)


def _check_texts(table: Table, sides: tuple[str, str]) -> None:
    """**Raises:** ValueError for single numbers, which answer no prompt."""
    if all(is_number(cell) for side in sides for cell in table.some(side)):
        raise ValueError(
            f"columns {sides[0]} and {sides[1]} hold single numbers: a feature is called chosen_<name> and "
            "rejected_<name>; names of options, such as models, are votes, which robust-rlhf leaderboard reads"
        )


def _check_no_names(table: Table, sides: tuple[str, str]) -> None:
    """**Raises:** ValueError for open sides whose cells are ends of names of other columns of answers."""
    cells = {word(cell) for side in sides for cell in table.some(side) if not is_missing(cell)}
    if not 1 < len(cells) <= len(table.names):  # answers are many and long
        return
    others = [
        name
        for name in table.names
        if name not in sides and {*word(name).split()} & {*ANSWERS} and holds_texts(table.first(name))
    ]
    named_by = {cell: [name for name in others if f" {word(name)}".endswith(f" {cell}")] for cell in cells}
    if all(len(names) == 1 for names in named_by.values()):
        first, second = sorted(names[0] for names in named_by.values())[:2]
        raise ValueError(
            f"columns {sides[0]} and {sides[1]} say which of {first} and {second} stood there in each row: write a "
            f"column of who won that names {first} or {second}, and give these by --chosen and --rejected with --label"
        )


def _check_no_test(table: Table, sides: tuple[str, str]) -> None:
    """**Raises:** ValueError for an ABX test, which asks of a third stimulus which of the two sides it is."""
    for name in (name for name in table.names if re.search(r"(?:^|_)x$", plain_name(name))):
        rows = list(zip(*(table.cells(each) for each in (name, *sides)), strict=True))
        if all(x in (a, b) for x, a, b in rows) and {x == a for x, a, b in rows if a != b} == {True, False}:
            raise ValueError(
                f"column {name} repeats {sides[0]} or {sides[1]} in every row, as an ABX test does that asks which of "
                "them it is: that is no preference, and if somebody also said which one is better, give that column "
                "by --label"
            )


def _check_scores(table: Table, sides: tuple[str, str], names: tuple[str, str] | None) -> None:
    """**Raises:** ValueError for a score of both sides that is higher for the rejected one in nearly all rows."""
    if names is None:
        return
    both = ([number_in(cell) for cell in table.cells(name)] for name in names)
    gaps = [a - b if a is not None and b is not None else None for a, b in zip(*both, strict=True)]
    if contradict_always([1.0] * len(gaps), gaps):
        raise ValueError(
            f"{names[0]} is below {names[1]} in nearly all rows, as if the sides had changed places: give --chosen "
            f"{sides[0]} --rejected {sides[1]} if those are right, or the other way round"
        )


def _check_ranks(table: Table, sides: tuple[str, str]) -> None:
    """**Raises:** ValueError for a rank of both sides that is higher for the chosen one in nearly all rows."""
    lower = by_plain_name(table)
    for forms in (("chosen_rank", "rejected_rank"), ("rank_chosen", "rank_rejected")):
        names = [lower.get(form) for form in forms]
        first, second = ([number_in(cell) for cell in table.cells(name)] for name in names)
        gaps = [
            b - a if a is not None and b is not None else None for a, b in zip(first, second, strict=True)
        ]
        if contradict_always([1.0] * len(gaps), gaps):
            raise ValueError(
                f"{names[0]} is above {names[1]} in nearly all rows, as if the sides had changed places: give --chosen "
                f"{sides[0]} --rejected {sides[1]} if those are right, or the other way round"
            )


def _check_vectors(table: Table, sides: tuple[str, str]) -> None:
    """**Raises:** ValueError for lists of numbers that are shortened, or written as nobody reads them."""
    for name in sides:
        cells = [cell for cell in table.some(name) if not is_missing(cell)]
        if cells and all(isinstance(cell, str) and VECTOR.fullmatch(cell.strip()) for cell in cells):
            raise ValueError(
                f"column {name} holds {shown(cells[0])} and the like: write lists of numbers whole, as [0.1, 0.2], or "
                "as Parquet"
            )


def check_asked(table: Table, asked: Columns) -> None:
    """**Raises:** ValueError for a column that is not there, or one side without the other."""
    for part, name in asked.names().items():
        if name not in table.columns and not (part == "label" and name == "none"):
            listed = ", ".join(table.names[:12]) + (", …" if len(table.names) > 12 else "")
            raise ValueError(f"{table.path} has no column {name}: it has {listed}.")
    if (asked.chosen is None) != (asked.rejected is None):
        raise ValueError("give both --chosen and --rejected, or neither.")
    if asked.chosen is not None and asked.chosen == asked.rejected:
        raise ValueError(f"--chosen and --rejected both name {asked.chosen}: give two columns.")


def prompt_of(table: Table, asked: Columns, sides: tuple[str, ...]) -> str | None:
    if asked.prompt is not None:
        return asked.prompt
    # x, y_w and y_l are how papers write a prompt and its answers.
    found = prompt_named(table, ("x",) if "y_w" in sides else ())
    return None if found in sides else found


def _sides(table: Table, asked: Columns) -> tuple[tuple[str, str] | None, str]:
    """(the sides, "asked", "named" if chosen and rejected in their names, or "open")."""
    if asked.chosen is not None and asked.rejected is not None:
        return (asked.chosen, asked.rejected), "open" if asked.label not in (None, "none") else "named"
    sides = chosen_sides(table)
    if sides is not None:
        return sides, "named"
    found = open_sides(table, (*LABELS, "chosen"))
    if len(found) == 2 and "chosen" in table.columns:  # says which of them was
        return (found[0], found[1]), "open"
    if "chosen" in table.columns or "rejected" in table.columns:
        lost = "rejected" if "chosen" in table.columns else "chosen"
        only = next(name for name in ("chosen", "rejected") if name in table.columns)
        of_choices = (
            "; if it says which option of a choice was chosen, name the column of the choice by --pair-id and, if "
            "choices are numbered anew for each person, that of the person by --rater"
            if only == "chosen" and is_number(table.first(only))
            else ""
        )
        raise ValueError(f"{table.path} lacks the column {lost}: a pair has chosen and rejected{of_choices}.")
    if len(found) > 2:
        listed = ", ".join(found)
        raise ValueError(
            f"{table.path} has {len(found)} answers a row ({listed}): name two by --chosen and --rejected, and --label"
        )
    if found:
        return (found[0], found[-1]), "open"
    named = _beside_rejected(table) or _chosen_texts(table)
    return named, "named" if named else ""


def _beside_rejected(table: Table) -> tuple[str, str] | None:
    """`response` and `rejected_response`, where no other column, such as `accepted_response`, may be the chosen one."""
    lower = by_plain_name(table)
    for answer in EXTENDED:
        sides = answer, f"rejected_{answer}"
        alone = {name for name in lower if name.endswith(answer)} == {*sides}
        if alone and all(holds_texts(table.first(lower[side])) for side in sides):
            return lower[sides[0]], lower[sides[1]]
    return None


def _chosen_texts(table: Table) -> tuple[str, str] | None:
    """`chosen_code` and `rejected_code`, else `best` and `worst` and the like, which may name things elsewhere: the
    only columns called so, if they hold texts that are longer than words and stand beside no scores.
    """
    if scores_of(table):
        return None
    pairs = {
        match["stem"]: (name, f"rejected{name[len('chosen') :]}")
        for name in table.names
        if (match := CHOSEN_TEXT.match(name)) and f"rejected{name[len('chosen') :]}" in table.columns
    }
    lower = by_plain_name(table)
    pairs = pairs or {f"{a} {b}": (lower[a], lower[b]) for a, b in LONG_SIDES if a in lower and b in lower}
    cells = [cell for pair in pairs.values() for name in pair for cell in table.some(name)]
    long = sum(holds_texts(cell) and (not isinstance(cell, str) or len(cell) > LONGEST) for cell in cells)
    one = len(pairs) == 1 and 2 * long > len(cells) and not NOT_ANSWERS.search(next(iter(pairs)))
    return next(iter(pairs.values())) if one else None


def _named_by_chosen(table: Table, sides):
    """Where `chosen` holds no answers but says which of two open sides won ("A", a model's name): those, and it as
    label."""
    opened = open_sides(table)
    if len(opened) != 2 or set(opened) & set(sides):
        return sides, "named", ()
    pair = opened[0], opened[-1]
    cells = [
        cell
        for cell in resolved(table, table.cells(sides[0]), pair, None, by_text=False)
        if cell not in (None, "")
    ]
    rule = word_rule(pair)
    said = sum(rule.value(cell) is not None for cell in cells if isinstance(cell, str | int | float))
    if not cells or said < 0.9 * len(cells):
        return sides, "named", ()
    return pair, "open", (sides[0],)


def tie_column(table: Table, asked: Columns, label: str | None, rule: Rule | None = None) -> str | None:
    """A column of ties: as asked, or one that is called so beside a label, or beside chosen and rejected."""
    if asked.tie is not None:
        return asked.tie
    for name in (n for n in table.names if n != label and word(n) in (*TIES, DRAW)):
        ties, bad = read_ties(table.cells(name), name)
        # A column may be called so and be of something else.
        if not bad and (word(name) in TIES or _are_ties(table, name, ties, label, rule)):
            return name
    return None


def _why_no_ties(table: Table) -> dict[str, str]:
    """What is said of draws that are not read as ties and could be."""
    draws = (name for name in table.names if word(name) == DRAW)
    return {
        name: f"may say which pairs are ties: --tie {name} reads it so"
        for name in draws
        if not read_ties(table.cells(name), name)[1]
    }


def _are_ties(table: Table, name: str, ties: np.ndarray, label: str | None, rule: Rule | None) -> bool:
    """Whether draws are ties: they are words, or numbers beside a label that says of none of them that a side won."""
    if ties.all() or all(number_in(cell) is None for cell in table.cells(name)):
        return not ties.all()
    if label is None or rule is None:
        return False
    return not any(tie and rule.value(cell) for tie, cell in zip(ties, table.cells(label), strict=True))


def _of_raters(table: Table, sides: tuple[str, str], raters: dict[str, str], asked: Columns) -> Mapped:
    """A pair for each rater who has a column of labels.

    **Raises:** ValueError for labels that may name places.
    """
    told = [cell for column in raters.values() for cell in table.cells(column)]
    if asked.first_is is None and asked.scale is None:
        check_places_of_votes(table, next(iter(raters.values())), told, sides)
    first, second = (table.cells(name) for name in sides)
    name = prompt_of(table, asked, sides)
    prompts = table.cells(name)
    votes = {
        # Not everybody says every word that a caller explains.
        who: (
            cells := table.cells(column),
            rule_for(cells if asked.first_is is None else told, column, sides, asked),
        )
        for who, column in raters.items()
    }
    broken = {cell.row for cell in table.bad}

    def rows():
        for row in range(table.n_rows):
            told = (
                (who, cell, rule)
                for who, (cells, rule) in votes.items()
                if (cell := cells[row]) not in (None, "")
            )
            judged = judged_by(told, first[row], second[row])
            if judged or row in broken:
                yield row, prompts[row], judged

    said = {
        "chosen": f"{sides[0]} or {sides[1]}",
        "label": ", ".join(raters.values()),
        "rater": "one column each",
    }
    used = (*raters.values(), *sides, name)
    return of_rows(
        table, "columns of raters", rows(), used, said, asked, ids=named(table, IDS), reads=OF_LABELS
    )


def _vector_name(table: Table, sides: tuple[str, str]) -> str:
    return "e" if isinstance(table.columns[sides[0]], np.ndarray) else sides[0]


def _said(sides, label, rule) -> dict[str, str]:
    if label is not None and sides is not None:
        return {"chosen": f"{sides[0]} or {sides[1]}, as {label} says", "label": f"{label}: {rule.says}"}
    return {"label": f"none: {sides[0]} won in every row"} if sides is not None else {}
