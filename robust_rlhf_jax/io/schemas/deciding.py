"""Which column says who won, and by which rule; what could be one and is not used."""

import dataclasses
import itertools
import operator
import re
from collections import Counter

from ..columns import Columns
from ..label_rules import OF_LOSERS, rule_for
from ..labels import TRUTHS, Rule, is_missing, suffixes, verdict_in, word, word_rule
from ..table import Table
from .flags_of_sides import check_flags
from .labels_in_objects import check_objects, opened, out_of_objects
from .named_winners import ARMS, MODELS, WINNERS_IDS, beside, ids_of_winners, resolved
from .numbers import NoSides, is_number, mostly_numbers
from .shown_places import check_places
from .sides import (
    KEYS_OF_TESTS,
    LABELS,
    by_plain_name,
    holds_texts,
    label_columns,
    plain_name,
    rater_named,
)

# Names of scales, which are labels where all cells are words such as "A is slightly better".
SCALES = (
    "likert", "likert_scale", "likert_rating", "likert_score", "likert_preference", "preference_likert", "rating",
    "scale", "preference_rating", "preference_scale", "preference_score", "comparison_rating", "overall_rating",
    "pairwise_rating",
)  # fmt: skip
# The question that asks for a label, in a form's export; one for the more helpful or the longer side asks another.
ASKED = r"(?:better|best|prefer\w*|besser\w*|bevorzug\w*|meilleure?|préfér\w*|mejor|prefier\w*|migliore)"
# Names of labels that may be something else beside sides called chosen and rejected: they are read beside open sides,
# if no other label is there.
FURTHER = (
    "preferred_index", "preferred_idx", "chosen_index", "chosen_idx", "winner_index", "winner_idx", "winning_index",
    "best_index", "best_idx", "selected_index", "selected_idx", "best_response", "best_answer", "winner_model",
    "chosen_model", "chosen_model_name", "preferred_model_name", "winner_name", "vote_type", "pairwise_choice",
)  # fmt: skip
# Labels that take the place of an earlier one, where no rater's own stand beside them.
SETTLED = re.compile(
    r"(?:final|adjudicated|corrected|revised|resolved|reviewed)_(?P<after>\w+)|"
    r"(?P<before>\w+)_(?:final|adjudicated|corrected|revised|resolved|reviewed)"
)
# Columns of numbers that may say by how much one side is better, or how probably.
GRADES = re.compile(
    r"(?:^|_)(?:margin|diff|difference|delta|gap|slider|rating|likert|probability|prob|p|preference|strength|index|idx|"
    r"scale|wins?|better|worse|lost|loses)(?:_|$)"
)
QUESTION = re.compile(
    rf"(?:\w{{1,6}}[.:)] ?)?(?:which|what|who|whose|welche\w*|quelle?|cu[aá]l|quale)\b.*\b{ASKED}\b"
    r"(?:\W+(?:overall|answer|response|completion|one|option|of|the|two|for|you|vous|or|antwort|réponse|respuesta|"
    r"risposta|[ab12]|left|right))*\W*",
    re.I,
)
TURNED_ROUND = re.compile(r"\b(?:not|n't|never|less|least|nicht|pas|moins|no|menos|non|meno)\b", re.I)
# Labels that may well be something else beside sides that are called chosen and rejected, where they are no words.
STRENGTHS = (
    "strength", "preference_strength", "overall_preference", "labels", "annotation", "result", "comparison",
)  # fmt: skip
# Columns of both sides that may score them, whatever their cells; and numbers that do not.
SCORED = re.compile(r"(?:score|rating|reward|grade|quality)s?$")
NO_SCORE = re.compile(
    r"(?:^|_)(?:\w*id|len|length|\w*tokens?|words?|time|latency|elo|conf|confidence|logps?|seed|turns?)$"
)


def with_rule(
    table: Table, label: str, sides: tuple[str, str], asked: Columns, sentences: bool = True
) -> tuple[Table, Rule]:
    """The rule of a label; its cells that are a row's model, the text of one of its sides, or a judgement that
    ends with its verdict in `sentences`, are made words."""
    cells, key = out_of_objects(table.cells(label), word_rule(sides, asked.tie_is))
    if key:
        table = dataclasses.replace(table, columns=table.columns | {label: cells})
        table, rule = with_rule(table, label, sides, asked, sentences)
        return table, dataclasses.replace(rule, says=f"{key} in its objects, {rule.says}")
    if asked.scale is None and asked.first_is is None:
        check_objects(label, cells)
        _check_one_reading(table, label, cells, sides)
        cells = resolved(table, _verdicts(table, cells, sides, sentences), sides, asked.tie_is, ids_of=label)
        table = dataclasses.replace(table, columns=table.columns | {label: cells})
    if "chosen" in sides[0] and asked.scale is None and asked.first_is is None and _strengths(cells):
        return table, Rule(
            "how much better the chosen side is", lambda cell: float(str(cell)) if is_number(cell) else None
        )
    return table, rule_for(cells, label, sides, asked)


def _check_one_reading(table: Table, label: str, cells: list, sides: tuple[str, str]) -> None:
    """**Raises:** ValueError for a word for a side that is the name of the other side's model, or its id."""
    said = word_rule(sides).value
    models = [("model", *map(table.cells, names)) for names in beside(table, sides, MODELS)]
    arms = [("model", *map(table.cells, names)) for names in beside(table, sides, ARMS)]
    models += [arm for arm in arms if not any(map(operator.eq, *arm[1:]))]
    called = plain_name(label) in WINNERS_IDS
    ids = [] if called else [("id", *names) for names in ids_of_winners(table, label, cells, sides)]
    for what, first, second in (*models, *ids):
        for row, (cell, a, b) in enumerate(zip(cells, first, second, strict=True)):
            named = word(cell) if what == "id" else cell
            way = float(named == a) - float(named == b)
            if way and isinstance(named, str) and (said(named) or 0.0) * way < 0:
                raise ValueError(
                    f"column {label} holds {cell!r} in row {row + 1}, which names a side and the {what} of the "
                    f"other side: say by --first-is which word means the first side, or write the {what}s in "
                    "other words"
                )


def _verdicts(table: Table, cells: list, sides: tuple[str, str], sentences: bool) -> list:
    """The verdicts in long judgements; a label that repeats the text of a side stays as it is."""
    rule = word_rule(sides)
    found = [verdict_in(cell, rule, sentences) for cell in cells]
    if found == cells:
        return cells
    texts = (table.cells(name if name in table.columns else None) for name in sides)
    return [
        cell if cell in of_row else verdict
        for cell, verdict, *of_row in zip(cells, found, *texts, strict=True)
    ]


def find_label(table: Table, sides: tuple[str, str], asked: Columns, named_by: tuple[str, ...] = ()) -> str:
    """The column that says which of two open sides won.

    **Raises:** ValueError for none, for several that disagree, and for one that flags or ranks of the sides contradict.
    """
    found, error = {}, None
    candidates = called_as_labels(table, sides, named_by)
    # What a judge says in sentences decides where no column of labels does.
    for sentences, name in itertools.product((False, True), candidates):
        if sentences and found:
            break
        try:
            made, rule = with_rule(table, name, sides, asked, sentences)
        except ValueError as reason:
            error = error or reason
            continue
        found[name] = [rule.value(cell) if cell not in (None, "") else None for cell in made.cells(name)]
    if not found:
        if error is not None:
            raise error
        if not candidates and _single(table, sides):
            raise NoSides
        raise ValueError(
            f"{table.path} has {sides[0]} and {sides[1]}, but no label{perhaps(table, sides)}: "
            f"{_scores_of_both(table, sides) or _grades(table, sides)}name its column by "
            f"--label, or say by --label none that {sides[0]} always won, with --chosen {sides[0]} --rejected "
            f"{sides[1]}."
        )
    name, first = next(iter(found.items()))
    check_places(opened(table, name, word_rule(sides, asked.tie_is)), name, sides)
    check_flags(table, name, sides, first)
    for other, values in {**found, **_settled(table, name, sides)}.items():
        if any(a is not None and b is not None and a * b < 0 for a, b in zip(first, values, strict=True)):
            raise ValueError(
                f"{name} and {other} both could be the label and disagree: choose by --label {name} or --label {other}"
            )
    return name


def called_as_labels(table: Table, sides: tuple[str, str], named_by: tuple[str, ...] = ()) -> list[str]:
    """The columns whose names say that they may be the label of two open sides."""
    known = LABELS + WINNERS_IDS if beside(table, sides, ("id",)) else LABELS
    found = [*named_by, *(n for n in table.names if plain_name(n) in known and n not in sides)]
    return found or _questions(table, sides) or _worded_scales(table, sides) or _further(table)


def _further(table: Table) -> list[str]:
    """The only column called by one of `FURTHER`."""
    found = [name for name in table.names if plain_name(name) in FURTHER]
    return found if len(found) == 1 else []


def _settled(table: Table, label: str, sides: tuple[str, str]) -> dict[str, list[float | None]]:
    """What columns such as `final_winner` say beside a label: {} where a label is one rater's."""
    if rater_named(table) is not None:
        return {}
    value, found = word_rule(sides).value, {}
    for name in (name for name in _naming_both(table, sides) if name != label):
        match = SETTLED.fullmatch(plain_name(name))
        if match and (match["after"] or match["before"]) in LABELS:
            found[name] = [None if is_missing(cell) else value(cell) for cell in table.cells(name)]
    return found


def _grades(table: Table, sides: tuple[str, str]) -> str:
    """What to do where the only column of such numbers is called as grades of a pair are."""
    found = [
        name
        for name in table.names
        if name not in sides and GRADES.search(plain_name(name)) and mostly_numbers(table.some(name))
    ]
    if len(found) != 1:
        return ""
    (name,) = found
    return (
        f"if {name} says it, give --label {name}, and by --scale its numbers for the clearest win of {sides[0]} and of "
        f"{sides[1]}, else "
    )


def perhaps(table: Table, sides: tuple[str, str]) -> str:
    """The columns of words that name both sides, in brackets."""
    found = _naming_both(table, sides)
    return f" known by its name (the cells of {', '.join(found)} name sides)" if found else ""


def _questions(table: Table, sides: tuple[str, str]) -> list[str]:
    """The only column whose cells name sides, if it is called by the question which one is better."""
    found = _naming_both(table, sides)
    against = any(pattern.search(name) for name in found for pattern in (OF_LOSERS, TURNED_ROUND))
    return found if len(found) == 1 and QUESTION.fullmatch(found[0].strip()) and not against else []


def _worded_scales(table: Table, sides: tuple[str, str]) -> list[str]:
    """The columns called after a scale that say in words which side is better, not in grades such as A and B."""
    found = (name for name in _naming_both(table, sides) if plain_name(name) in SCALES)
    return [name for name in found if any(len(word(cell).split()) > 2 for cell in table.some(name))]


def _naming_both(table: Table, sides: tuple[str, str]) -> list[str]:
    """The columns whose first cells are all words that name sides or a tie, and both sides."""
    rule, found = word_rule(sides), []
    for name in (name for name in table.names if name not in sides):
        cells = [cell for cell in table.some(name) if not is_missing(cell)]
        ways = [way for cell in cells if isinstance(cell, str) and (way := rule.value(cell)) is not None]
        if len(ways) == len(cells) and min(ways, default=0.0) < 0 < max(ways, default=0.0):
            found.append(name)
    return found


def _scores_of_both(table: Table, sides: tuple[str, str]) -> str:
    """What to write where columns such as quality_a and quality_b may score the sides."""
    a, b = suffixes(sides)
    lower = by_plain_name(table)
    for name in (
        name for name in reversed(lower) if a and name.endswith(f"_{a}") and lower[name] not in sides
    ):
        stem = name.removesuffix(f"_{a}")
        other = lower.get(f"{stem}_{b}")
        scored = SCORED.search(stem) or (
            mostly_numbers(table.some(lower[name])) and not NO_SCORE.search(stem)
        )
        if other is not None and scored:
            return (
                f"if {lower[name]} and {other} score them, write numbers as score_{a} and score_{b}, the higher for "
                "the better side, else "
            )
    return ""


def harmless_labels(table: Table, sides: tuple[str, str], asked: bool) -> dict[str, str]:
    """Why a column named like a label is ignored where the names of the sides say which one was chosen.

    **Raises:** ValueError for one that says, or could say, that the second side won somewhere.
    """
    rule, reasons, lower = word_rule(sides, apart=False), {}, by_plain_name(table)
    doubted = label_columns(table, sides)
    for name in (lower[known] for known in LABELS if known in lower and lower[known] not in sides):
        cells = Counter(
            word(cell)
            for cell in out_of_objects(table.cells(name), rule)[0]
            if isinstance(cell, str | int | float | bool) and not is_missing(cell)
        )
        values = set(cells)
        test = plain_name(name) in KEYS_OF_TESTS and name not in doubted
        against = not test and _speaks_against(cells, sides, rule)
        if against or (name in doubted and _could_speak(name, values, rule, asked)):
            raise ValueError(
                f"{table.path}: column {name} could be the label that says which side won: give --label {name}, or "
                f"--label none if {sides[0]} always won."
            )
        if name in doubted:
            reasons[name] = f"says nothing against {sides[0]}; --label {name} would use it"
    return reasons


def _speaks_against(cells: Counter, sides: tuple[str, str], rule: Rule) -> bool:
    """Whether words say that the second side won, or beside some that a side won, that it was a tie.

    A single word such as "b" or "none" may be a topic: those speak where most cells say something.
    """
    ways = {said: way for said in cells if not is_number(said) and (way := rule.value(said)) is not None}
    if 2 * sum(cells[said] for said in ways) <= sum(cells.values()):
        clear = {"chosen", "rejected", word(sides[0]), word(sides[1])}
        ways = {said: way for said, way in ways.items() if said in clear or len(said.split()) > 1}
    told = set(ways.values())
    return min(told, default=0.0) < 0 or (0.0 in told and len(told) > 1)


def _could_speak(name: str, values: set[str], rule: Rule, asked: bool) -> bool:
    """Whether numbers, or true and false, may say who won."""
    told = {way for v in values if (way := rule.value(v)) is not None}
    numbers = [float(v) for v in values if is_number(v)]
    graded = name.casefold() in STRENGTHS and not asked and min(numbers, default=0) >= 0
    unclear = (numbers or values <= TRUTHS) and not told and not graded
    return len(values) > 1 and bool(min(told, default=0.0) < 0 or unclear)


def _strengths(cells: list) -> bool:
    """Numbers that are never negative and more than two: degrees, not names of sides."""
    values = [float(cell) for cell in cells if is_number(cell)]
    return (
        len(values) == sum(c is not None and c != "" for c in cells)
        and min(values, default=-1) >= 0
        and len(set(values)) > 2
    )


def _single(table: Table, sides: tuple[str, str]) -> bool:
    return not all(holds_texts(table.first(name)) for name in sides)
