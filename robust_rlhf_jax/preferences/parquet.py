"""Arrays as Parquet, in and out; tables of one's own columns are read by `io`."""

import json
import math
from pathlib import Path
from typing import IO, Any

import numpy as np

from robust_rlhf_jax.io.containers.arrow_tables import refusing_damage
from robust_rlhf_jax.io.containers.parquet_files import KIND, MAGIC, pyarrow_with_parquet, read_file

# The schema's metadata tell a file of whole arrays from a table of one's own columns.
_KEY = b"robust_rlhf_jax"
_TABLES = ("state_features", "reward_table", "planning_start")
_ALWAYS = ("format_version", "stationary")
HEADER = (*_ALWAYS, "planning_horizon")


def holds_arrays(path: str | Path) -> bool:
    """Whether `write_arrays` wrote the file (else it is a table of one's own columns)."""
    pa = pyarrow_with_parquet()
    with open(path, "rb") as file:
        if file.read(4) != MAGIC:  # the reader of tables says what it is instead
            return False
    with refusing_damage(path, KIND):
        return _KEY in (pa.parquet.read_schema(path).metadata or {})


def write_arrays(file: IO[bytes], arrays: dict[str, np.ndarray], header: dict) -> None:
    """Write arrays to an open file, one row per pair; what a pair has of an array is a list.

    The tables have no rows per pair: each lies, flat, in the first row, and the other rows have empty lists.
    `header` (JSON) and all shapes go into the schema's metadata. Bits are kept: nothing is cast.
    """
    pa = pyarrow_with_parquet()
    n = len(arrays["labels"])
    columns = {name: _to_column(pa, name, array, n) for name, array in arrays.items()}
    shapes = {name: array.shape for name, array in arrays.items()}
    table = pa.table(columns).replace_schema_metadata({_KEY: json.dumps(header | {"shapes": shapes})})
    pa.parquet.write_table(table, file, compression="zstd", use_dictionary=False, write_page_checksum=True)


def read_arrays(path: str | Path, names: tuple[str, ...] = HEADER) -> tuple[dict[str, np.ndarray], dict]:
    """What `write_arrays` wrote: (arrays, header).

    **Raises:** ValueError for an unreadable file, a missing column, or one that does not match the header.
    """
    pa = pyarrow_with_parquet()
    table = read_file(Path(path))
    with refusing_damage(path, KIND):
        header = json.loads(table.schema.metadata[_KEY])
        _check_header(header)
        columns = dict(zip(table.column_names, table.columns, strict=True))
        arrays = {name: _to_array(pa, path, name, columns, s) for name, s in header["shapes"].items()}
    return arrays, {name: header[name] for name in (*names, "names") if name in header}


def _check_header(header: Any):
    """**Raises:** TypeError for what `write_arrays` does not write."""
    if not isinstance(header, dict) or not isinstance(header.get("shapes"), dict):
        raise TypeError("its header has no shapes")
    for shape in header["shapes"].values():
        if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape):
            raise TypeError("a shape in its header is no list of sizes")
    for name in HEADER:
        if not isinstance(header.get(name, None if name == "planning_horizon" else ""), int | None):
            raise TypeError(f"{name} in its header is no whole number")


def _to_column(pa: Any, name: str, array: np.ndarray, n: int):
    flat = pa.array(np.ascontiguousarray(array).reshape(-1))
    if name in _TABLES:
        offsets = np.minimum(np.arange(n + 1), 1) * len(flat)
        return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), flat)
    return flat if array.ndim == 1 else pa.FixedSizeListArray.from_arrays(flat, array.size // n)


def _to_array(pa: Any, path: str | Path, name: str, columns: Any, shape: list[int]):
    if name not in columns:
        raise ValueError(f"{path} lacks the column {name}: save the data again.")
    is_list = pa.types.is_large_list if name in _TABLES else pa.types.is_fixed_size_list
    parts = [chunk.flatten() if is_list(chunk.type) else chunk for chunk in columns[name].chunks]
    flat = np.concatenate([part.to_numpy(zero_copy_only=False) for part in parts] or [np.empty(0)])
    if flat.size != math.prod(shape):
        raise ValueError(
            f"{path}: column {name} has {flat.size} numbers, the header says {shape}: save it again."
        )
    return flat.reshape(shape)
