"""What the columns of a table say of its pairs: who won how clearly, texts, numbers, and who judged."""

import numpy as np
from jaxtyping import Bool

from .bad_cells import BadCell
from .containers.array_files import nonfinite_cells
from .labels import is_missing, read_labels, read_ties
from .numeric import matrix
from .schemas import Roles
from .schemas.numbers import with_unit
from .schemas.words import columns_of, word_of
from .table import Table
from .texts import Texts, read_texts
from .unnamed_raters import each_named, ids_in, named_in


def strengths(table: Table, roles: Roles):
    """Above 0 where the first side is preferred; a column of ties makes ties."""
    strength, bad = np.ones(table.n_rows), []
    if roles.label is not None:
        assert roles.rule is not None
        cells = table.cells(roles.label)
        if roles.tie is not None:  # where the column of ties says so, the label may be missing
            ties, _ = read_ties(table.cells(roles.tie), roles.tie)
            cells = [
                "tie" if tie and (is_missing(cell) or roles.rule.value(cell) is None) else cell
                for cell, tie in zip(cells, ties, strict=True)
            ]
        strength, bad = read_labels(cells, roles.label, roles.rule)
        bad = [cell for cell in bad if cells[cell.row] != "tie"]
    if roles.tie is not None:
        ties, more = read_ties(table.cells(roles.tie), roles.tie)
        strength, bad = np.where(ties, 0.0, strength), bad + more
    return strength, bad


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
        if isinstance(table.columns[pair[0]], np.ndarray):
            more = nonfinite_cells((first, second), ("the chosen side", "the rejected side"))
        bad += wrong + more
        alone = first.shape[1] == 1 and name != "e"
        names += [name] if alone else [f"{name}{i}" for i in range(first.shape[1])]
        for side, values in zip(sides, (first, second), strict=True):
            side.append(values)
    first, second = (side[0] if len(side) == 1 else np.concatenate(side, axis=1) for side in sides)
    return (first, second), tuple(names), bad


def people_of(table: Table, roles: Roles):
    """(raters or None, weights or None, the cells that are no weight)."""
    raters = None if roles.rater is None else named_in(table.cells(roles.rater))
    if roles.weight is None:
        return raters, None, []
    values, bad = matrix(table, roles.weight)
    bad += [BadCell(int(row), roles.weight, "is negative") for row in np.flatnonzero(values[:, 0] < 0)]
    return raters, values[:, 0], bad


def ids_of(table: Table, roles: Roles) -> np.ndarray | None:
    return None if roles.id is None else ids_in(table.cells(roles.id))


def other_pairs_of_an_id(
    ids: np.ndarray | None, texts: Texts | None, raters: np.ndarray | None, name: str | None, asked: bool
) -> list[BadCell]:
    """The rows whose id, which a caller said is the pair's, an earlier row has with other texts and without a rater."""
    if ids is None or not asked:
        return []
    seen: dict[str, int] = {}
    bad = []
    for row, one in enumerate(each_named(ids)):
        first = seen.setdefault(one, row)
        if (
            first != row
            and raters is None
            and (texts is None or pair_key(texts, first) != pair_key(texts, row))
        ):
            bad.append(BadCell(row, name or "id", f"repeats {str(one)!r} of row {first + 1}"))
    return bad


def groups_of(table: Table, roles: Roles, ids, texts: Texts | None, raters) -> np.ndarray | None:
    """Which pairs are dependent: those of one row, of one prompt's answers, of one id, or the same texts; None if
    none."""
    if roles.group is not None:
        keys = [repr(cell) for cell in table.cells(roles.group)]
    elif ids is not None and len(np.unique(named := each_named(ids))) < len(ids):
        keys = named.tolist()
    elif raters is not None and texts is not None:
        keys = [pair_key(texts, row) for row in range(len(texts.chosen))]
    else:
        return None
    number: dict = {}
    groups = np.array([number.setdefault(key, len(number)) for key in keys])
    return groups if len(number) < len(groups) else None


def pair_key(texts: Texts, row: int) -> tuple:
    """The same for the same two options under the same prompt, whichever stands first."""
    return texts.prompt[row], frozenset((texts.chosen[row], texts.rejected[row]))


def preferred_first(sides, swapped: Bool[np.ndarray, " N"]):
    """The two sides with the preferred one first; where none is swapped, as they are (memory-mapped)."""
    first, second = sides
    if not swapped.any():
        return first, second
    turn = swapped[:, None]
    return np.where(turn, second, first), np.where(turn, first, second)


def turned(texts: Texts, swapped: Bool[np.ndarray, " N"]) -> Texts:
    """The texts with the preferred one as chosen."""
    if not swapped.any():
        return texts
    both = zip(texts.chosen, texts.rejected, swapped, strict=True)
    columns = [
        list(column) for column in zip(*((b, a) if turn else (a, b) for a, b, turn in both), strict=True)
    ]
    return Texts(texts.prompt, *columns)


def unused_columns(file: Table, roles: Roles, kind: str, used: tuple[str, ...]) -> dict[str, str]:
    """Why each of the file's columns that is not used is not."""
    mine = {roles.label, roles.rater, roles.weight, roles.tie, roles.id, *(roles.text or ()), *used}
    reasons = dict(roles.ignored)
    for name in columns_of(roles.words):
        if name in file.columns:
            reasons[name] = _why_words(file.some(name), word_of(file.first(name)))
    for other, columns in roles.numbers.items():
        for name in (name for pair in columns.values() for name in pair):
            mine |= {name} if other == kind else set()
            reasons[name] = f"holds {other}, and the features are {kind}: choose by --features {other}"
    return {n: reasons.get(n, "no role is known for this name") for n in file.names if n not in mine}


def _why_words(cells: list, first: str) -> str:
    if all(with_unit(cell) for cell in cells if cell not in (None, "")):
        return (
            f"holds numbers with units, such as {first}: written without them it is a feature, and --words makes one "
            "of each"
        )
    return f"holds words, such as {first}: --words makes a feature of each"
