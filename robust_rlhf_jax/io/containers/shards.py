"""Data sets in several files of one kind: a folder, or a pattern such as `data/*.parquet`."""

import dataclasses
import os
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..bad_cells import BadCell
from ..table import Source, Table
from .arrow_tables import columns_of
from .compression import without_compression
from .named_splits import one_split

SPLIT = re.compile(r"^([A-Za-z_.]+?)[-_.]?\d+(?:-of-\d+)?\.|^(train|test|validation|valid|dev|eval)\b")


def read(path: Path, files: list[Path], readers: dict[str, Any], how: dict[str, Any]) -> Table:
    """One table of the rows of all `files`, in the order of their names.

    **Raises:** ValueError for files of several kinds, several splits, or different columns.
    """
    files, notes = _of_one_split(path, files, how.get("split"))
    kinds = {Path(without_compression(file)).suffix.lower() for file in files}
    if len(kinds) > 1:
        raise ValueError(
            f"{path} holds files of several kinds ({', '.join(sorted(kinds))}): give one of them."
        )
    reader = readers[kinds.pop()]
    parts = [reader.read(file, how) for file in files]
    first = parts[0].source
    own = {"parts": [part.source for part in parts], "lengths": [part.n_rows for part in parts]}
    own |= {"twice": {k: i for part in parts for k, i in part.source.how.get("twice", {}).items()}}
    source = dataclasses.replace(first, path=path, files=tuple(files), how=first.how | own)
    names = list(dict.fromkeys(name for part in parts for name in part.names))
    lost = next(((n, part.path) for n in names for part in parts if n not in part.names), None)
    if lost is not None and not first.ragged:
        raise ValueError(
            f"{path}: {lost[1].name} lacks the column {lost[0]} that other files have: give files of one kind."
        )
    bad, start = [], 0
    for part in parts:
        bad += [BadCell(cell.row + start, cell.column, cell.reason) for cell in part.bad]
        start += part.n_rows
    said = (f"{len(files)} files are read as one.",) if len(files) > 1 else ()
    return Table(
        source,
        {name: _joined(path, parts, name) for name in names},
        start,
        tuple(bad),
        (*notes, *parts[0].notes, *said),
    )


def write(source: Source, path: Path, rows: Sequence[int], extra: dict[str, list]) -> None:
    """A folder with the same files, each with its rows."""
    from . import WRITERS

    begin, done = 0, 0
    common = Path(os.path.commonpath([part.file.parent for part in source.how["parts"]]))
    for part, length in zip(source.how["parts"], source.how["lengths"], strict=True):
        mine = [row - begin for row in rows if begin <= row < begin + length]
        cells = {name: column[done : done + len(mine)] for name, column in extra.items()}
        place = path / part.file.relative_to(common)
        place.parent.mkdir(parents=True, exist_ok=True)
        WRITERS[part.container].write(part, place, mine, cells)
        begin, done = begin + length, done + len(mine)


def _joined(path: Path, parts: list[Table], name: str):
    columns = [part.columns.get(name) for part in parts]
    arrays = [column for column in columns if isinstance(column, np.ndarray)]
    if len(arrays) == len(parts):
        if len({array.shape[1:] for array in arrays}) > 1:
            raise ValueError(f"{path} holds rows of different lengths in {name}: give all alike.")
        return np.concatenate(arrays)
    if all(column is not None and not isinstance(column, list) for column in columns):
        import pyarrow as pa

        tables = [pa.table({name: column}) for column in columns]
        try:
            return columns_of(pa.concat_tables(tables, promote_options="permissive"))[name]
        except pa.ArrowException as error:
            reason = str(error).split("\n")[0].rstrip(".")
            raise ValueError(f"{path} holds different types in {name} ({reason}): give all alike.") from None
    return [
        cell for part in parts for cell in (part.cells(name) if name in part.names else [None] * part.n_rows)
    ]


def _of_one_split(path: Path, files: list[Path], asked: str | None) -> tuple[list[Path], tuple[str, ...]]:
    """Files are of several splits if they are called so: train-00000-of-00002.parquet, test.jsonl."""
    found = defaultdict(list)
    for file in sorted(files):
        match = SPLIT.match(file.name)
        found[(match[1] or match[2]) if match else ""].append(file)
    known = {"train", "test", "validation", "valid", "dev", "eval"}
    if asked is None and not known & {name.split("_")[0].split(".")[0] for name in found}:
        return sorted(files), ()
    names = [name for name in found if name]
    name = one_split(path, names, asked)
    return found[name], ((f"The split {name} is read.",) if len(names) > 1 else ())
