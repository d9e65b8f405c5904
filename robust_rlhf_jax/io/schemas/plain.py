"""Pairs in columns: sides, label and raters by their names, or as a caller names them."""

import dataclasses

from ..columns import Columns
from ..labels import Rule, rule_for, suffixes, word, word_rule
from ..table import Table
from .base import Judged, Mapped, Roles, of_rows
from .numbers import NoSides, find_numbers, is_number
from .sides import (
    IDS,
    LABELS,
    PROMPTS,
    RATERS,
    chosen_sides,
    holds_numbers,
    holds_texts,
    label_columns,
    named,
    open_sides,
    rater_columns,
)

NAME = "columns"
MODELS = ("model", "model_name", "generator", "system", "policy", "llm", "engine")
# Labels that may well be something else beside sides that are called chosen and rejected, where they are no words.
STRENGTHS = ("strength", "preference_strength", "overall_preference", "labels", "annotation", "result", "comparison")


def recognise(table: Table) -> bool:
    return True


def map(table: Table, asked: Columns) -> Mapped:
    """**Raises:** ValueError for a column that is asked for and not there, and for what cannot be decided; NoSides."""
    check_asked(table, asked)
    sides, how = _sides(table, asked)
    label = asked.label if asked.label in table.columns else None
    rule, notes, ignored = None, (), {}
    if sides is not None and how != "named" and label is None and asked.label is None:
        raters = rater_columns(table, sides)
        if raters:
            return _of_raters(table, sides, raters, asked)
        label = _label(table, sides, asked)
    elif sides is not None and label is None and asked.label is None:
        ignored = _harmless(table, sides, asked.chosen is not None)
    if label is not None:
        assert sides is not None
        table, rule = with_rule(table, label, sides, asked)
    texts = sides if sides is not None and not holds_numbers(table.first(sides[0])) else None
    numbers, more = find_numbers(table, texts)
    if sides is not None and texts is None:
        numbers["embeddings"] = {_vector_name(table, sides): sides}
    if sides is None and label is not None:
        raise ValueError(f"--label {label} needs the two sides that it decides between: give --chosen and --rejected")
    roles = Roles(
        None if texts is None else (prompt_of(table, asked, texts), *texts), numbers, label, rule,
        asked.rater or named(table, RATERS), asked.weight, _tie(table, asked, label), asked.id or named(table, IDS),
        said=_said(sides, label, rule, how), ignored=more | ignored,
    )  # fmt: skip
    return Mapped(NAME, table, roles, notes=notes)


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


def with_rule(table: Table, label: str, sides: tuple[str, str], asked: Columns) -> tuple[Table, Rule]:
    """The rule of a label; its cells that are a row's model, or the text of one of its sides, are made words."""
    cells = table.cells(label)
    if asked.scale is None and asked.first_is is None:
        cells = _resolved(table, cells, sides, asked.tie_is)
        table = dataclasses.replace(table, columns=table.columns | {label: cells})
    if "chosen" in sides[0] and asked.scale is None and asked.first_is is None and _strengths(cells):
        return table, Rule("how much better the chosen side is", lambda cell: float(str(cell)) if is_number(cell) else None)
    return table, rule_for(cells, label, sides, asked)


def prompt_of(table: Table, asked: Columns, sides: tuple[str, ...]) -> str | None:
    if asked.prompt is not None:
        return asked.prompt
    found = named(table, PROMPTS)
    return None if found in sides else found


def _strengths(cells: list) -> bool:
    """Numbers that are never negative and more than two: degrees, not names of sides."""
    values = [float(cell) for cell in cells if is_number(cell)]
    return len(values) == sum(c is not None and c != "" for c in cells) and min(values, default=-1) >= 0 and len(set(values)) > 2


def _resolved(table: Table, cells: list, sides: tuple[str, str], tie_is: str | None) -> list:
    """Labels that name the winner by its model, or repeat its text, as "first" and "second"."""
    rule = word_rule(sides, tie_is)
    unknown = {word(cell) for cell in cells if isinstance(cell, str) and cell.strip() and rule.value(cell) is None}
    if not unknown or all(is_number(w) for w in unknown):
        return cells
    for pair in (*_models(table, sides), sides):
        first, second = (table.cells(name) for name in pair)
        made = [_which(cell, a, b, rule) for cell, a, b in zip(cells, first, second, strict=True)]
        found = sum(a in ("first", "second") and a != b for a, b in zip(made, cells, strict=True))
        if 2 * found > sum(isinstance(c, str) and rule.value(c) is None for c in cells):
            return made
    return cells


def _which(cell, first, second, rule: Rule):
    if not isinstance(cell, str) or rule.value(cell) is not None or first == second:
        return cell
    return "first" if cell == first else "second" if cell == second else cell


def _models(table: Table, sides: tuple[str, str]) -> list[tuple[str, str]]:
    """Columns of who wrote the sides: model_a and model_b beside response_a and response_b."""
    lower = {name.casefold().replace("-", "_").replace(" ", "_"): name for name in table.names}
    a, b = suffixes(sides)
    names = [(f"{m}{s}{a}", f"{m}{s}{b}") for m in MODELS for s in ("_", "")]
    names += [(f"{side[0]}_{m}", f"{side[1]}_{m}") for m in MODELS for side in ((a, b), sides)]
    return [(lower[x], lower[y]) for x, y in names if x in lower and y in lower]


def _sides(table: Table, asked: Columns) -> tuple[tuple[str, str] | None, str]:
    """(the sides, "asked", "named" if chosen and rejected in their names, or "open")."""
    if asked.chosen is not None and asked.rejected is not None:
        return (asked.chosen, asked.rejected), "open" if asked.label not in (None, "none") else "named"
    sides = chosen_sides(table)
    if sides is not None:
        return sides, "named"
    for first, second in (("chosen", "rejected"),):
        here = first in table.columns, second in table.columns
        if any(here):
            lost = second if here[0] else first
            raise ValueError(f"{table.path} lacks the column {lost}: a pair has chosen and rejected.")
    found = open_sides(table)
    if len(found) > 2:
        listed = ", ".join(found)
        raise ValueError(
            f"{table.path} has {len(found)} answers a row ({listed}): name two by --chosen and --rejected, and --label"
        )
    return ((found[0], found[1]), "open") if found else (None, "")


def _label(table: Table, sides: tuple[str, str], asked: Columns) -> str:
    """The column that says which of two open sides won.

    **Raises:** ValueError for none, and for several that disagree.
    """
    found, error = {}, None
    candidates = [n for n in table.names if n.casefold().replace("-", "_").replace(" ", "_") in LABELS and n not in sides]
    for name in candidates:
        try:
            made, rule = with_rule(table, name, sides, asked)
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
            f"{table.path} has {sides[0]} and {sides[1]}, but no label: name its column by --label, or say by --label none "
            f"that {sides[0]} always won, with --chosen {sides[0]} --rejected {sides[1]}."
        )
    name, first = next(iter(found.items()))
    for other, values in found.items():
        if any(a is not None and b is not None and a * b < 0 for a, b in zip(first, values, strict=True)):
            raise ValueError(f"{name} and {other} both could be the label and disagree: choose by --label {name} or --label {other}")
    return name


def _single(table: Table, sides: tuple[str, str]) -> bool:
    return not all(holds_texts(table.first(name)) for name in sides)


def _harmless(table: Table, sides: tuple[str, str], asked: bool) -> dict[str, str]:
    """Why columns called as labels are play no part beside sides that are told apart by their names.

    **Raises:** ValueError for one that says, or could say, that the second side won somewhere.
    """
    reasons = {}
    for name in label_columns(table, sides):
        rule = word_rule(sides)
        cells = [cell for cell in table.cells(name) if cell is not None and cell != ""]
        values = {word(cell) for cell in cells if isinstance(cell, str | int | float | bool)}
        told = {rule.value(v) for v in values} - {None}
        numbers = [float(v) for v in values if is_number(v)]
        graded = name.casefold() in STRENGTHS and not asked and min(numbers, default=0) >= 0
        truths = values <= {"true", "false"}
        if len(values) > 1 and (min(told, default=0.0) < 0 or ((numbers or truths) and not told and not graded)):
            raise ValueError(
                f"{table.path}: column {name} could be the label that says which side won: give --label {name}, or --label none "
                f"if {sides[0]} always won."
            )
        reasons[name] = f"says nothing against {sides[0]}; --label {name} would use it"
    return reasons


def _tie(table: Table, asked: Columns, label: str | None) -> str | None:
    """A column of ties: as asked, or winner_tie beside winner_model_a."""
    if asked.tie is not None or label is None:
        return asked.tie
    ties = [n for n in table.names if n != label and word(n) in ("winner tie", "tie", "is tie")]
    return ties[0] if ties and label.casefold().startswith("winner") else None


def _of_raters(table: Table, sides: tuple[str, str], raters: dict[str, str], asked: Columns) -> Mapped:
    """A pair for each rater who has a column of labels."""
    first, second = (table.cells(name) for name in sides)
    name = prompt_of(table, asked, sides)
    prompts = [None] * table.n_rows if name is None else table.cells(name)
    votes = {who: (table.cells(column), rule_for(table.cells(column), column, sides, asked)) for who, column in raters.items()}
    broken = {cell.row for cell in table.bad}

    def rows():
        for row in range(table.n_rows):
            judged = []
            for who, (cells, rule) in votes.items():
                if cells[row] is None or cells[row] == "":
                    continue
                value = rule.value(cells[row])
                if value is None:
                    judged = f"holds the unknown label {cells[row]!r}"
                    break
                judged.append(Judged(first[row], second[row], value, who))
            if judged or row in broken:
                yield row, prompts[row], judged

    said = {"chosen": f"{sides[0]} or {sides[1]}", "label": ", ".join(raters.values()), "rater": "one column each"}
    used = (*raters.values(), *sides, *(() if name is None else (name,)))
    return of_rows(table, "columns of raters", rows(), used, said, asked, ids=named(table, IDS))


def _vector_name(table: Table, sides: tuple[str, str]) -> str:
    return "e" if table.format in ("npy", "npz", "safetensors") else sides[0]


def _said(sides, label, rule, how) -> dict[str, str]:
    if label is not None and sides is not None:
        return {"chosen": f"{sides[0]} or {sides[1]}, as {label} says", "label": f"{label}: {rule.says}"}
    return {"label": f"none: {sides[0]} won in every row"} if sides is not None else {}


