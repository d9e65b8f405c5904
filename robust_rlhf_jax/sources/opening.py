"""The source that a path names."""

from pathlib import Path
from typing import Any

from robust_rlhf_jax.io.containers.parquet_files import SUFFIXES as PARQUET
from robust_rlhf_jax.io.schemas.sides import LABELS as MORE_LABELS
from robust_rlhf_jax.io.schemas.sides import plain_name

from .parquet import ParquetSource
from .parquet_columns import opened, values_of
from .paths import Paths, files_of
from .protocol import PairSource
from .shards import SUFFIXES as NPY
from .shards import ShardSource
from .side_names import both_sides, one_side
from .unfinished_shards import FACTS

FORMS = (
    "give a folder of .npy shards, a .npy file of differences, or .parquet files; robust-rlhf embed FILE --out shards "
    "makes shards of the texts of a preference file, and robust-rlhf audit reads numbers whole (in Python "
    "ArraySource.of_pairs(io.load_pairs(FILE)))"
)

BESIDE = ("label", "group", "rater")
# What else a column of labels is called; one that is not read as such would be left unread. Of `MORE_LABELS` some may
# be about something else.
LABELS = (
    "winner",
    "preference",
    "preferred",
    "choice",
    "verdict",
    "vote",
    "chosen_side",
    "overall_preference",
)
# How much better an option is: only with a sign does it say which one.
STRENGTHS = ("strength", "preference_strength")
# Labels of both sides, ties among them.
BOTH_SIDES = (
    {-1, 0, 0.5, 1}, {1, 2}, {"-1", "0", "1"}, {"1", "2"}, {"a", "b", "tie"}, {"left", "right", "tie"},
    {"first", "second", "tie"}, {"chosen", "rejected", "tie"},
)  # fmt: skip


def open_pairs(path: Paths) -> PairSource:
    """The pairs at `path`, which stay on the disk: a `ShardSource` or a `ParquetSource`.

    **Arguments:** `path`: `.npy` files of differences, `.parquet` files, or a folder of one kind, such as
    `write_shards` writes or one that has files named `chosen…` and `rejected…`. Parquet files have the columns
    `chosen` and `rejected`, or `differences`; their columns `label`, `group` and `rater`, or `labels` and so on, count
    where they are there, whatever their letters' size.

    **Raises:** FileNotFoundError; TypeError for arrays and data frames; ValueError for anything else, and for labels in
    Parquet files that are called otherwise.

    **Example:**

    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from robust_rlhf_jax.sources import open_pairs
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> np.save(folder / "chosen.npy", np.ones((4, 2), np.float32))
    >>> np.save(folder / "rejected.npy", np.zeros((4, 2), np.float32))
    >>> source = open_pairs(folder)
    >>> type(source).__name__, source.n_pairs, source.n_features
    ('ShardSource', 4, 2)
    """
    if hasattr(path, "dtype") or hasattr(path, "columns"):
        raise TypeError(
            f"path is of the type {type(path).__name__}: give a path; what is in memory goes in as ArraySource(chosen, "
            "rejected), or as Pairs."
        )
    _check_finished(path)
    files = files_of(path, (*NPY, *PARQUET))
    kinds = {file.suffix.lower() in NPY for file in files if file.suffix.lower() in (*NPY, *PARQUET)}
    if len(kinds) == 2:
        raise ValueError(
            f"{_shown(path)} is no source of pairs: it has .npy files and Parquet files, so move one kind away."
        )
    if len(kinds) != 1 or any(file.suffix.lower() not in (*NPY, *PARQUET) for file in files):
        raise ValueError(f"{_shown(path)} is no source of pairs: {FORMS}.")
    return _shards(path, files) if kinds.pop() else _parquet(path, files)


def _check_finished(path: Paths) -> None:
    """**Raises:** ValueError for a folder in which `embedded` has not written the last shard."""
    if isinstance(path, str | Path) and Path(path).suffix == ".partial" and (Path(path) / FACTS).exists():
        raise ValueError(
            f"{path} is not finished: run the same robust-rlhf embed again, which goes on with it."
        )


def _shards(path: Paths, files: list[Path]) -> ShardSource:
    if not (isinstance(path, str | Path) and Path(path).is_dir()):
        sides = [
            file for file in files if file.name.startswith(("chosen", "rejected")) or one_side(file.name)
        ]
        both = both_sides(file.name for file in files) or ()
        sides += [file for file in files if file.name in both]
        if sides:
            raise ValueError(f"{sides[0]} has one side of pairs: give its folder, or ShardSource both sides.")
    return ShardSource(path)


def _parquet(path: Paths, files: list[Path]) -> ParquetSource:
    columns = {file: _columns(file) for file in files}
    names = columns[files[0]]
    more = {role: found for role in BESIDE if (found := _named(role, columns))}
    if "label" not in more:
        _check_no_label(columns)
    if "chosen" in names and "rejected" in names:
        return ParquetSource(path, **more)
    if "differences" in names:
        return ParquetSource(path, "differences", None, **more)
    raise ValueError(
        f"{files[0]} has the columns {', '.join(names)}, and neither chosen and rejected nor differences: name them by "
        "ParquetSource."
    )


def _columns(file: Path) -> list[str]:
    with opened(file) as given:
        return given.schema_arrow.names


def _named(role: str, columns: dict[Path, list[str]]) -> str | None:
    """The column that is called `role`, in the singular or the plural, whatever its letters' size.

    **Raises:** ValueError where one file has it and another one has not.
    """
    found = {file: _first(names, (role, f"{role}s")) for file, names in columns.items()}
    name = next(filter(None, found.values()), None)
    lack = next((file for file in columns if name is not None and name not in columns[file]), None)
    if lack is not None:
        has = next(file for file in columns if found[file])
        raise ValueError(f"{lack} has no column {name}, and {has} has one: give files of the same columns.")
    return name


def _first(names: list[str], called: tuple[str, ...]) -> str | None:
    """The first of `names` that is one of `called`; where none is, the first that is but for its letters' size."""
    exact = (name for wanted in called for name in names if name == wanted)
    return next(exact, None) or next((name for name in names if name.casefold() in called), None)


def _check_no_label(columns: dict[Path, list[str]]) -> None:
    """**Raises:** ValueError for a column that is called as labels are and, unless only labels are called so, holds
    what could be labels of both sides."""
    for file, names in columns.items():
        for name in names:
            known = name.casefold() in LABELS
            plain = plain_name(name)
            if known or (
                plain in MORE_LABELS and _could_be_labels(values_of(file, name), plain in STRENGTHS)
            ):
                raise ValueError(
                    f"{file}: column {name} could say which option won: call it label, with 1 where the first option "
                    "won and -1 where the second, or leave it out where chosen always won."
                )


def _could_be_labels(values: set[Any], strength: bool) -> bool:
    """Whether values, NaN left out, are of both sides; `strength`: only with a sign."""
    known = (value for value in values if value == value)
    words = {value.strip().casefold() if isinstance(value, str) else value for value in known}
    signed = not strength or not words.isdisjoint({-1, "-1"})
    return len(words) > 1 and signed and any(words <= labels for labels in BOTH_SIDES)


def _shown(path: Paths) -> str:
    return str(path) if isinstance(path, str | Path) else ", ".join(map(str, path))
