"""Preference data in files: NumPy archives and Parquet in and out, and every file of numbers that `io` reads."""

import contextlib
import dataclasses
import os
from pathlib import Path
from typing import Any

import jax
import numpy as np

from robust_rlhf_jax.io import Pairs, check_pairs, npz_archives
from robust_rlhf_jax.io.loading import read_pairs
from robust_rlhf_jax.unfinished import whole_path

from . import parquet
from .data import PreferenceData
from .rounding import lost_to_rounding
from .table_of_pairs import with_table
from .validation import check_preferences

FORMAT_VERSION = 1
_REQUIRED = ("state_features", "states", "actions", "features", "labels")
_OPTIONAL = ("reward_table", "reward_features", "planning_start", "rounding")


def save(path: str | os.PathLike, data: PreferenceData | Pairs) -> None:
    """Write `data` to a `.npz` or `.parquet` file, bit for bit; `load` gives it back; pairs get a table first.

    The file appears whole or not at all: it is written under a temporary name beside `path`, then renamed.

    **Raises:** ValueError for another suffix or data that `check_preferences` refuses, FileNotFoundError for
    a folder that does not exist, ImportError for Parquet without pyarrow.

    **Example:**

    >>> import pathlib, tempfile
    >>> from robust_rlhf_jax import load_rail_choices, save
    >>> save(pathlib.Path(tempfile.mkdtemp(), "rail.npz"), load_rail_choices())
    """
    path = Path(path)
    writers = {".npz": npz_archives.write_arrays, ".parquet": parquet.write_arrays}
    if path.suffix.lower() not in writers:
        raise ValueError(f"{path}: suffix {path.suffix!r} cannot be written: choose .npz or .parquet.")
    data = with_table(data)
    # Required arrays come last: a damaged archive that loses its end is then found out.
    leaves = {name: getattr(data, name) for name in _OPTIONAL + _REQUIRED}
    arrays = {name: np.asarray(leaf) for name, leaf in leaves.items() if leaf is not None}
    header = {"format_version": FORMAT_VERSION, "stationary": data.stationary}
    if data.planning_horizon is not None:
        header["planning_horizon"] = int(data.planning_horizon)
    if data.names:
        header["names"] = list(map(str, data.names))
    with whole_path(path) as unfinished, open(unfinished, "wb") as file:
        writers[path.suffix.lower()](file, arrays, header)


def load(path: str | os.PathLike | Any) -> PreferenceData | Pairs:
    """Read and check preferences: arrays that `save` wrote, or numbers in a file or in memory (schema: docs/data.md).

    Arrays of trajectories become `PreferenceData`; without x64 JAX holds float64 numbers as float32. Columns
    `chosen_<name>` and `rejected_<name>`, and embeddings, in anything that `io.load_pairs` reads, data frames too,
    become `Pairs`, ties and pairs of weight 0 left out.

    **Raises:** FileNotFoundError; ImportError for Parquet without pyarrow; ValueError, in one sentence, for a
    file that is empty, corrupt, of another suffix, pickled, of a newer format, that lacks a column, or whose
    values `check_preferences` refuses.

    **Example:**

    >>> import pathlib, tempfile
    >>> from robust_rlhf_jax import load, load_rail_choices, save
    >>> file = pathlib.Path(tempfile.mkdtemp(), "rail.npz")
    >>> save(file, load_rail_choices())
    >>> load(file).n_pairs
    2929
    """
    if isinstance(path, str | os.PathLike) and holds_arrays(path := Path(path)):
        read = npz_archives.read_arrays if path.suffix.lower() == ".npz" else parquet.read_arrays
        return _assemble(path, *read(path, parquet.HEADER))
    pairs = _read_numbers(path).decided()
    check_pairs(pairs)
    return pairs


def load_table(path: str | os.PathLike) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """The features of a file of numbers: of columns `chosen_<name>` and `rejected_<name>`, or embeddings.

    **Returns:** (names, chosen [N, p], rejected [N, p]), the preferred option as chosen, columns in the file's order.

    **Raises:** FileNotFoundError; ImportError for Parquet without pyarrow; ValueError for a file that `io.load_pairs`
    refuses, or one of texts.

    **Example:**

    >>> import pathlib, tempfile
    >>> from robust_rlhf_jax.preferences import load_table
    >>> file = pathlib.Path(tempfile.mkdtemp(), "choices.csv")
    >>> _ = file.write_text("chosen_price,rejected_price\\n2400,4000\\n")
    >>> load_table(file)[0]
    ('price',)
    """
    pairs = _read_numbers(path)
    return pairs.names, np.asarray(pairs.chosen), np.asarray(pairs.rejected)


def _read_numbers(path: str | os.PathLike | Any) -> Pairs:
    pairs = read_pairs(path)
    if pairs.kind == "texts":
        raise ValueError(f"{pairs.path} holds texts: make features of them by robust_rlhf_jax.io.load_pairs.")
    return pairs


def holds_arrays(path: Path) -> bool:
    """Whether `save` wrote the file, or somebody else the same arrays: not one that is read as a table.

    **Raises:** ValueError for a `.npz` archive or a Parquet file that is damaged.
    """
    suffix = path.suffix.lower()
    if suffix == ".npz" and path.is_file():
        names = npz_archives.names_of(path)
        return not ({"chosen", "rejected"} <= names or any("chosen" in name for name in names))
    return suffix == ".parquet" and path.is_file() and parquet.holds_arrays(path)


def _assemble(path: Any, arrays: dict[str, Any], header: dict):
    version = header.get("format_version", FORMAT_VERSION)
    if version != FORMAT_VERSION:
        raise ValueError(
            f"{path} has format version {version}, this package reads {FORMAT_VERSION}: update it."
        )
    lost = [name for name in _REQUIRED if name not in arrays]
    if lost:
        raise ValueError(f"{path} lacks the array {lost[0]}: save all of {', '.join(_REQUIRED)}.")
    names = _names(path, header.get("names", arrays.pop("names", ())))
    unknown = [name for name in arrays if name not in _REQUIRED + _OPTIONAL]
    if unknown:
        raise ValueError(f"{path} has an unknown array {unknown[0]!r}: drop it, or mend its name.")
    steps = header.get("planning_horizon")
    data = PreferenceData(
        **arrays,
        stationary=bool(header.get("stationary", False)),
        planning_horizon=None if steps is None else int(steps),
        names=names,
    )
    with _naming(path):
        check_preferences(data)
        observed = np.asarray(data.observed_reward_features)
        if data.rounding is None:
            rounding = lost_to_rounding(observed, jax.dtypes.canonicalize_dtype(observed.dtype))
            data = dataclasses.replace(data, rounding=rounding)
        with np.errstate(over="ignore"):
            data = jax.device_put(data)  # may share the memory of what was just read
        check_preferences(data)  # again: float64 that overflows float32 is infinite only now
    return data


def _names(path: Any, found: Any) -> tuple[str, ...]:
    """**Raises:** ValueError for what is no list of texts."""
    names = found.tolist() if isinstance(found, np.ndarray) else found
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ValueError(
            f"{path}: names must be a list of texts, one for each reward feature: mend or drop them."
        )
    return tuple(names)


@contextlib.contextmanager
def _naming(path: Any):
    """Put the file's name before the message of a ValueError."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
