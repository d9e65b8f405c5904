"""Pairwise evaluations of Vertex AI: `response` of the candidate beside `baseline_model_response`, and a metric's
`pairwise_choice` of BASELINE, CANDIDATE or TIE."""

import dataclasses

from ..columns import Columns
from ..labels import Rule, is_missing, word
from ..table import Table
from .base import OF_LABELS, Mapped, Roles
from .deciding import with_rule
from .plain import check_asked, prompt_of
from .sides import IDS, by_plain_name, named, rater_named

NAME = "Vertex AI"
ORDER = 79
# What the columns of the baseline and of the candidate are called.
SIDES = (
    ("baseline_model_response", "response"), ("baseline_response", "candidate_response"),
    ("baseline_response", "response"), ("baseline_model_response", "candidate_model_response"),
)  # fmt: skip
CHOICE = "pairwise_choice"
SAYS = {"baseline": 1.0, "candidate": -1.0, "tie": 0.0}


def recognise(table: Table) -> bool:
    return _sides(table) is not None and bool(_choices(table))


def reads_label(table: Table, label: str) -> bool:
    return label in _choices(table)


def map(table: Table, asked: Columns) -> Mapped:
    """**Raises:** ValueError for the choices of several metrics, of which the caller names none."""
    check_asked(table, asked)
    sides, choices = _sides(table), _choices(table)
    assert sides is not None
    if asked.label is None and len(choices) > 1:
        raise ValueError(
            f"{' and '.join(choices[:3])} are the choices of {len(choices)} metrics: name one by --label"
        )
    label = asked.label or choices[0]
    rule = Rule("BASELINE or CANDIDATE", lambda cell: SAYS.get(word(cell)))
    if asked.first_is is not None or asked.scale is not None:
        table, rule = with_rule(table, label, sides, asked)
    elif asked.tie_is is not None:
        known, tie = rule, word(asked.tie_is)
        rule = dataclasses.replace(rule, value=lambda cell: 0.0 if word(cell) == tie else known.value(cell))
    said = {"chosen": f"{sides[0]} or {sides[1]}, as {label} says", "label": f"{label}: {rule.says}"}
    roles = Roles(
        (prompt_of(table, asked, sides), *sides), {}, label, rule, asked.rater or rater_named(table), asked.weight,
        asked.tie, asked.pair_id or named(table, IDS), said=said,
    )  # fmt: skip
    return Mapped(NAME, table, roles, reads=OF_LABELS)


def _sides(table: Table) -> tuple[str, str] | None:
    lower = by_plain_name(table)
    return next(((lower[a], lower[b]) for a, b in SIDES if a in lower and b in lower), None)


def _choices(table: Table) -> list[str]:
    """The columns of choices, one for each metric: `pairwise_choice`, `fluency/pairwise_choice`."""
    found = (name for name in table.names if name.casefold().split("/")[-1] == CHOICE)
    return [name for name in found if _says_who(table, name)]


def _says_who(table: Table, name: str) -> bool:
    said = {word(cell) for cell in table.some(name) if not is_missing(cell)}
    return bool(said & {"baseline", "candidate"})
