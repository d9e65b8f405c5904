"""Data sets in which a pair is a row, and whose labels mean what their authors say: one entry each.

A new one is an entry here and its test.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

from ..columns import Columns
from ..labels import Rule, is_missing, number_in, word, word_rule
from ..table import Table
from .base import OF_LABELS, Mapped, Roles, has, structured
from .deciding import with_rule
from .flags_of_sides import contradict_always
from .plain import check_asked, prompt_of
from .sides import IDS, label_columns, named, rater_named

NAME = "known columns"
ORDER = 80
# The turn whose answers were judged.
TURN = "turn"


class Known(NamedTuple):
    """`columns` by which it is known; `prompt`, `sides` and `label` among them; `numbers`: label to strength, above 0
    for the first side, None where labels are words; `says`: what they mean; `scores`: of the sides, that must agree;
    `doubtful`: whether these labels, all that there are, mean something else; `own`: columns that the authors' file
    has beside those, and a table that is only called so has not.
    """

    name: str
    columns: tuple[str, ...]
    prompt: str | None
    sides: tuple[str, str]
    label: str
    numbers: Callable[[str], float | None] | None = None
    says: str = ""
    scores: tuple[str, str] | None = None
    doubtful: Callable[[set[str]], bool] = lambda _: False
    own: tuple[str, ...] = ()


# −3 … 3, below 0 where the first response is better (Wang et al. 2024, 2025).
STRENGTH = {str(value): -float(value) for value in range(-3, 4)}
HELPSTEER = "below 0 the first response is better, above 0 the second"


def _alpaca(said: str) -> float | None:
    """1 is the first output, 2 the second, in between the surer the nearer; 1.5 and 0 are ties."""
    number = number_in(said)
    if number is None or not (number == 0 or 1 <= number <= 2):
        return None
    return 0.0 if number == 0 else 3.0 - 2.0 * number


def _never_first(labels: set[str]) -> bool:
    """Strengths of which none is below 0: of many pairs the first response is better in some."""
    return bool(labels) and all((number_in(label) or 0.0) > 0 for label in labels)


def _of_truths(labels: set[str]) -> bool:
    """0 and 1 without a 2: they number the outputs from 0, or say whether the first one won."""
    return "0" in labels and "2" not in labels


KNOWN = (
    Known("HelpSteer3", ("context", "response1", "response2", "overall_preference"), "context",
          ("response1", "response2"), "overall_preference", STRENGTH.get, HELPSTEER, doubtful=_never_first,
          own=("individual_preference", "domain")),
    Known("HelpSteer2", ("prompt", "response_1", "response_2", "preference_strength"), "prompt",
          ("response_1", "response_2"), "preference_strength", STRENGTH.get, HELPSTEER, doubtful=_never_first,
          own=("preference_statement", "preference_elaboration", "three_most_similar_preferences",
               "all_preferences_unprocessed")),
    Known("SHP", ("history", "human_ref_A", "human_ref_B", "labels"), "history",
          ("human_ref_A", "human_ref_B"), "labels", {"1": 1.0, "0": -1.0}.get, "1 is A, 0 is B",
          ("score_A", "score_B")),
    Known("AlpacaFarm", ("instruction", "output_1", "output_2", "preference"), "instruction",
          ("output_1", "output_2"), "preference", _alpaca,
          "1 is the first output, 2 the second", doubtful=_of_truths),
    Known("Chatbot Arena", ("model_a", "model_b", "winner", "conversation_a", "conversation_b"), None,
          ("conversation_a", "conversation_b"), "winner"),
    Known("MultiPref, one row a rater", ("completion_a", "completion_b", "overall_pref"), None,
          ("completion_a", "completion_b"), "overall_pref"),
)  # fmt: skip


def recognise(table: Table) -> bool:
    return _known(table) is not None


def reads_label(table: Table, label: str) -> bool:
    """The label of the data set alone."""
    return label == label_of(table)


def map(table: Table, asked: Columns) -> Mapped:
    """**Raises:** ValueError for labels that the scores of the same file contradict, or what it says in words."""
    known = _known(table)
    assert known is not None
    check_asked(table, asked)
    sides, label = known.sides, known.label
    if has(table, TURN) and known.label == "winner":
        table = _until_turn(table, sides)
    prompt = known.prompt or prompt_of(table, asked, sides) or ("text" if has(table, "text") else None)
    notes: tuple[str, ...] = ()
    if known.numbers is None or asked.scale is not None or asked.first_is is not None:
        table, rule = with_rule(table, label, sides, asked)
    else:
        numbers, words = known.numbers, word_rule(sides, asked.tie_is)
        tie = None if asked.tie_is is None else word(asked.tie_is)
        rule = Rule(
            known.says,
            lambda cell: 0.0 if word(cell) == tie else _first_known(numbers(word(cell)), words.value(cell)),
        )
        _check_scores(table, known, rule)
        _check_statements(table, known, rule)
        notes = _doubt(table, known)
    said = {"chosen": f"{sides[0]} or {sides[1]}, as {label} says", "label": f"{label}: {rule.says}"}
    roles = Roles((asked.prompt or prompt, *sides), {}, label, rule, asked.rater or rater_named(table), asked.weight,
                  asked.tie, asked.pair_id or named(table, IDS), said=said)  # fmt: skip
    return Mapped(known.name, table, roles, notes=notes, reads=OF_LABELS)


def _doubt(table: Table, known: Known) -> tuple[str, ...]:
    """A note on a sign that nothing but the names of columns tells, or nothing."""
    if not known.own or any(has(table, name) for name in known.own):
        return ()
    (first, second), label = known.sides, known.label
    numbers = [abs(number) for cell in table.cells(label) if (number := number_in(cell)) is not None]
    most = f"{max(numbers, default=0.0) or 3.0:g}"
    return (
        f"CHECK THE SIGN of {label}: it is read as in {known.name}, below 0 for {first} and above 0 for {second}; if "
        f"above 0 is for {first} in this file, give --scale {most} -{most}",
    )


def _until_turn(table: Table, sides: tuple[str, str]) -> Table:
    """The dialogues up to the answer that was judged: MT-bench judges both turns of a dialogue in rows of their own."""
    turns = [number_in(cell) for cell in table.cells(TURN)]
    if 0 in turns:  # they count from 0, or count something else
        return table
    cut = {
        name: [_first_answers(cell, turn) for cell, turn in zip(table.cells(name), turns, strict=True)]
        for name in sides
    }
    return dataclasses.replace(table, columns=table.columns | cut)


def _first_answers(cell: Any, turn: float | None) -> Any:
    """A dialogue without what comes after as many answers; anything else as it is."""
    said = structured(cell)
    if turn is None or not isinstance(said, list) or not all(isinstance(each, dict) for each in said):
        return cell
    answers = [
        i
        for i, each in enumerate(said)
        if each.get("role", each.get("from")) in ("assistant", "gpt", "model")
    ]
    return said[: answers[int(turn) - 1] + 1] if 1 <= turn < len(answers) else cell


def label_of(table: Table) -> str | None:
    """The label of the data set that is recognised."""
    known = _known(table)
    return None if known is None else known.label


def _known(table: Table) -> Known | None:
    return next((known for known in KNOWN if has(table, *known.columns) and _is(table, known)), None)


def _is(table: Table, known: Known) -> bool:
    """Whether the labels are as the data set's, and the only ones."""
    others = [name for name in label_columns(table, known.sides) if name != known.label]
    said = {word(cell) for cell in table.cells(known.label) if not is_missing(cell)}
    return not others and not known.doubtful(said)


def _check_scores(table: Table, known: Known, rule: Rule) -> None:
    if known.scores is None or not has(table, *known.scores):
        return
    rows = zip(table.cells(known.label), *(table.cells(name) for name in known.scores), strict=True)
    ways = [(rule.value(cell), _difference(a, b)) for cell, a, b in rows if cell is not None]
    told = [way * gap for way, gap in ways if way and gap]
    if told and sum(t < 0 for t in told) > len(told) / 2:
        first, second = known.scores
        raise ValueError(
            f"{table.path}: {known.label} contradicts {first} and {second} in most rows: say which label means the "
            f"first side, by --label {known.label} --first-is 0 or --first-is 1."
        )


def _check_statements(table: Table, known: Known, rule: Rule) -> None:
    """**Raises:** ValueError for what another column says of the other side in nearly all of many rows."""
    value = word_rule(known.sides).value
    ways = [rule.value(cell) for cell in table.cells(known.label)]
    for name in (name for name in table.names if name not in known.columns):
        if not any(value(cell) for cell in table.some(name) if _may_name(cell)):
            continue
        said = [value(cell) if _may_name(cell) else None for cell in table.cells(name)]
        if contradict_always(ways, said):
            raise ValueError(
                f"{known.label} ({known.says}) and {name} name different sides in nearly all rows: give --label "
                f"{name}, or say by --scale what {known.label} means"
            )


def _may_name(cell: Any) -> bool:
    """Whether a cell may name a side: words, and the 1 and 2 of a column such as `chosen`."""
    return isinstance(cell, str | int | float) and not isinstance(cell, bool)


def _first_known(number: float | None, said: float | None) -> float | None:
    return said if number is None else number


def _difference(a: Any, b: Any) -> float:
    first, second = number_in(a), number_in(b)
    return 0.0 if first is None or second is None else first - second
