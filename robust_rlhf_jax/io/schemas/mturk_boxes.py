"""MTurk's batch files with a column of true and false for each button or box: `Answer.A.on`, `Answer.choice.B`; and
`Answer.taskAnswers`, which holds the same as JSON.

Source: docs.aws.amazon.com/sagemaker/latest/dg/sms-ui-template-crowd-radio-button.html: what a form gives is
`{"name": {"value": true}}`; the value of a box that was given none is `on`.
"""

import dataclasses
import re

from ..columns import Columns
from ..labels import Rule, is_missing, word, word_rule, yes_or_no
from ..table import Table
from . import plain
from .base import Mapped, has, records
from .choice_features import HUMP
from .plain import check_asked
from .sides import LABELS, chosen_sides, label_columns, named, open_sides

NAME = "MTurk's boxes"
ORDER = 84
ANSWERS = "Answer.taskAnswers"
COLUMN = re.compile(r"answer\.(?P<question>[^.]+)(?:\.(?P<option>.+))?", re.I)
# Values of boxes that stand for themselves.
ALONE = ("on", "value", "checked", "true")
# A box's own question.
OWN = "Answer"


def recognise(table: Table) -> bool:
    made = _with_answers(table)
    sides = _sides(made)
    if sides is None:
        return False
    of_json = made is not table and bool(label_columns(made, sides))
    return of_json or (named(made, LABELS) is None and bool(_questions(made, sides)))


def reads_label(table: Table, label: str) -> bool:
    made = _with_answers(table)
    sides = _sides(made)
    return sides is not None and (
        any(label in boxes.values() for boxes in _questions(made, sides).values())
        or (made is not table and label in made.columns)
    )


def map(table: Table, asked: Columns) -> Mapped:
    """The side whose box is ticked, or a tie where a box says so; none or several is no label.

    **Raises:** ValueError where the boxes of several questions name the sides; and as `plain`.
    """
    made = _with_answers(table)
    check_asked(made, asked)
    sides = _sides(made)
    assert sides is not None
    questions = _questions(made, sides)
    if asked.label is not None:
        questions = {name: boxes for name, boxes in questions.items() if asked.label in boxes.values()}
    if not questions:
        return _of_file(plain.map(made, asked), table, ())
    if len(questions) > 1:
        some = " and ".join(next(iter(boxes.values())) for boxes in questions.values())
        raise ValueError(
            f"{some} belong to questions that each name the sides: choose one of them by --label"
        )
    ((_, boxes),) = questions.items()
    label = f"the box of {', '.join(boxes.values())}"
    others = {name: column for name, column in made.columns.items() if name not in boxes.values()}
    made = dataclasses.replace(made, columns=others | {label: _ticked(made, boxes, sides)})
    first, second = sides
    found = plain.map(made, dataclasses.replace(asked, label=label, chosen=first, rejected=second))
    said = found.roles.said | {"chosen": f"{first} or {second}, whose box is ticked", "label": label}
    found = dataclasses.replace(found, roles=dataclasses.replace(found.roles, said=said))
    return _of_file(found, table, tuple(boxes.values()))


def _of_file(found: Mapped, table: Table, boxes: tuple[str, ...]) -> Mapped:
    """By the names of the file's columns, of which one may hold several answers."""
    columns = tuple(name if name in table.columns else ANSWERS for name in boxes) or (ANSWERS,)
    cells_of = {} if found.roles.label is None else {found.roles.label: (columns[0], False)}
    return dataclasses.replace(found, schema=NAME, used=(*found.used, *columns), cells_of=cells_of)


def _with_answers(table: Table) -> Table:
    """The table with a column for each answer that `Answer.taskAnswers` holds."""
    if not has(table, ANSWERS):
        return table
    rows = [next(iter(records(cell)), {}) for cell in table.cells(ANSWERS)]
    flat = [
        {
            name: cell
            for question, said in row.items()
            for name, cell in (
                ((f"Answer.{question}.{option}", cell) for option, cell in said.items())
                if isinstance(said, dict)
                else [(f"Answer.{question}", said)]
            )
        }
        for row in rows
    ]
    names = dict.fromkeys(name for row in flat for name in row if name not in table.columns)
    added = {name: [row.get(name) for row in flat] for name in names}
    return dataclasses.replace(table, columns=dict(table.columns) | added) if added else table


def _sides(table: Table) -> tuple[str, str] | None:
    """The two texts that a task shows, if it has answers."""
    if not any(COLUMN.fullmatch(name) for name in table.names) or chosen_sides(table):
        return None
    shown = dataclasses.replace(
        table, columns={n: c for n, c in table.columns.items() if not COLUMN.fullmatch(n)}
    )
    found = open_sides(shown, ())
    return (found[0], found[1]) if len(found) == 2 else None


def _questions(table: Table, sides: tuple[str, str]) -> dict[str, dict[str, str]]:
    """{question: {option: its column}} where one box names the first side and one the second."""
    found: dict[str, dict[str, str]] = {}
    rule = _rule(sides)
    for name in table.names:
        match = COLUMN.fullmatch(name)
        if match is None or not _boxes(table, name):
            continue
        question, option = match["question"], match["option"]
        if option is None or option.casefold() in (*ALONE, question.casefold()):
            if rule.value(HUMP.sub(" ", question)) is None:  # a consent, or another box of its own
                continue
            question, option = OWN, question
        found.setdefault(question, {})[option] = name
    ways = {q: [rule.value(HUMP.sub(" ", option)) for option in of] for q, of in found.items()}
    return {
        q: of
        for q, of in found.items()
        if [sum((way or 0) * s > 0 for way in ways[q]) for s in (1, -1)] == [1, 1]
    }


def _rule(sides: tuple[str, str]) -> Rule:
    """How options are read, by the names of the sides without the platform's prefix."""
    first, second = (HUMP.sub("_", name.split(".", 1)[-1]) for name in sides)
    return word_rule((first, second))


def _boxes(table: Table, name: str) -> bool:
    """Whether the cells say true or false alone, or `on` where a box is ticked."""
    said = {word(cell) for cell in table.some(name) if not is_missing(cell)}
    return bool(said) and said <= {"true", "false", "on"}


def _ticked(table: Table, boxes: dict[str, str], sides: tuple[str, str]) -> list[str | None]:
    """The side, or the option, that is ticked in each row; None where none is."""
    rule, options = _rule(sides), [HUMP.sub(" ", option) for option in boxes]
    ways = [rule.value(option) for option in options]
    says = [
        option if way is None else "tie" if way == 0 else "first" if way > 0 else "second"
        for option, way in zip(options, ways, strict=True)
    ]
    ticked = []
    for cells in zip(*(table.cells(name) for name in boxes.values()), strict=True):
        of_row = [
            said for said, cell in zip(says, cells, strict=True) if word(cell) == "on" or yes_or_no(cell)
        ]
        ticked.append(" and ".join(of_row) or None)
    return ticked
