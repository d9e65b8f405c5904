"""Columns of Parquet files as arrays."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Shaped

from robust_rlhf_jax.io.containers.arrow_tables import refusing_damage
from robust_rlhf_jax.io.containers.parquet_files import KIND, pyarrow_with_parquet

from .floats import block_type, check_shape

EMPTY = "has an empty cell in row {:,} (from 0): give a value for every pair, and a number for each of its features"


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Any]:
    """A `ParquetFile` that reads no row group ahead.

    **Raises:** ValueError for a damaged file, also within the block; ImportError without pyarrow.
    """
    pa = pyarrow_with_parquet()
    # With pre_buffer, pyarrow reads the bytes of all row groups that a call may come to, and may keep them.
    how = {"pre_buffer": False, "page_checksum_verification": True}
    with refusing_damage(path, KIND), pa.parquet.ParquetFile(path, **how) as file:
        yield file


class Form(NamedTuple):
    """What a file has: pairs, features of each, and the type of these in each of the columns."""

    n_pairs: int
    n_features: int
    types: str


def form_of(path: Path, names: list[str]) -> Form:
    """What a file has in columns of lists.

    **Raises:** ValueError for a column that is missing, twice there or holds anything but lists of numbers, for
    columns of other lengths, and for a file without rows.
    """
    with opened(path) as file:
        sizes = {name: _list_size(file, name, path) for name in names}
        n_rows = file.metadata.num_rows
        types = [str(file.schema_arrow.field(name).type.value_type) for name in names]
    for name, size in sizes.items():
        check_shape((n_rows, size), f"{path}: column {name}")
    if len(set(sizes.values())) > 1:
        shown = " and ".join(f"{size} numbers in {name}" for name, size in sizes.items())
        raise ValueError(f"{path} has {shown}: give as many in both.")
    return Form(n_rows, sizes[names[0]], " and ".join(dict.fromkeys(types)))


def matrix(column: Any, size: int, path: Path, name: str, begin: int = 0) -> Shaped[np.ndarray, "m k"]:
    """A column of lists of `size` numbers, of rows from `begin` on, without a copy where it is in one piece.

    **Raises:** ValueError for an empty cell, and for a list of another length, with the row in the file.
    """
    begins = begin + np.cumsum([0, *map(len, column.chunks)])
    chunks = zip(column.chunks, begins.tolist(), strict=False)
    parts = [_matrix(chunk, size, f"{path}: column {name}", at) for chunk, at in chunks]
    return parts[0] if len(parts) == 1 else np.concatenate(parts or [np.empty((0, size), np.float32)])


def vector(path: Path, name: str) -> Shaped[np.ndarray, " N"]:
    """A column of numbers or words.

    **Raises:** ValueError for a column that is missing, holds lists and the like, or has an empty cell.
    """
    with opened(path) as file:
        _check_flat(_field(file, name, path).type, f"{path}: column {name}")
        begin, parts = 0, []
        for i in range(file.num_row_groups):
            parts.append(_flat(file.read_row_group(i, columns=[name]).column(0), path, name, begin))
            begin += file.metadata.row_group(i).num_rows
    return np.concatenate(parts)


def values_of(path: Path, name: str, most: int = 4) -> set[Any]:
    """The different values of a column, empty cells left out; none of lists and the like, and of more than `most` some.

    **Raises:** ValueError for a column that is missing or twice there, and for a damaged file.
    """
    import pyarrow as pa

    with opened(path) as file:
        found: set[Any] = set()
        if pa.types.is_nested(_field(file, name, path).type):
            return found
        for i in range(file.num_row_groups):
            found |= set(file.read_row_group(i, columns=[name]).column(0).unique().to_pylist()) - {None}
            if len(found) > most:
                break
        return found


def _field(file: Any, name: str, path: Path) -> Any:
    names = file.schema_arrow.names
    if names.count(name) != 1:
        there = "is there twice" if name in names else f"is missing, there are {', '.join(names)}"
        raise ValueError(f"{path}: the column {name} {there}: name the one that is meant.")
    return file.schema_arrow.field(name)


def _list_size(file: Any, name: str, path: Path) -> int:
    import pyarrow as pa

    kind = _field(file, name, path).type
    fixed = pa.types.is_fixed_size_list(kind)
    if not (fixed or pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        texts = "; robust-rlhf embed makes them of texts" if _is_text(kind) else ""
        raise ValueError(f"{path}: the column {name} holds {kind}: give lists of numbers{texts}.")
    block_type(_numpy_type(kind.value_type), f"{path}: column {name}")
    return kind.list_size if fixed else _first_length(file, name, path)


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _numpy_type(kind: Any) -> np.dtype:
    import pyarrow as pa

    numbers = pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)
    return np.dtype(kind.to_pandas_dtype() if numbers else object)


def _first_length(file: Any, name: str, path: Path) -> int:
    for batch in file.iter_batches(batch_size=1, columns=[name]):
        if batch.column(0).null_count:
            raise ValueError(f"{path}: column {name} {EMPTY.format(0)}.")
        return len(batch.column(0)[0])
    return 0


def _matrix(chunk: Any, size: int, what: str, begin: int) -> np.ndarray:
    import pyarrow as pa

    values = chunk.flatten()
    if chunk.null_count or values.null_count:
        cells = (cell.as_py() for cell in chunk)
        row = next(row for row, cell in enumerate(cells) if cell is None or None in cell)
        raise ValueError(f"{what} {EMPTY.format(begin + row)}.")
    lengths = (
        np.zeros(0, int) if pa.types.is_fixed_size_list(chunk.type) else np.asarray(chunk.value_lengths())
    )
    odd = np.flatnonzero(lengths != size)
    if len(odd):
        raise ValueError(
            f"{what} has lists of {size} and of {lengths[odd[0]]} numbers, in row {begin + odd[0]:,} (from 0): give "
            "all alike."
        )
    return values.to_numpy(zero_copy_only=False).reshape(len(chunk), size)


def _check_flat(kind: Any, what: str) -> None:
    import pyarrow as pa

    if pa.types.is_nested(kind):
        raise ValueError(f"{what} holds {kind}: give one number or word for each pair.")


def _flat(column: Any, path: Path, name: str, begin: int) -> np.ndarray:
    if column.null_count:
        row = column.to_pylist().index(None)
        raise ValueError(f"{path}: column {name} {EMPTY.format(begin + row)}.")
    # By way of the different values: of words an array of one length, not an object for each.
    parts = [chunk for chunk in column.dictionary_encode().chunks if len(chunk)]
    arrays = [np.asarray(part.dictionary.to_pylist())[part.indices.to_numpy()] for part in parts]
    return np.concatenate(arrays) if arrays else np.empty(0, np.int8)
