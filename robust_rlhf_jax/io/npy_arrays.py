"""Arrays in `.npy` files, memory-mapped and never unpickled."""

import re
import tokenize
from pathlib import Path

import numpy as np

# Rows that are read at once.
BLOCK = 4096
DAMAGE = (ValueError, OSError, EOFError, SyntaxError, TypeError, OverflowError, tokenize.TokenError)


def npy_matrix(path: Path, n_rows: int | None) -> np.ndarray:
    """An array [N, p] of numbers in a `.npy` file, memory-mapped.

    **Raises:** FileNotFoundError; ValueError for a file that is no `.npy` file, holds objects, or has another number of
    rows.
    """
    values = mapped(path)
    if values.dtype.kind not in "iuf" or values.ndim != 2 or 0 in values.shape:
        raise ValueError(
            f"{path} holds {values.dtype} of shape {values.shape}: give numbers [pairs, features]."
        )
    return _of_length(path, values, n_rows)


def npy_vector(path: Path, n_rows: int | None) -> np.ndarray:
    """An array [N] of numbers or words.

    **Raises:** as `npy_matrix`.
    """
    values = mapped(path)
    if values.ndim != 1:
        raise ValueError(
            f"{path} has the shape {values.shape}: beside the sides give one value for each pair."
        )
    return np.asarray(_of_length(path, values, n_rows))


def mapped(path: Path) -> np.ndarray:
    """The array of a `.npy` file, memory-mapped, whatever it holds but objects.

    **Raises:** FileNotFoundError; ValueError for a file that is no `.npy` file, or holds objects; OSError for a folder,
    and for a file that may not be read.
    """
    if not Path(path).exists():
        raise FileNotFoundError(f"{path} does not exist: check the path.")
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except DAMAGE as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise  # not what the file holds: a folder, or one that may not be read
        reason = str(error).rstrip(".")
        if "Python objects" in reason:
            raise ValueError(
                f"{path} is not a .npy file of numbers or words but of Python objects, which are not read: save words "
                "by numpy.save(path, numpy.array(words, dtype=str))."
            ) from None
        raise ValueError(f"{path} is not a .npy file of numbers ({reason}): save it by numpy.save.") from None


def by_number(name: str) -> tuple[list[tuple[int, str]], str]:
    """A key of sorting by which shard-2 comes before shard-10."""
    parts = re.split(r"(\d+)", name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts], name


def _of_length(path: Path, values: np.ndarray, n_rows: int | None) -> np.ndarray:
    if n_rows is not None and len(values) != n_rows:
        raise ValueError(f"{path} has {len(values)} rows, the other file {n_rows}: give a row for each pair.")
    return values
