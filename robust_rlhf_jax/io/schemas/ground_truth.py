"""Amazon SageMaker Ground Truth: the output manifest, and what workers said, as a job hands it to be consolidated.

Sources: docs.aws.amazon.com/sagemaker/latest/dg/sms-data-output.html: beside the label attribute NAME, NAME-metadata
has the class's name; and sms-custom-templates-step3-lambda-requirements.html: `annotations` with `workerId` and the
form's answers in `annotationData.content`. What was sent to workers, columns or an object in `source`, comes back.
"""

import dataclasses
from collections import Counter
from typing import Any

from ..columns import Columns
from ..labels import is_missing, word_rule
from ..table import Table
from . import plain, votes
from .base import Mapped, has, records, structured
from .label_studio import only_question
from .sides import chosen_sides, open_sides

NAME = "SageMaker Ground Truth"
ORDER = 83
METADATA, CLASS = "-metadata", "class-name"
WORKERS = ("dataObject", "annotations")


def recognise(table: Table) -> bool:
    if has(table, *WORKERS):
        return _sides(_sent(table, "dataObject")) is not None and bool(_answers(table.first("annotations")))
    return bool(_attributes(table)) and _sides(_sent(table, "source")) is not None


def reads_label(table: Table, label: str) -> bool:
    return has(table, *WORKERS) or label in _attributes(table)


def map(table: Table, asked: Columns) -> Mapped:
    """The class, or what each worker chose, names the side that won.

    **Raises:** ValueError where several attributes or questions name the sides; and as `plain` and `votes`.
    """
    return _of_workers(table, asked) if has(table, *WORKERS) else _of_manifest(table, asked)


def _of_manifest(table: Table, asked: Columns) -> Mapped:
    made = _sent(table, "source")
    sides = _sides(made)
    assert sides is not None
    attribute = only_question(_attributes(table), asked)
    metadata = attribute + METADATA
    told = [cell if isinstance(cell := structured(c), dict) else {} for c in table.cells(metadata)]
    label = f"{CLASS} of {metadata}"
    made = dataclasses.replace(made, columns=dict(made.columns) | {label: [one.get(CLASS) for one in told]})
    by_hand = dataclasses.replace(asked, label=label, chosen=sides[0], rejected=sides[1])
    found = plain.map(made, by_hand)
    machine = sum(one.get("human-annotated") == "no" for one in told)
    notes = (f"Labels that the job's model gave, not people: {machine:,}.",) if machine else ()
    ignored = found.roles.ignored | {attribute: f"numbers the classes that {metadata} names"}
    found = dataclasses.replace(found, roles=dataclasses.replace(found.roles, ignored=ignored))
    return _of_file(found, table, "source", (metadata,), {label: (metadata, False)}, notes)


def _of_workers(table: Table, asked: Columns) -> Mapped:
    made = _sent(table, "dataObject")
    sides = _sides(made)
    assert sides is not None
    told = [_answers(cell) for cell in table.cells("annotations")]
    rule, ways = word_rule(sides), Counter()
    for _, answers in (one for row in told for one in row):
        ways.update(question for question, cell in answers.items() if rule.value(cell))
    question = only_question(ways, asked)
    given = [
        [
            {"rater": who, "label": answers.get(question)}
            for who, answers in row
            if not is_missing(answers.get(question))
        ]
        for row in told
    ]
    names = [name for name in made.names if name not in votes.COLUMNS]
    columns = {name: made.columns[name] for name in names} | {"annotations": given}
    found = votes.map(dataclasses.replace(made, columns=columns), dataclasses.replace(asked, label=None))
    return _of_file(found, table, "dataObject", ("annotations",), {}, ())


def _of_file(
    found: Mapped, table: Table, sent: str, used: tuple[str, ...], cells_of: dict, notes: tuple[str, ...]
) -> Mapped:
    """By the names of the file's columns; what was sent in one comes back in it."""
    text = found.roles.text or ()
    inside = {name: (sent, False) for name in text if name is not None and name not in table.columns}
    mine = (
        *(n for n in found.used if n in table.columns),
        *used,
        *((sent,) if inside else ()),
    )
    return dataclasses.replace(
        found,
        schema=NAME,
        used=mine,
        notes=(*found.notes, *notes),
        cells_of={**found.cells_of, **inside, **cells_of},
    )


def _attributes(table: Table) -> list[str]:
    """The label attributes that have a class's name."""
    names = (name.removesuffix(METADATA) for name in table.names if name.endswith(METADATA))
    return [name for name in names if has(table, name) and CLASS in _object(table.first(name + METADATA))]


def _object(cell: Any) -> dict:
    cell = structured(cell)
    return cell if isinstance(cell, dict) else {}


def _sent(table: Table, column: str) -> Table:
    """The table with what the objects in a column hold, or in its `content`, as columns of their own."""
    if not has(table, column):
        return table
    rows = []
    for cell in table.cells(column):
        of = _object(cell)
        content = _object(of.get("content"))
        of = content or of
        rows.append(_object(of.get("source")) or of)
    names = dict.fromkeys(name for row in rows for name in row if name not in table.columns)
    added = {name: [row.get(name) for row in rows] for name in names}
    return dataclasses.replace(table, columns=dict(table.columns) | added)


def _sides(table: Table) -> tuple[str, str] | None:
    found = () if chosen_sides(table) else open_sides(table, ())
    return (found[0], found[1]) if len(found) == 2 else None


def _answers(cell: Any) -> list[tuple[str, dict[str, Any]]]:
    """(worker, {question: what was chosen}) of each annotation."""
    found = []
    for annotation in records(cell):
        content = _object(_object(annotation.get("annotationData")).get("content"))
        if content and "workerId" in annotation:
            chosen = {question: _chosen(said) for question, said in content.items()}
            found.append((str(annotation["workerId"]), chosen))
    return found


def _chosen(said: Any) -> Any:
    """The label of a classifier, the only button of several that was pressed, or a word."""
    if not isinstance(said, dict):
        return said
    if "label" in said:
        return said["label"]
    pressed = [option for option, yes in said.items() if yes is True]
    return pressed[0] if len(pressed) == 1 else None
