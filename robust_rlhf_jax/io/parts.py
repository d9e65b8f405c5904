"""What the columns of a table say of its pairs: who won how clearly, texts, numbers, and who judged."""

import numpy as np

from .bad_cells import BadCell
from .labels import read_labels, read_ties
from .numeric import matrix
from .roles import Columns, Roles
from .table import Table
from .texts import Texts, read_texts


def strengths(table: Table, roles: Roles, asked: Columns):
    """Above 0 where the first side is preferred; a column of ties makes ties."""
    strength, bad = np.ones(table.n_rows), []
    if roles.label is not None:
        strength, bad = read_labels(table.cells(roles.label), roles.label, asked.first_is)
        if asked.label is not None and roles.text is not None and roles.text[1] in ("chosen", "text_chosen"):
            strength = _of_chosen(table.cells(roles.label), strength)
    if roles.tie is not None:
        ties, more = read_ties(table.cells(roles.tie), roles.tie)
        strength, bad = np.where(ties, 0.0, strength), bad + more
    return strength, bad


def _of_chosen(cells: list, strength):
    """A strength beside chosen and rejected is how much the chosen one is better: above 0 for the chosen side."""
    try:
        np.asarray([float(cell) for cell in cells if cell not in (None, "")])
    except (TypeError, ValueError):
        return strength
    return -strength


def texts_of(table: Table, roles: Roles):
    """(`Texts` or None, the cells that are no text)."""
    if roles.text is None:
        return None, []
    prompt, *sides = roles.text
    first, second = (table.cells(name) for name in sides)
    prompts = None if prompt is None else table.cells(prompt)
    return read_texts(prompts, first, second, roles.text)


def numbers_of(table: Table, columns: dict[str, tuple[str, str]]):
    """((first side [N, p], second side [N, p]), names, the cells that are no number)."""
    sides: tuple[list, list] = [], []
    names, bad = [], []
    for name, pair in columns.items():
        (first, wrong), (second, more) = (matrix(table, column) for column in pair)
        if first.shape != second.shape:
            raise ValueError(
                f"{pair[0]} has {first.shape[1]} numbers a row and {pair[1]} {second.shape[1]}: give both alike"
            )
        bad += wrong + more
        names += [name] if first.shape[1] == 1 else [f"{name}{i}" for i in range(first.shape[1])]
        for side, values in zip(sides, (first, second), strict=True):
            side.append(values)
    joined = tuple(side[0] if len(side) == 1 else np.concatenate(side, axis=1) for side in sides)
    return joined, tuple(names), bad


def people_of(table: Table, roles: Roles):
    """(raters or None, weights or None, the weights that are none)."""
    raters = None if roles.rater is None else np.array([str(cell) for cell in table.cells(roles.rater)])
    if roles.weight is None:
        return raters, None, []
    values, bad = matrix(table, roles.weight)
    bad += [BadCell(int(row), roles.weight, "is negative") for row in np.flatnonzero(values[:, 0] < 0)]
    return raters, values[:, 0], bad


def repeated_ids(table: Table, roles: Roles) -> list[BadCell]:
    """The rows whose id an earlier row has."""
    if roles.id is None:
        return []
    seen: dict = {}
    cells = [str(cell) for cell in table.cells(roles.id)]
    return [
        BadCell(row, roles.id, f"repeats {cell!r} of row {seen[cell] + 1}")
        for row, cell in enumerate(cells)
        if seen.setdefault(cell, row) != row
    ]


def preferred_first(sides, swapped):
    """The two sides with the preferred one first; where none is swapped, as they are (memory-mapped)."""
    first, second = sides
    if not swapped.any():
        return first, second
    turn = swapped[:, None]
    return np.where(turn, second, first), np.where(turn, first, second)


def turned(texts: Texts, swapped) -> Texts:
    """The texts with the preferred one as chosen."""
    if not swapped.any():
        return texts
    both = zip(texts.chosen, texts.rejected, swapped, strict=True)
    columns = [
        list(column) for column in zip(*((b, a) if turn else (a, b) for a, b, turn in both), strict=True)
    ]
    return Texts(texts.prompt, *columns)


def unused_columns(table: Table, roles: Roles, kind: str) -> dict[str, str]:
    """Why each column that is not used is not."""
    used = {roles.label, roles.rater, roles.weight, roles.tie, roles.id, *(roles.text or ())}
    reasons = {}
    for other, columns in roles.numbers.items():
        for name in (name for pair in columns.values() for name in pair):
            used |= {name} if other == kind else set()
            reasons[name] = f"holds {other}, and the features are {kind}: choose by --features {other}"
    rest = (name for name in table.names if name not in used)
    return {name: reasons.get(name, "plays no part that its name tells") for name in rest}
