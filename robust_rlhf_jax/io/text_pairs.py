"""Pairs of texts in batches: a file is checked in one pass, and its texts come again in every later one."""

import dataclasses
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Int, Shaped

from .bad_cells import BadCell, usable_rows
from .columns import Columns
from .loading import read_pairs
from .reading import table_batches
from .role_cells import ids_of, pair_key, people_of, strengths, texts_of, turned
from .schemas import map_table
from .schemas.base import Roles
from .schemas.inputs import with_inputs
from .schemas.sides import names_of_users, rater_named
from .table import Table
from .texts import Texts
from .unnamed_raters import each_named

# Rows that are read at once.
BATCH = 2048


@dataclasses.dataclass(frozen=True)
class TextPairs:
    """The decided pairs of a file of texts, whose texts stay on the disk where each row is a pair.

    `rows` [N]: of the file; `raters`, `ids`, `groups` [N] or None; `n_rows`: of the file; `make`: called for every
    pass, gives the texts in batches of any size, the preferred one as chosen; `in_batches`: whether they stay on the
    disk; `digest`: a hash of all rows, their texts and who won.

    **Example:**

    >>> import json, pathlib, tempfile
    >>> from robust_rlhf_jax.io.text_pairs import text_pairs
    >>> file = pathlib.Path(tempfile.mkdtemp(), "pairs.jsonl")
    >>> _ = file.write_text(json.dumps({"prompt": "Hi", "chosen": "Hello!", "rejected": "What?"}))
    >>> pairs = text_pairs(file)
    >>> pairs.n_pairs, [texts.chosen for texts in pairs.batches(10)]
    (1, [['Hello!']])
    """

    rows: Int[np.ndarray, " N"]
    n_rows: int
    raters: Shaped[np.ndarray, " N"] | None
    ids: Shaped[np.ndarray, " N"] | None
    groups: Int[np.ndarray, " N"] | None
    make: Callable[[], Iterator[Texts]]
    in_batches: bool
    digest: str

    @property
    def n_pairs(self) -> int:
        return len(self.rows)

    def batches(self, size: int) -> Iterator[Texts]:
        """All texts in batches of `size`, the last one of what is left."""
        waiting = Texts([], [], [])
        for texts in self.make():
            begin, n = 0, len(texts.chosen)
            while begin < n:
                end = min(n, begin + size - len(waiting.chosen))
                waiting = _joined(waiting, texts.take(range(begin, end)))
                begin = end
                if len(waiting.chosen) == size:
                    yield waiting
                    waiting = Texts([], [], [])
        if waiting.chosen:
            yield waiting


def text_pairs(
    path: str | os.PathLike,
    columns: Columns | None = None,
    *,
    skip_bad: float = 0,
    split: str | None = None,
    encoding: str | None = None,
) -> TextPairs:
    """The pairs of texts in a file, less ties and pairs of weight 0, which say nothing.

    A CSV, JSON-lines or Parquet file whose rows are pairs is read in batches; anything else that `load_pairs` knows is
    read whole, its texts in memory.

    **Raises:** as `load_pairs`; ValueError for a file without texts.

    **Example:**

    >>> import pathlib, tempfile
    >>> from robust_rlhf_jax.io.text_pairs import text_pairs
    >>> file = pathlib.Path(tempfile.mkdtemp(), "pairs.csv")
    >>> _ = file.write_text("prompt,chosen,rejected\\nHi,Hello!,What?\\nBye,So long,No\\n")
    >>> text_pairs(file).n_pairs
    2
    """
    path, asked = Path(path), columns or Columns()
    reading = {"split": split, "encoding": encoding}

    def tables() -> Iterator[Table]:
        return (with_inputs(table, asked) for table in table_batches(path, BATCH, **reading))

    return _in_batches(path, tables, asked, skip_bad) or _whole(path, asked, skip_bad, reading)


class _Checked(NamedTuple):
    """What a pass says of every row: cells that are bad, who won, who judged, ids, what tells groups, and a hash of
    texts and who won."""

    n_rows: int
    bad: list[BadCell]
    strength: np.ndarray
    raters: np.ndarray | None
    weights: np.ndarray | None
    ids: np.ndarray | None
    keys: np.ndarray
    digest: str


def _in_batches(
    path: Path, tables: Callable[[], Iterator[Table]], asked: Columns, skip_bad: float
) -> TextPairs | None:
    """None where rows are not pairs, or not all batches say the same of their columns, or ids have to name pairs, or
    users that come again may be raters: all rows are then needed."""
    first = None if asked.pair_id is not None else next(tables(), None)
    roles = None if first is None else _roles_of(first, asked)
    if first is not None and roles is not None and roles.rater is None and names_of_users(first):
        return None
    same = asked if roles is None else dataclasses.replace(asked, rater=roles.rater)
    checked = None if roles is None else _checked(tables(), roles, same)
    if first is None or roles is None or checked is None or not _names_raters(first, same, asked, checked):
        return None
    usable = usable_rows(path, checked.n_rows, checked.bad, skip_bad)
    decided = checked.strength != 0
    if checked.weights is not None:
        decided &= checked.weights > 0
    rows = usable[decided[usable]]
    _check_some(path, rows)
    raters, ids = (None if values is None else values[rows] for values in (checked.raters, checked.ids))
    groups = _groups(checked, roles)
    groups = None if groups is None else groups[rows]

    def make() -> Iterator[Texts]:
        return _texts(tables(), roles, rows, checked.strength < 0)

    digest = _digest(checked.digest, rows)
    return TextPairs(rows, checked.n_rows, raters, ids, groups, make, True, digest)


def _names_raters(first: Table, same: Columns, asked: Columns, checked: _Checked) -> bool:
    """Whether all rows name raters as those of the first batch do."""
    if same == asked or same.rater is None or checked.raters is None:
        return True
    return rater_named(Table(first.source, {same.rater: checked.raters.tolist()}, checked.n_rows)) is not None


def _groups(checked: _Checked, roles: Roles) -> Int[np.ndarray, " n"] | None:
    """As `groups_of` of the whole file: of all rows, also of those that are left out."""
    keys = checked.keys
    if roles.group is None:
        ids = None if checked.ids is None else each_named(checked.ids)
        if ids is not None and _repeat(ids):
            keys = ids
        elif checked.raters is None:
            return None
    return _numbers(keys) if _repeat(keys) else None


def _whole(path: Path, asked: Columns, skip_bad: float, reading: dict[str, Any]) -> TextPairs:
    pairs = read_pairs(path, asked, "texts", None, skip_bad, **reading).decided()
    _check_some(path, pairs.rows)
    texts = pairs.texts
    assert texts is not None
    digest = _digest(_with_texts(hashlib.blake2b(), texts, pairs.strength).hexdigest(), pairs.rows)
    return TextPairs(
        pairs.rows, pairs.n_rows, pairs.raters, pairs.ids, pairs.groups, lambda: iter([texts]), False, digest
    )


def _roles_of(table: Table, asked: Columns) -> Roles | None:
    """Which column plays which part, where the schema takes the rows of the table as they are."""
    try:
        mapped = map_table(table, asked)
    except ValueError:
        return None
    roles = mapped.roles
    parts = (*(roles.text or ()), roles.label, roles.tie, roles.rater, roles.weight, roles.id, roles.group)
    names = [name for name in parts if name is not None]
    if mapped.origin is not None or roles.text is None or not set(names) <= set(table.names):
        return None
    if {*names} & {*table.source.how.get("twice", ())}:
        return None
    same = all(mapped.table.cells(name) == table.cells(name) for name in names)
    return roles if same else None


def _checked(tables: Iterator[Table], roles: Roles, asked: Columns) -> _Checked | None:
    bad, parts, n_rows, digest = [], [], 0, hashlib.blake2b()
    for table in tables:
        mine = _roles_of(table, asked)
        if mine is None or _parts(mine) != _parts(roles):
            return None
        strength, wrong = strengths(table, roles)
        texts, more = texts_of(table, roles)
        raters, weights, others = people_of(table, roles)
        assert texts is not None
        bad += [cell._replace(row=cell.row + n_rows) for cell in (*table.bad, *wrong, *more, *others)]
        parts.append((strength, raters, weights, ids_of(table, roles), _keys(table, roles, texts)))
        n_rows += table.n_rows
        _with_texts(digest, texts, strength)
    strength, *people, keys = zip(*parts, strict=True)
    raters, weights, ids = map(_one, people)
    return _Checked(
        n_rows, bad, np.concatenate(strength), raters, weights, ids, np.concatenate(keys), digest.hexdigest()
    )


def _one(parts: Sequence[np.ndarray | None]) -> np.ndarray | None:
    """One array of those of all batches; None where there are none."""
    there = [part for part in parts if part is not None]
    return np.concatenate(there) if there else None


def _parts(roles: Roles) -> tuple:
    rule = None if roles.rule is None else roles.rule.says
    return roles.text, roles.label, rule, roles.tie, roles.rater, roles.weight, roles.id, roles.group


def _keys(table: Table, roles: Roles, texts: Texts) -> Int[np.ndarray, " n"]:
    """The same number for rows of the same group, or of the same two options under the same prompt."""
    if roles.group is not None:
        keys = table.cells(roles.group)
    else:
        keys = [
            (prompt, sorted(options))
            for prompt, options in (pair_key(texts, row) for row in range(len(texts.chosen)))
        ]
    digests = b"".join(
        hashlib.blake2b(repr(key).encode("utf-8", "surrogatepass"), digest_size=8).digest() for key in keys
    )
    return np.frombuffer(digests, np.int64)


def _with_texts(found: Any, texts: Texts, strength: np.ndarray) -> Any:
    """The hash `found`, with every text and who won each pair."""
    for row in zip(np.sign(strength).tolist(), texts.prompt, texts.chosen, texts.rejected, strict=True):
        found.update(repr(row).encode("utf-8", "surrogatepass"))
    return found


def _digest(of_texts: str, rows: Int[np.ndarray, " N"]) -> str:
    return hashlib.blake2b(of_texts.encode() + rows.astype("<i8").tobytes(), digest_size=16).hexdigest()


def _texts(
    tables: Iterator[Table], roles: Roles, rows: Int[np.ndarray, " N"], second_won: Bool[np.ndarray, " n"]
) -> Iterator[Texts]:
    begin = 0
    for table in tables:
        end = begin + table.n_rows
        mine = rows[(rows >= begin) & (rows < end)]
        texts, _ = texts_of(table, roles)
        assert texts is not None
        yield turned(texts.take(mine - begin), second_won[mine])
        begin = end


def _joined(first: Texts, second: Texts) -> Texts:
    if not first.chosen:
        return second
    return Texts(first.prompt + second.prompt, first.chosen + second.chosen, first.rejected + second.rejected)


def _repeat(keys: np.ndarray) -> bool:
    return len(np.unique(keys)) < len(keys)


def _numbers(keys: np.ndarray) -> Int[np.ndarray, " N"]:
    """Numbers from 0, in the order in which the values come."""
    _, first, of = np.unique(keys, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[of]


def _check_some(path: Path, rows: np.ndarray) -> None:
    if not len(rows):
        raise ValueError(f"{path} has ties or pairs of weight 0 alone: no pair says what is preferred.")
