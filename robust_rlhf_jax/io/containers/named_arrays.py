"""Archives of named arrays, `.npz` and `.safetensors`: one matrix for each side, and vectors beside them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..table import Source, Table

NAME, SUFFIXES = "npz", (".npz", ".safetensors")


def read(path: Path, how: dict[str, Any]) -> Table:
    """**Raises:** ValueError for an archive that is damaged, or whose names do not tell the sides."""
    arrays, _ = _arrays(path)
    names = _sides(path, arrays)
    n_rows = len(arrays[names[0]])
    columns = {name: _plain(arrays.pop(name)) for name in names}
    columns |= {name: a.tolist() for name, a in arrays.items() if a.ndim == 1 and len(a) == n_rows}
    notes = tuple(f"The array {name} has no row for each pair." for name in arrays if name not in columns)
    renamed = dict(zip(("chosen", "rejected"), names, strict=True))
    columns = {side: columns.pop(name) for side, name in renamed.items()} | columns
    container = "npz" if path.suffix.lower() == ".npz" else "safetensors"
    return Table(Source(path, (path,), container), columns, n_rows, notes=notes)


def write(source: Source, path: Path, rows: Sequence[int], extra: dict[str, list]) -> None:
    """The same arrays with `rows` of each that has a row for each pair, and a vector for each further column."""
    arrays, metadata = _arrays(source.file)
    n_rows = len(arrays[_sides(source.file, arrays)[0]])
    chosen = np.asarray(rows, np.int64)
    made = {n: a[chosen] if a.ndim and len(a) == n_rows else a for n, a in arrays.items() if n not in extra}
    made |= {name: np.asarray(cells) for name, cells in extra.items()}
    if source.container == "npz":
        with open(path, "wb") as file:
            np.savez(file, **made)  # pyright: ignore[reportArgumentType]
        return
    from safetensors.numpy import save_file

    for name, array in list(made.items()):
        if array.dtype.kind in "US":  # tensors are numbers: the words are in the metadata
            words, codes = np.unique(array, return_inverse=True)
            made[name] = codes.astype(np.int8)
            metadata = metadata | {f"{name} words": json.dumps(words.tolist())}
    save_file({n: np.ascontiguousarray(a) for n, a in made.items()}, str(path), metadata or None)


def _sides(path: Path, arrays: dict[str, np.ndarray]) -> tuple[str, str]:
    matrices = [n for n, a in arrays.items() if a.ndim == 2 and _numeric(a)]
    for first in matrices:
        second = first.replace("chosen", "rejected")
        if "chosen" in first and second in arrays:
            if arrays[first].shape != arrays[second].shape or 0 in arrays[first].shape:
                shapes = f"{arrays[first].shape} and {arrays[second].shape}"
                raise ValueError(
                    f"{path}: {first} and {second} have the shapes {shapes}: give both alike, [pairs, features]."
                )
            return first, second
    listed = ", ".join(f"{n} {a.shape}" for n, a in list(arrays.items())[:8]) or "nothing"
    raise ValueError(
        f"{path} holds {listed}: call the arrays of the sides chosen and rejected, [pairs, features] each."
    )


def _numeric(array: np.ndarray) -> bool:
    return array.dtype.kind in "iuf" or array.dtype.name == "bfloat16"


def _plain(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def _arrays(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    if path.suffix.lower() == ".npz":
        from ..npz_archives import read_arrays

        return read_arrays(path, ())[0], {}
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="numpy") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (SafetensorError, OSError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} is no readable .safetensors file ({str(error).rstrip('.')}): write it again."
        ) from None
