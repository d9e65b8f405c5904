"""Tables of chosen and rejected options: one's own data of horizon 1, as CSV, JSON lines or Parquet."""

import csv
import json
import os
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

TABLE_SUFFIXES = (".csv", ".jsonl", ".parquet")
PREFIXES = ("chosen_", "rejected_")


def load_table(path: str | os.PathLike) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """Read the columns `chosen_<name>` and `rejected_<name>` of a file; other columns are ignored.

    **Returns:** (names, chosen [N, p], rejected [N, p]), float64, columns in the file's order of `chosen_`.

    **Raises:** FileNotFoundError; ImportError for Parquet without pyarrow; ValueError for an unknown suffix,
    an empty or unreadable file, a column without its partner, or an entry that is not a finite number.
    """
    path = existing_file(path, TABLE_SUFFIXES)
    columns, to_numbers = _READERS[path.suffix.lower()](path)
    names = _feature_names(path, list(columns))
    chosen, rejected = (
        np.stack([_numbers(path, kind + n, columns[kind + n], to_numbers) for n in names], axis=1)
        for kind in PREFIXES
    )
    if not len(chosen):
        raise ValueError(f"{path} has no rows: give at least one pair.")
    return names, chosen, rejected


def check_range(path: Path, names: tuple[str, ...], chosen: np.ndarray, rejected: np.ndarray) -> None:
    """Check that the entries, and what chosen and rejected differ by, are finite in the float that JAX holds.

    **Raises:** ValueError that names the file, the column and the row.
    """
    most = jnp.finfo(jax.dtypes.canonicalize_dtype(np.float64)).max
    for kind, values in zip(PREFIXES, (chosen, rejected), strict=True):
        _check_most(path, kind, names, values, most)
    with np.errstate(over="ignore"):
        _check_most(path, "chosen − rejected ", names, chosen - rejected, most)


def _check_most(path, kind, names, values, most):
    bad = np.argwhere(~(np.abs(values) <= float(most)))
    if bad.size:
        row, column = bad[0]
        raise ValueError(
            f"{path}: column {kind}{names[column]} is {values[row, column]:g} in row {row + 1}, more than a float "
            f"holds ({float(most):.2g}): give the feature in a larger unit."
        )


def existing_file(path: str | os.PathLike, suffixes: tuple[str, ...]) -> Path:
    """The path of a file that exists, is not empty, and has one of the suffixes.

    **Raises:** FileNotFoundError, or ValueError for another suffix, a folder, or 0 bytes.
    """
    path = Path(path)
    if path.suffix.lower() not in suffixes:
        raise ValueError(f"{path}: suffix {path.suffix!r} is not one of {', '.join(suffixes)}.")
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist: check the path.")
    if not path.is_file():  # a FIFO would be waited for
        raise ValueError(f"{path} is {'a folder' if path.is_dir() else 'no regular file'}: give a file.")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty (0 bytes): write the data again.")
    return path


def _feature_names(path, columns):
    """Names that both `chosen_` and `rejected_` have, in the order of the chosen columns."""
    names, partners = ([c.removeprefix(k) for c in columns if c.startswith(k)] for k in PREFIXES)
    if not names and not partners:
        raise ValueError(f"{path} has no column chosen_<name> or rejected_<name>: name the features so.")
    lost = [f"rejected_{n}" for n in names if n not in partners]
    lost += [f"chosen_{n}" for n in partners if n not in names]
    if lost:
        raise ValueError(f"{path} lacks the column {lost[0]}: every feature needs chosen_ and rejected_.")
    return tuple(names)


def _numbers(path, name, column, to_numbers):
    try:
        values = to_numbers(column)
    except ValueError as error:
        raise ValueError(
            f"{path}: column {name} is not numeric ({error}): write numbers, or rename it if no feature."
        ) from None
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise ValueError(
            f"{path}: column {name} is {values[bad[0]]} in row {bad[0] + 1}: mend or drop that row."
        )
    return values


def _convert(cells, convert):
    """One number per cell; a ValueError names the first cell that is none (rows count from 1)."""
    values = np.empty(len(cells))
    for row, cell in enumerate(cells):
        try:
            values[row] = convert(cell)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"row {row + 1} holds {_short(cell)}") from None
    return values


def _short(cell):
    text = repr(cell)
    return text if len(text) <= 40 else text[:37] + "..."


def _read_csv(path):
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.reader(file) if row]
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read as CSV in UTF-8 ({error}): write it again.") from None
    header, body = (rows[0], rows[1:]) if rows else ([], [])
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise ValueError(f"{path} has the column {twice!r} twice: rename one.")
    for number, row in enumerate(body, 1):
        if len(row) != len(header):
            raise ValueError(
                f"{path}: row {number} has {len(row)} cells, the header {len(header)}: mend that row."
            )
    return {name: [row[i] for row in body] for i, name in enumerate(header)}, _numbers_from_text


def _numbers_from_text(cells):
    return _convert(cells, float)


def _read_jsonl(path):
    try:
        with open(path, encoding="utf-8-sig") as file:
            rows = [_json_row(path, number, line) for number, line in enumerate(file, 1) if line.strip()]
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} cannot be read as UTF-8 ({error}): write it again.") from None
    if not rows:
        raise ValueError(f"{path} has no rows: give at least one pair.")
    names = dict.fromkeys(name for row in rows for name in row if name.startswith(PREFIXES))
    return {name: [row.get(name) for row in rows] for name in names}, _numbers_from_json


def _json_row(path, number, line):
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict):
        raise ValueError(f"{path}: line {number} is not a JSON object: write one object per line.")
    return row


def _numbers_from_json(cells):
    return _convert(cells, _json_number)


def _json_number(cell):
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        raise TypeError
    return float(cell)


def _read_parquet(path):
    from .parquet import numbers_from_column, read_columns

    return read_columns(path, PREFIXES), numbers_from_column


_READERS = {".csv": _read_csv, ".jsonl": _read_jsonl, ".parquet": _read_parquet}
