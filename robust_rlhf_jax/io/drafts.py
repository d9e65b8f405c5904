"""A file understood: who beat whom by whose word, before texts become features."""

import dataclasses
import os
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Int

from .bad_cells import BadCell, usable_rows
from .columns import Columns
from .containers.array_files import nonfinite_cells, npy_pair
from .parts import (
    groups_of,
    ids_of,
    numbers_of,
    other_pairs_of_an_id,
    people_of,
    strengths,
    texts_of,
    turned,
    unused_columns,
)
from .reading import read_table
from .schemas import Mapped, map_table
from .schemas.numbers import NoSides, choose_kind
from .table import Table
from .texts import Texts


@dataclasses.dataclass(frozen=True)
class Draft:
    """What `Pairs` says, with the sides' `numbers` (None for texts) still first and second, and `texts` preferred
    first."""

    file: Table
    mapped: Mapped
    kind: str
    rows: Int[np.ndarray, " N"]
    names: tuple[str, ...]
    numbers: tuple[np.ndarray, np.ndarray] | None
    texts: Texts | None
    strength: Float[np.ndarray, " N"]
    swapped: Bool[np.ndarray, " N"]
    raters: np.ndarray | None
    weights: Float[np.ndarray, " N"] | None
    ids: np.ndarray | None
    groups: Int[np.ndarray, " N"] | None
    unused: dict[str, str]
    bad: tuple[BadCell, ...]
    second_rows: Int[np.ndarray, " N"] | None


def draft_pairs(
    path: str | os.PathLike,
    columns: Columns | None = None,
    features: str = "auto",
    embeddings: tuple[str | os.PathLike, str | os.PathLike] | None = None,
    skip_bad: float = 0,
    split: str | None = None,
    encoding: str | None = None,
) -> Draft:
    """**Raises:** as `load_pairs`."""
    path = Path(path)
    if not 0 <= skip_bad < np.inf:
        raise ValueError(f"skip_bad={skip_bad} must be 0 or more: a count of rows, or below 1 a share.")
    partner = embeddings[1] if embeddings is not None and path.suffix.lower() == ".npy" else None
    table = read_table(path, split=split, encoding=encoding, partner=partner)
    try:
        return _draft(table, columns or Columns(), features, None if partner else embeddings, skip_bad)
    except NoSides:
        raise ValueError(
            f"{path} has no column chosen_<name> or rejected_<name>: name features so, or give texts as chosen and "
            f"rejected, or name the columns of the sides by --chosen and --rejected (there are {_listed(table)})."
        ) from None
    except ValueError as error:
        text = str(error)
        text = text if text.startswith(str(path)) else f"{path}: {text}"
        raise ValueError(text if text.endswith(".") else f"{text}.") from None


def _draft(file: Table, asked: Columns, kind: str, embeddings, skip_bad: float) -> Draft:
    mapped = map_table(file, asked)
    table, roles = mapped.table, mapped.roles
    sides = None if roles.text is None else (roles.text[1], roles.text[2])
    kind = "embeddings" if embeddings else choose_kind(roles.numbers, sides, kind)
    bad = list(table.bad)
    strength, more = strengths(table, roles)
    bad += more
    texts, more = texts_of(table, roles)
    bad += more
    numbers, names = None, ()
    if embeddings:
        numbers = npy_pair(Path(embeddings[0]), Path(embeddings[1]), table.n_rows)
        bad += nonfinite_cells(numbers, [str(name) for name in embeddings])
        names = tuple(f"e{i}" for i in range(numbers[0].shape[1]))
    elif kind != "texts":
        numbers, names, more = numbers_of(table, roles.numbers[kind])
        bad += more
    raters, weights, more = people_of(table, roles)
    ids = ids_of(table, roles)
    bad += more + other_pairs_of_an_id(ids, texts, raters, roles.id, asked.id is not None)
    kept = usable_rows(file.path, table.n_rows, bad, skip_bad, mapped.origin)
    groups = groups_of(table, roles, mapped.origin, ids, texts, raters)
    swapped = strength[kept] < 0
    raters, weights, ids, groups = (None if v is None else v[kept] for v in (raters, weights, ids, groups))
    texts = None if texts is None else turned(texts.take(kept), swapped)
    if numbers is not None and len(kept) < table.n_rows:  # all rows stay memory-mapped
        numbers = (numbers[0][kept], numbers[1][kept])
    usable = set(kept.tolist())
    return Draft(
        file, mapped, kind, kept if mapped.origin is None else mapped.origin[kept], tuple(names), numbers, texts,
        np.abs(strength[kept]), swapped, raters, weights, ids, groups,
        unused_columns(file, table, roles, kind, mapped.used), _in_file(bad, usable, mapped.origin),
        None if mapped.second is None else mapped.second[kept],
    )  # fmt: skip


def _in_file(bad: list[BadCell], usable: set[int], origin) -> tuple[BadCell, ...]:
    """The cells of rows that were skipped, by the file's rows."""
    skipped = (cell for cell in bad if cell.row not in usable)
    return tuple(cell if origin is None else cell._replace(row=int(origin[cell.row])) for cell in skipped)


def _listed(table: Table) -> str:
    return ", ".join(name or '""' for name in table.names[:12]) + (", …" if len(table.names) > 12 else "")
