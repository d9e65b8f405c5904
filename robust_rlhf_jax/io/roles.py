"""Which column plays which part: sides, features, label, rater, weight, tie, id; and why the others play none."""

import dataclasses
import re

from .table import Table

# (prompt-less) names of the two sides of a pair of texts, chosen first; and of sides that a label decides between.
CHOSEN_SIDES = (("chosen", "rejected"), ("text_chosen", "text_rejected"), ("chosen_text", "rejected_text"),
                ("chosen_response", "rejected_response"), ("preferred", "dispreferred"))  # fmt: skip
OPEN_SIDES = (("response_a", "response_b"), ("response1", "response2"), ("response_1", "response_2"),
              ("response_0", "response_1"), ("completion_a", "completion_b"), ("answer_a", "answer_b"),
              ("text_a", "text_b"), ("option_a", "option_b"))  # fmt: skip
PROMPTS = ("prompt", "question", "instruction", "context")
LABELS = ("label", "preference", "overall_preference", "winner", "choice", "strength", "preference_strength")
RATERS = ("rater", "rater_id", "annotator", "annotator_id", "worker", "worker_id", "user_id")
IDS = ("id", "pair_id", "comparison_id")
SCORE = "(?:scores?|ratings?|rewards?)"
SCORES = re.compile(
    rf"^(?:{SCORE}_(?P<side>chosen|rejected)(?:_(?P<a>.+))?|(?P<side2>chosen|rejected)_{SCORE}(?:_(?P<b>.+))?)$"
)
NUMERIC = re.compile(r"^(chosen|rejected)_(.+)$")
KINDS = ("numeric", "embeddings", "texts", "scores")


@dataclasses.dataclass(frozen=True)
class Columns:
    """Names of columns, each None where the file's own names decide.

    `chosen`, `rejected`: the two sides, texts or embeddings; with `label` the first and the second side. `rater`,
    `weight`, `tie` are used only where given, but for a `rater` that is called so. `first_is`: the label that means
    the first side.
    """

    chosen: str | None = None
    rejected: str | None = None
    prompt: str | None = None
    label: str | None = None
    first_is: str | None = None
    rater: str | None = None
    weight: str | None = None
    tie: str | None = None
    id: str | None = None


class NoSides(ValueError):
    """A file without anything that is chosen or rejected."""


def choose_kind(roles: "Roles", asked: str = "auto") -> str:
    """Which of `KINDS` the features are made of: as asked, else the first that the file has.

    Numbers come before texts, and texts before the scores of reward models, but for RewardBench's output.

    **Raises:** ValueError for a kind that the file does not have.
    """
    there = {kind: bool(columns) for kind, columns in roles.numbers.items()} | {
        "texts": roles.text is not None
    }
    if asked == "auto":
        rewardbench = roles.text is not None and roles.text[1] == "text_chosen" and there["scores"]
        order = ("scores", *KINDS) if rewardbench else ("embeddings", *KINDS)
        asked = next((kind for kind in order if there[kind]), "")
    if not there.get(asked):
        if asked:
            raise ValueError(f"the file has no {asked} to make features of: leave --features out")
        raise NoSides
    return asked


@dataclasses.dataclass(frozen=True)
class Roles:
    """What was decided: `text` (prompt, first, second) or None; `numbers` {feature: (first, second)} by kind."""

    text: tuple[str | None, str, str] | None
    numbers: dict[str, dict[str, tuple[str, str]]]
    label: str | None
    rater: str | None
    weight: str | None
    tie: str | None
    id: str | None


def find_roles(table: Table, asked: Columns) -> Roles:
    """**Raises:** ValueError for a column that is asked for and not there, or one side without the other."""
    for name in dataclasses.astuple(dataclasses.replace(asked, first_is=None)):
        if name is not None and name not in table.columns:
            raise ValueError(f"{table.path} has no column {name}: it has {_listed(table.names)}.")
    if (asked.chosen is None) != (asked.rejected is None):
        raise ValueError("give both --chosen and --rejected, or neither.")
    sides = _sides(table, asked)
    numbers = {"embeddings": {}, "numeric": {}, "scores": _scores(table.names)}
    if sides is not None and _holds_numbers(table.first(sides[0])):
        numbers["embeddings"][sides[0]] = sides
        sides = None
    _sort_pairs(table, numbers, sides)
    label = asked.label or (_named(table, LABELS) if sides in OPEN_SIDES else None)
    if sides in OPEN_SIDES and label is None:
        raise ValueError(
            f"{table.path} has {sides[0]} and {sides[1]}, but no label: name its column by --label."
        )
    text = None if sides is None else (asked.prompt or _named(table, PROMPTS), *sides)
    return Roles(text, numbers, label, asked.rater or _named(table, RATERS), asked.weight, asked.tie,
                 asked.id or _named(table, IDS))  # fmt: skip


def _named(table: Table, names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in table.columns), None)


def _sides(table: Table, asked: Columns) -> tuple[str, str] | None:
    if asked.chosen is not None and asked.rejected is not None:
        return asked.chosen, asked.rejected
    for first, second in (*CHOSEN_SIDES, *OPEN_SIDES):
        here = first in table.columns, second in table.columns
        if all(here):
            return first, second
        if any(here) and (first, second) == CHOSEN_SIDES[0]:
            lost = second if here[0] else first
            raise ValueError(f"{table.path} lacks the column {lost}: a pair has chosen and rejected.")
    return None


def _scores(names: tuple[str, ...]) -> dict[str, tuple[str, str]]:
    """Scores of reward models, by model: `scores_chosen`, `score_rejected_<model>`, `chosen_score`, …"""
    found: dict[str, dict[str, str]] = {}
    for name in names:
        match = SCORES.match(name)
        if match:
            side = match["side"] or match["side2"]
            found.setdefault(match["a"] or match["b"] or "score", {})[side] = name
    return {model: (s["chosen"], s["rejected"]) for model, s in found.items() if len(s) == 2}


def _sort_pairs(table: Table, numbers: dict, sides) -> None:
    """Columns chosen_<name> and rejected_<name> of numbers, or of lists of numbers."""
    taken = {name for pair in numbers["scores"].values() for name in pair} | set(sides or ())
    for name in table.names:
        match = NUMERIC.match(name)
        if not match or name in taken:
            continue
        side, what = match.groups()
        partner = f"{'rejected' if side == 'chosen' else 'chosen'}_{what}"
        cell = table.first(name)
        if partner not in table.columns:
            if sides is None or _holds_numbers(cell):
                raise ValueError(
                    f"{table.path} lacks the column {partner}: every feature needs chosen_ and rejected_."
                )
            continue
        if side == "chosen" and _holds_numbers(cell):
            numbers["embeddings"][what] = (name, partner)
        elif side == "chosen" and (sides is None or _is_number(cell)):
            numbers["numeric"][what] = (name, partner)


def _holds_numbers(cell) -> bool:
    return isinstance(cell, list) and bool(cell) and isinstance(cell[0], int | float)


def _is_number(cell) -> bool:
    """Of a text only what a CSV file may mean by it: beside texts, columns of words are no features."""
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return not isinstance(cell, bool)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
